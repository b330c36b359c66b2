//! Bits of floats that integers carry where no word follows them: shifted by what only run time knows, swapped, taken
//! apart and put together, over memory in which there are integers only.
//!
//! Whatever an integer is computed from counts, however. Where such an integer is taken for a float that counts, and what it
//! is computed from varies, the derivative would be lost in silence: that is refused, or, where run time tells (a store,
//! whose shadow must have no cotangent), found out there. Memory that is so written counts as varied, so that there is
//! a shadow.
//!
//! **Promise.** A float that is useful depends on what varies by edges of activity alone, or over one of the `ends`; under
//! the promise of [`content`](crate::kernel::analysis::content).

use super::flows::Flows;
use crate::llvm::Value;
use std::collections::HashSet;

/// What was found.
pub(super) struct Changed<'m> {
    /// Integers on the way from what varies to an end.
    pub(super) on_the_way: HashSet<Value<'m>>,
    /// Casts and stores that take an integer for a float.
    pub(super) ends: HashSet<Value<'m>>,
}

/// Finds them; seeds memory that they write.
pub(super) fn find<'m>(flows: &mut Flows<'m>) -> Changed<'m> {
    loop {
        let (varied, useful) = (flows.varied(), flows.useful());
        let is_useful = |n: &u32| useful[*n as usize];
        let from = flows.sources.iter().filter(|(a, _)| varied[*a as usize]);
        let from: Vec<u32> = from.map(|(_, b)| *b).collect();
        // What is stored where floats count, run time looks at.
        let stores = flows.ends.iter().flat_map(|(_, v, to)| to.iter().map(|n| (*v, *n)));
        let ended: HashSet<_> = stores.filter(|(_, n)| is_useful(n)).collect();
        let computed = flows.followed(&from, &ended, false);
        let (mut ends, mut last, mut seeds) = (HashSet::new(), vec![], Vec::<u32>::new());
        for (i, v, to) in flows.ends.iter().filter(|(_, v, _)| computed[*v as usize]) {
            let cast = to.is_empty() && flows.numbers.get(i).is_some_and(is_useful);
            if cast || to.iter().any(is_useful) {
                ends.insert(*i);
                last.push(*v);
                seeds.extend(to.iter().filter(|n| is_useful(n) && !varied[**n as usize]));
            }
        }
        if !seeds.is_empty() {
            flows.varied_seeds.extend(seeds);
            continue;
        }
        let leads = flows.followed(&last, &ended, true);
        let met = |n: &u32| computed[*n as usize] && leads[*n as usize];
        let on_the_way = flows.numbers.iter().filter(|(_, n)| met(n)).map(|(v, _)| *v).collect();
        return Changed { on_the_way, ends };
    }
}
