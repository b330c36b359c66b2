//! Tensor instructions: arguments made constant, result types found, the instruction copied into the closed graph.

use super::eval::{Closer, Known, Stop};
use super::nodes::Scalar;
use crate::functionalize::{changes_metadata, infer_any, twin};
use crate::ir::{Arg, Graph, Inst, Type, Value};
use crate::ops::{Op, ParamKind, Results};
use crate::scalar::ScalarType;

impl Closer<'_> {
    /// Copies a LibTorch call into the closed graph.
    pub(super) fn tensor_op(&mut self, inst: &Inst, open: &Graph) -> Result<Vec<Known>, Stop> {
        let op = inst.op;
        let mut args = vec![];
        for (param, arg) in op.params.iter().zip(&inst.args) {
            args.push(self.tensor_arg(param.kind, arg, open)?);
        }
        let (op, args) = match op.name {
            "get" => (Op::named("select"), vec![args[0].clone(), Arg::Int(0), args[1].clone()]),
            // A second tensor on the same storage, outside LibTorch's own graph.
            "data" => (Op::named("detach"), args),
            _ => (op, args),
        };
        self.refuse_unknown_effects(op)?;
        let results = self.emit(op, args)?;
        Ok(match op.results {
            Results::List => vec![Known::List(results)],
            Results::Count(_) => results.into_iter().map(Known::Tensor).collect(),
        })
    }

    /// Refuses effects that functionalization does not know.
    fn refuse_unknown_effects(&self, op: Op) -> Result<(), Stop> {
        let unknown = op.facts.mutates == [0] && op.name != "copy_" && twin(op).is_none();
        if changes_metadata(op) || unknown {
            return Err(self.error(super::unknown_write(op)));
        }
        Ok(())
    }

    /// Appends an op to the closed graph.
    pub(super) fn emit(&mut self, op: Op, args: Vec<Arg>) -> Result<Vec<Value>, Stop> {
        if op.facts.dynamic_shape && op.own.is_none() {
            return Err(self.error(super::dynamic_shape(op)));
        }
        // Where the shapes do not fit, the original function fails with LibTorch's own message.
        let types = infer_any(&self.state.graph, self.oracle, op, &args).map_err(|_| Stop::Replay)?;
        let device = self.device(op, &args);
        let loc = self.loc.clone();
        let types = types.into_iter().map(|t| Type::Tensor(Some(t))).collect();
        let results = self.state.graph.push(op, args, types, loc);
        for r in &results {
            self.state.devices.insert(*r, device);
        }
        Ok(results)
    }

    /// Device of an op's results: the one it is told, else that of its tensors (a 0-dim CPU tensor beside others
    /// does not count), else the CPU.
    fn device(&self, op: Op, args: &[Arg]) -> i32 {
        let told = op.params.iter().zip(args).find_map(|(p, a)| match (p.kind, a) {
            (ParamKind::Device, Arg::Device(d)) => Some(*d),
            _ => None,
        });
        told.unwrap_or_else(|| {
            let mut device = -1;
            let mut see = |v: Value| {
                if let Some(d) = self.state.devices.get(&v)
                    && device == -1
                {
                    device = *d;
                }
            };
            args.iter().for_each(|a| a.for_each_value(&mut see));
            device
        })
    }

    /// An argument of an op, made constant as its parameter wants it.
    fn tensor_arg(&mut self, kind: ParamKind, arg: &Arg, open: &Graph) -> Result<Arg, Stop> {
        Ok(match (kind, arg) {
            (_, Arg::None | Arg::Str(_) | Arg::Kind(_) | Arg::Device(_)) => arg.clone(),
            (ParamKind::Tensor | ParamKind::OptTensor, arg) => Arg::Value(self.tensor(arg)?),
            (ParamKind::Tensors | ParamKind::OptTensors, Arg::List(items)) => {
                let mut list = vec![];
                for item in items {
                    list.push(match item {
                        Some(v) => Some(self.tensor(&Arg::Value(*v))?),
                        None => None,
                    });
                }
                Arg::List(list)
            }
            (ParamKind::Tensors | ParamKind::OptTensors, arg) => {
                Arg::List(self.list(arg)?.into_iter().map(Some).collect())
            }
            (ParamKind::Scalar, arg) => match self.number_arg(arg, open)? {
                s if matches!(s.ty(), ScalarType::Float(_)) => self.float_arg(s),
                s => Arg::Int(self.fix(s)?.as_int()),
            },
            (ParamKind::Float | ParamKind::OptFloat, arg) => self.float_of(arg, open)?,
            (ParamKind::Int | ParamKind::OptInt, arg) => Arg::Int(self.int(arg, open)?),
            (ParamKind::Bool, arg) => Arg::Bool(self.int(arg, open)? != 0),
            (ParamKind::Ints | ParamKind::OptInts, Arg::Ints(items)) => {
                let mut list = vec![];
                for item in items {
                    list.push(Arg::Int(self.int(item, open)?));
                }
                Arg::Ints(list)
            }
            (ParamKind::Floats | ParamKind::OptFloats, Arg::Floats(items)) => {
                let mut list = vec![];
                for item in items {
                    list.push(self.float_of(item, open)?);
                }
                Arg::Floats(list)
            }
            (ParamKind::Kind | ParamKind::OptKind, arg) => match self.int(arg, open)? {
                -1 if kind == ParamKind::OptKind => Arg::None,
                n => Arg::Kind(self.kind(n)?),
            },
            (ParamKind::Device, arg) => {
                let n = self.int(arg, open)?;
                Arg::Device(i32::try_from(n).map_err(|_| Stop::Replay)?)
            }
            (_, other) => {
                return Err(self.error(format!(
                    "internal error, please report it: {other:?} stands for a {kind:?}"
                )));
            }
        })
    }

    /// A number, integer or float as it stands.
    fn number_arg(&self, arg: &Arg, open: &Graph) -> Result<Scalar, Stop> {
        let hint = match arg {
            Arg::Float(_) => ScalarType::Float(64),
            _ => ScalarType::Int(64),
        };
        self.scalar_arg(arg, hint, open)
    }

    /// A float parameter of an op (a probability, an epsilon). Rules and shapes take it as a constant: the
    /// specialization holds for its value only, and no derivative passes through it.
    fn float_of(&mut self, arg: &Arg, open: &Graph) -> Result<Arg, Stop> {
        match self.number_arg(arg, open)? {
            s @ Scalar::Node { id, .. } if matches!(s.ty(), ScalarType::Float(_)) => {
                for n in self.needed(id, |_| false) {
                    self.state.constants.extend(self.state.nodes.float_argument(n));
                }
                Ok(Arg::Float(self.fix(s)?.as_float()))
            }
            s if matches!(s.ty(), ScalarType::Float(_)) => Ok(self.float_arg(s)),
            s => Ok(Arg::Float(self.fix(s)?.as_int() as f64)),
        }
    }
}
