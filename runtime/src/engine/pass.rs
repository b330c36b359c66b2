//! One call of a differentiated function: what it saved, and its pullback.

use super::backward::{Backward, Calls, Feed, Owner, Wish};
use super::code::{Datum, Operand};
use super::derivative::Derivative;
use super::mask::Mask;
use super::route::Before;
use super::saved::Saved;
use crate::error::Error;
use crate::exec::Meta;
use crate::torch::node::Node;
use crate::torch::{Handle, facts, node};
use cotangent_graph::ir::Type;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// See the [module](self). Shared by threads; nothing in it changes but that the last backward empties it.
pub(super) struct Pass {
    derivative: Arc<Derivative>,
    saved: RwLock<Option<Arc<Saved>>>,
    /// For each output of LibTorch's node, the output of the derivative. The direct path has no node.
    node_outputs: Vec<usize>,
    /// LibTorch's engine is going to release what was saved after the backward that comes next.
    last: AtomicBool,
    /// What earlier regions of the call did.
    before: Option<Before>,
}

pub(super) const RELEASED: &str = "Trying to backward through the graph a second time (or directly access saved tensors after they \
     have already been freed). Saved intermediate values of the graph are freed when you call .backward() or \
     autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need \
     to access saved tensors after calling backward.";

impl Pass {
    pub(super) fn new(
        derivative: Arc<Derivative>,
        saved: Saved,
        node_outputs: Vec<usize>,
        before: Option<Before>,
    ) -> Self {
        Self {
            derivative,
            saved: RwLock::new(Some(Arc::new(saved))),
            node_outputs,
            last: AtomicBool::new(false),
            before,
        }
    }

    /// How many values the call is differentiated for.
    pub(super) fn active(&self) -> usize {
        match &self.before {
            None => self.derivative.active(),
            Some(before) => before.roots.len(),
        }
    }

    /// The type of a value that the call is differentiated for; `None` if no region reads it.
    pub(super) fn input(&self, i: usize) -> Option<&Type> {
        match &self.before {
            None => Some(self.derivative.input(i)),
            Some(before) => before.input(i, &self.derivative),
        }
    }

    pub(super) fn derivative(&self) -> &Derivative {
        &self.derivative
    }

    fn saved(&self) -> Result<Arc<Saved>, String> {
        let saved = self.saved.read().unwrap_or_else(PoisonError::into_inner).clone();
        saved.ok_or_else(|| RELEASED.into())
    }

    /// The cotangents of the active values that `needs` asks for; `None` where no path leads from one to a seeded
    /// output. Each seed has the type of its output.
    pub(super) fn pullback(
        &self,
        seeds: &[Option<Datum>],
        needs: &Mask,
        owner: Owner,
    ) -> Result<Vec<Option<Datum>>, Error> {
        match &self.before {
            None => self.own(seeds, needs, owner).map_err(Error::new),
            Some(before) => before.pullback(self, seeds, needs),
        }
    }

    /// The cotangents of what this region is differentiated for.
    pub(super) fn own(
        &self,
        seeds: &[Option<Datum>],
        needs: &Mask,
        owner: Owner,
    ) -> Result<Vec<Option<Datum>>, String> {
        let saved = self.saved()?;
        let seeded = self.seeded(seeds);
        if seeded.is_empty() {
            return Ok(self.nothing());
        }
        let wish = Wish {
            seeds: seeded,
            needs: needs.clone(),
            owner,
            calls: Calls::Often,
        };
        let backward = self.derivative.backward(wish, &Meta).map_err(|e| e.to_string())?;
        saved.check(&self.derivative.name, &|i| backward.feeds.contains(&Feed::Residual(i)))?;
        backward.run(&saved.data, seeds)
    }

    /// The same where nothing asks for what was saved any more: it is used up.
    fn last_pullback(&self, seeds: &[Option<Datum>], needs: &Mask, owner: Owner) -> Result<Vec<Option<Datum>>, String> {
        // Complaints come before anything is used up.
        facts::refuse_autocast()?;
        self.saved()?.check(&self.derivative.name, &|_| true)?;
        let seeded = self.seeded(seeds);
        if seeded.is_empty() {
            return Ok(self.nothing());
        }
        let wish = Wish {
            seeds: seeded,
            needs: needs.clone(),
            owner,
            calls: Calls::Once,
        };
        let backward = self.derivative.backward(wish, &Meta).map_err(|e| e.to_string())?;
        let saved = self.saved.write().unwrap_or_else(PoisonError::into_inner).take();
        match Arc::try_unwrap(saved.ok_or(RELEASED)?) {
            Ok(saved) => saved.spend(|data| backward.run_once(data, seeds)),
            Err(shared) => {
                // Another thread is reading it, for a backward of its own.
                *self.saved.write().unwrap_or_else(PoisonError::into_inner) = Some(shared);
                self.own(seeds, needs, owner)
            }
        }
    }

