//! Kernels are differentiated side by side. What LLVM holds belongs to one thread, so each thread has the code to itself.

use crate::llvm::{Mod, OwnedModule};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Stack of each thread: LLVM's passes nest with the code.
const STACK: usize = 1 << 28;

/// Does `work` for the numbers below `count`, on as many threads as there are cores, each with a module of its own that is
/// read from `code`. The results are in the order of the numbers.
///
/// # Errors
/// The first that `work` gives, or if there is no thread to be had.
pub(super) fn each<T: Send>(
    code: &[u8],
    count: usize,
    work: impl Fn(Mod<'_>, usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(cores.min(count).max(1))
        .stack_size(STACK);
    let pool = pool.build().map_err(|e| format!("cannot start threads: {e}"))?;
    let next = AtomicUsize::new(0);
    let done = pool.broadcast(|_| {
        let own = OwnedModule::read(code)?;
        let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|i| *i < count));
        numbers
            .map(|i| Ok((i, work(own.get(), i)?)))
            .collect::<Result<Vec<_>, String>>()
    });
    let mut all = done
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect::<Vec<_>>();
    all.sort_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::each;

    const CODE: &[u8] = b"define void @f() {\n ret void\n}\n";

    #[test]
    fn results_are_in_order_and_every_thread_has_the_code() {
        let got = each(CODE, 9, |module, i| Ok((i, module.function("f").is_some())));
        assert_eq!(got, Ok((0..9).map(|i| (i, true)).collect()));
        assert_eq!(each(CODE, 0, |_, i| Ok(i)), Ok(vec![]));
    }

    #[test]
    fn an_error_in_one_is_the_error_of_all() {
        let got = each(CODE, 3, |_, i| if i == 1 { Err("no".to_owned()) } else { Ok(i) });
        assert_eq!(got, Err("no".to_owned()));
        assert!(each(b"no module", 1, |_, i| Ok(i)).is_err());
    }
}
