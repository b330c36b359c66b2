//! What the function reads from tensors of the running program, and facts about tensors.

use super::cut::Want;
use super::eval::{Closer, Known, Stop};
use super::host::TensorFacts;
use super::nodes::Scalar;
use super::outcome::{InputInfo, Place};
use super::prologue::{Slot, Step};
use crate::ir::{Arg, Graph, Type, Value};
use crate::ops::Op;
use crate::scalar::ScalarType;

impl Closer<'_> {
    /// The tensor of a C handle.
    pub(super) fn host_tensor(&mut self, handle: Scalar) -> Result<Known, Stop> {
        let Scalar::Node { id, plus: 0, number } = handle else {
            return Err(self.error("uses a tensor that Cotangent cannot trace to an argument"));
        };
        if let Some(known) = self.state.handles.get(&id) {
            return Ok(known.clone());
        }
        if number.bits == 0 {
            self.fix(handle)?;
            return Ok(Known::Undefined);
        }
        let slot = self.slot_of(id);
        let facts = self.host.tensor(number.bits).map_err(|what| self.error(what))?;
        let known = match facts {
            None => {
                self.prologue.push(Step::Undefined { slot });
                Known::Undefined
            }
            Some(facts) => {
                let (ty, device) = (facts.ty.clone(), facts.device);
                self.prologue.push(Step::Tensor {
                    slot,
                    ty: ty.clone(),
                    device,
                });
                let place = self.place(id);
                let value = self.add_input(Type::Tensor(Some(ty)), slot, place, Some(facts), false);
                self.state.devices.insert(value, device);
                Known::Tensor(value)
            }
        };
        self.state.handles.insert(id, known.clone());
        Ok(known)
    }

    /// Adds an input to the closed graph.
    pub(super) fn add_input(
        &mut self,
        ty: Type,
        slot: Slot,
        place: Option<Place>,
        facts: Option<TensorFacts>,
        internal: bool,
    ) -> Value {
        let name = match place {
            Some(p) => format!("arg{}", p.argument),
            None if internal => format!("made{slot}"),
            None => format!("host{slot}"),
        };
        let value = self.state.graph.input(name, ty);
        self.state.inputs.push(InputInfo {
            value,
            slot,
            place,
            facts,
            internal,
        });
        value
    }

    /// A fact about a tensor, as a number.
    pub(super) fn fact(&mut self, name: &str, args: &[Arg], open: &Graph) -> Result<i64, Stop> {
        let known = match &args[0] {
            Arg::Value(v) => self.state.env.get(v).cloned(),
            _ => None,
        };
        if name == "defined" {
            return Ok(i64::from(matches!(known, Some(Known::Tensor(_) | Known::Gone(..)))));
        }
        let (ty, device) = match known {
            // Sizes may be read after the tensor is gone.
            Some(Known::Gone(ty, device)) if name != "requires_grad" => (ty, device),
            _ => {
                let t = self.tensor(&args[0])?;
                let device = self.state.devices.get(&t).copied().unwrap_or(-1);
                (self.state.graph.tensor(t).clone(), device)
            }
        };
        Ok(match name {
            "dim" => ty.rank() as i64,
            "numel" => ty.numel(),
            "kind" => ty.kind as i64,
            "device" => i64::from(device),
            "size" => {
                let dim = self.int(&args[1], open)?;
                let dim = if dim < 0 { dim + ty.rank() as i64 } else { dim };
                let dim = usize::try_from(dim).map_err(|_| Stop::Replay)?;
                *ty.shape.get(dim).ok_or(Stop::Replay)?
            }
            _ => {
                let t = self.tensor(&args[0])?;
                i64::from(self.requires_grad(t)?)
            }
        })
    }

    fn requires_grad(&mut self, t: Value) -> Result<bool, Stop> {
        let Some(input) = self.state.inputs.iter().find(|i| i.value == t) else {
            return Err(self.error("asks whether a tensor that it computed requires grad; ask before the call instead"));
        };
        let slot = input.slot;
        let expect = input.facts.as_ref().is_some_and(|f| f.requires_grad);
        self.prologue.push(Step::RequiresGrad { slot, expect });
        Ok(expect)
    }

    /// A number read from a tensor: a float of the closed graph, constant for what follows. An integer is something that
    /// the graph depends on, so that the region ends here.
    pub(super) fn item(&mut self, arg: &Arg, ty: &Type) -> Result<Known, Stop> {
        let t = self.tensor(arg)?;
        if self.state.graph.tensor(t).numel() != 1 {
            return Err(Stop::Replay);
        }
        let ty = ScalarType::of(ty).ok_or_else(|| self.error("reads an integer of more than 64 bits from a tensor"))?;
        let ScalarType::Float(width) = ty else {
            return Err(Stop::Cut(Want::Element(t, ty)));
        };
        let (loc, tensor) = (self.loc.clone(), self.state.graph.ty(t).clone());
        let detached = self
            .state
            .graph
            .push(Op::named("detach"), vec![t.into()], vec![tensor], loc.clone());
        let value = self.state.graph.push(
            Op::named("item"),
            vec![detached[0].into()],
            vec![Type::Float(width)],
            loc,
        )[0];
        Ok(Known::Scalar(Scalar::Graph(value, ty)))
    }
}