    /// The cotangents for a seed of one on one output, from a call that nothing else asks for any. The seed itself is
    /// made only if something reads it.
    pub(super) fn pullback_of_one(
        self,
        output: usize,
        needs: Mask,
        one: impl FnOnce() -> Result<Datum, Error>,
    ) -> Result<Vec<Option<Datum>>, Error> {
        if let Some(before) = &self.before {
            let mut seeds: Vec<Option<Datum>> = self.derivative.varies.iter().map(|_| None).collect();
            seeds[output] = Some(one()?);
            return before.pullback(&self, &seeds, &needs);
        }
        if !self.derivative.varies[output] {
            return Ok(self.nothing());
        }
        let wish = Wish {
            seeds: Mask::of_members([output]),
            needs,
            owner: Owner::User,
            calls: Calls::OnceWithOne,
        };
        let backward = self.derivative.backward(wish, &Meta)?;
        let mut seeds: Vec<Option<Datum>> = self.derivative.varies.iter().map(|_| None).collect();
        if backward.reads_seeds() {
            seeds[output] = Some(one()?);
        }
        self.spend(&backward, &seeds)
    }

    /// Forward mode: the tangents of the outputs from those of the active values.
    pub(super) fn push(mut self, tangents: &[Option<Datum>]) -> Result<Vec<Option<Datum>>, Error> {
        if let Some(before) = self.before.take() {
            return before.push(self, tangents);
        }
        let moving = Mask::of(tangents.iter().map(Option::is_some));
        if moving.is_empty() {
            return Ok(self.derivative.varies.iter().map(|_| None).collect());
        }
        let forward = self.derivative.push(&moving, &Meta)?;
        self.spend(&forward, tangents)
    }

    fn spend(self, backward: &Backward, seeds: &[Option<Datum>]) -> Result<Vec<Option<Datum>>, Error> {
        let saved = self.saved.into_inner().unwrap_or_else(PoisonError::into_inner);
        let saved = saved.and_then(Arc::into_inner).ok_or_else(|| Error::new(RELEASED))?;
        saved.check(&self.derivative.name, &|_| true).map_err(Error::new)?;
        saved.spend(|data| backward.run_once(data, seeds)).map_err(Error::new)
    }

    /// No cotangents.
    fn nothing(&self) -> Vec<Option<Datum>> {
        (0..self.derivative.active()).map(|_| None).collect()
    }

    /// The seeds that matter.
    fn seeded(&self, seeds: &[Option<Datum>]) -> Mask {
        Mask::of(
            seeds
                .iter()
                .zip(&self.derivative.varies)
                .map(|(s, v)| s.is_some() && *v),
        )
    }

    /// The same, with the results on LibTorch's record: they belong to a node whose backward is the derivative of this
    /// one.
    fn recorded(&self, parent: &Node, seeds: &[Option<Datum>], needs: &Mask) -> Result<Vec<Option<Handle>>, String> {
        if self.before.is_some() {
            return Err(format!(
                "`{}` cannot be differentiated twice on the way that this call took: it reads a tensor's element, or calls \
                 a function with a rule of its own",
                self.derivative.name
            ));
        }
        let saved = self.saved()?;
        saved.check(&self.derivative.name, &|_| true)?;
        let mask = self.seeded(seeds);
        let mut results: Vec<Option<Handle>> = (0..self.derivative.active()).map(|_| None).collect();
        if mask.is_empty() {
            return Ok(results);
        }
        let text = |e: Error| e.to_string();
        let active = Mask::of(
            seeds
                .iter()
                .enumerate()
                .map(|(k, s)| mask.has(k) && matches!(s, Some(Datum::Tensor(t)) if t.requires_grad())),
        );
        let reached = self.derivative.reaches(&mask, needs, &Meta).map_err(text)?;
        let higher = self.derivative.higher(&mask, needs, &active, &Meta).map_err(text)?;

        let starts = self.derivative.feeds_of(&mask, &Meta).map_err(text)?;
        let given: Vec<Operand<'_>> = starts.iter().map(|f| operand(*f, &saved, seeds)).collect();
        let mut made: Vec<Option<Datum>> = higher.run(&given)?.into_iter().map(Some).collect();
        // SAFETY: the handles are those of saved values and seeds, which live here.
        let kept = unsafe { Saved::keep(&higher, &given, &mut made) };

        let (mut attached, mut node_outputs) = (vec![], vec![]);
        let targets = reached.iter().enumerate().filter(|(_, r)| **r).map(|(i, _)| i);
        for (k, i) in targets.enumerate() {
            let result = match higher.made[k] {
                super::derivative::Source::Given(g) => match operand(starts[g], &saved, seeds) {
                    // SAFETY: as above.
                    Operand::Tensor(raw) => unsafe { Handle::share_raw(raw) },
                    _ => unreachable!("an edge is a tensor's"),
                },
                super::derivative::Source::Made(m) => {
                    let Some(Datum::Tensor(tensor)) = &made[m] else {
                        unreachable!("an edge is a tensor's")
                    };
                    if higher.varies[k] && tensor.defined() {
                        attached.push(tensor.raw());
                        node_outputs.push(k);
                    }
                    tensor.share()
                }
            };
            results[i] = Some(result);
        }
        let from: Vec<_> = seeds
            .iter()
            .enumerate()
            .filter(|(k, _)| active.has(*k))
            .filter_map(|(_, s)| match s {
                Some(Datum::Tensor(t)) => Some(t.raw()),
                _ => None,
            })
            .collect();
        if !attached.is_empty() {
            let label = label(&higher.name);
            let pass = Arc::new(Self::new(higher, kept, node_outputs, None));
            // SAFETY: the results were made by the forward just now.
            unsafe { node::attach(pass, &label, Some(parent), &from, &attached)? };
        }
        Ok(results)
    }
}

/// Name of a node in LibTorch's messages and graph dumps.
pub(super) fn label(name: &str) -> CString {
    let last = name.rsplit("::").next().unwrap_or(name);
    CString::new(format!("{last}Backward")).unwrap_or_default()
}

fn operand<'a>(feed: Feed, saved: &'a Saved, seeds: &'a [Option<Datum>]) -> Operand<'a> {
    match feed {
        Feed::Residual(i) => saved.data[i].lend(),
        Feed::Seed(k) => seeds[k].as_ref().expect("a seeded output has a seed").lend(),
    }
}

impl node::Backward for Pass {
    fn apply(
        &self,
        node: Option<&Node>,
        seeds: Vec<Option<Handle>>,
        needs: &[bool],
    ) -> Result<Vec<Option<Handle>>, String> {
        let mut all: Vec<Option<Datum>> = (0..self.derivative.varies.len()).map(|_| None).collect();
        for (seed, k) in seeds.into_iter().zip(&self.node_outputs) {
            all[*k] = seed.map(Datum::Tensor);
        }
        let needs = Mask::of(needs.iter().copied());
        if let Some(node) = node {
            return self.recorded(node, &all, &needs);
        }
        if let Some(before) = &self.before {
            let results = before.pullback(self, &all, &needs).map_err(|e| e.to_string())?;
            return Ok(results.into_iter().map(|r| r.and_then(Datum::into_tensor)).collect());
        }
        // A function that saved nothing can run backward again, as LibTorch's own nodes can.
        let results = match self.last.load(Ordering::Relaxed) && !self.derivative.residuals.is_empty() {
            true => self.last_pullback(&all, &needs, Owner::Engine)?,
            false => self.own(&all, &needs, Owner::Engine)?,
        };
        Ok(results.into_iter().map(|r| r.and_then(Datum::into_tensor)).collect())
    }

    fn will_release(&self) {
        self.last.store(true, Ordering::Relaxed);
    }

    fn release(&self) {
        if let Some(before) = &self.before {
            before.release();
        }
        if !self.derivative.residuals.is_empty() {
            let saved = self.saved.write().unwrap_or_else(PoisonError::into_inner).take();
            drop(saved);
        }
    }
}
