//! LLVM's intrinsics.

use crate::code::Ty;
use crate::eval::{Eval, Flow, Stop};
use crate::integers;
use crate::value::Val;

impl Eval<'_> {
    /// An intrinsic by its name after `llvm.`.
    pub(crate) fn intrinsic(&mut self, name: &str, args: Vec<Val>, ret: &Ty) -> Flow<Val> {
        let head = name.split('.').next().unwrap_or(name);
        match head {
            "lifetime" | "dbg" | "assume" | "prefetch" | "invariant" | "donothing" | "sideeffect" | "fake" => {
                Ok(Val::Undef)
            }
            "experimental" if name.starts_with("experimental.noalias") => Ok(Val::Undef),
            "expect" | "ssa" | "launder" | "strip" | "annotation" => Ok(args[0].clone()),
            "memcpy" | "memmove" => {
                let n = self.number(&args[2])?;
                self.copy(&args[0], &args[1], n as u64)?;
                Ok(Val::Undef)
            }
            "memset" => {
                self.fill(&args[0], &args[1], &args[2])?;
                Ok(Val::Undef)
            }
            "is" => Ok(Val::bool(false)), // is.constant
            "objectsize" => Ok(Val::signed(-1, 64)),
            "trap" | "ubsantrap" | "debugtrap" => Err(Stop::Replay),
            "sadd" | "uadd" | "ssub" | "usub" | "smul" | "umul" => {
                if name.contains("with.overflow") {
                    self.with_overflow(head, &args, ret)
                } else {
                    self.saturating(head, &args, ret)
                }
            }
            "umin" | "umax" | "smin" | "smax" => self.extreme(head, &args, ret),
            "scmp" | "ucmp" => self.order(head, &args, ret),
            "abs" => self.abs(&args[0], ret),
            "ctpop" | "ctlz" | "cttz" | "bswap" | "bitreverse" | "fshl" | "fshr" => self.bits(head, &args),
            "fabs" | "sqrt" | "sin" | "cos" | "tan" | "exp" | "exp2" | "log" | "log2" | "log10" | "pow" | "floor"
            | "ceil" | "trunc" | "round" | "rint" | "fma" | "copysign" | "asin" | "acos" | "atan" | "atan2"
            | "sinh" | "cosh" | "tanh" => self.float_call(head, &args, ret),
            "roundeven" | "nearbyint" => self.float_call("rint", &args, ret),
            "fmuladd" => self.float_call("fma", &args, ret),
            "minnum" | "minimumnum" => self.float_call("fmin", &args, ret),
            "maxnum" | "maximumnum" => self.float_call("fmax", &args, ret),
            "powi" => {
                let wide = self.arith().cast("sitofp", &args[1], &Ty::Int(32), ret);
                let exponent = self.modelled(wide)?;
                self.float_call("pow", &[args[0].clone(), exponent], ret)
            }
            "fptosi" | "fptoui" => self.float_to_int(head, &args[0], ret), // .sat
            "threadlocal" => Ok(args[0].clone()),
            _ => self.refuse(format!(
                "the intrinsic `llvm.{name}` is not supported in a tensor function"
            )),
        }
    }

    fn op(&mut self, op: &str, a: &Val, b: &Val, ty: &Ty) -> Flow<Val> {
        let r = self.arith().binary(op, a, b, ty);
        self.modelled(r)
    }

    fn cmp(&mut self, pred: &str, a: &Val, b: &Val) -> Flow<Val> {
        let r = self.arith().icmp(pred, a, b);
        self.modelled(r)
    }

    /// The result and whether it wrapped.
    fn with_overflow(&mut self, head: &str, args: &[Val], ret: &Ty) -> Flow<Val> {
        let ty = ret.element(0).map_or(Ty::Int(64), |(_, t)| t.clone());
        let (a, b) = (&args[0], &args[1]);
        let op = &head[1..];
        let r = self.op(op, a, b, &ty)?;
        if let (Val::Int(x, n), Val::Int(y, _)) = (a, b) {
            let over = integers::overflows(op, head.starts_with('s'), *x, *y, *n);
            return Ok(Val::Agg(vec![r, Val::bool(over)]));
        }
        if matches!(a, Val::Undef) || matches!(b, Val::Undef) {
            return Ok(Val::Agg(vec![Val::Undef, Val::Undef]));
        }
        if !matches!(a, Val::Sym(..)) && !matches!(b, Val::Sym(..)) {
            return Ok(Val::Agg(vec![r, Val::bool(false)])); // Address arithmetic stays inside its object.
        }
        let zero = Val::int(0, bits(&ty));
        let over = match head {
            "uadd" => self.cmp("ult", &r, a)?,
            "usub" => self.cmp("ult", a, b)?,
            "sadd" => {
                let (x, y) = (self.op("xor", a, &r, &ty)?, self.op("xor", b, &r, &ty)?);
                let both = self.op("and", &x, &y, &ty)?;
                self.cmp("slt", &both, &zero)?
            }
            "ssub" => {
                let (x, y) = (self.op("xor", a, b, &ty)?, self.op("xor", a, &r, &ty)?);
                let both = self.op("and", &x, &y, &ty)?;
                self.cmp("slt", &both, &zero)?
            }
            _ => {
                // A product wrapped if dividing it by a factor that is not zero does not give the other factor.
                let (a, b) = if matches!(b, Val::Int(..)) { (a, b) } else { (b, a) };
                match b {
                    Val::Int(0 | 1, _) => Val::bool(false),
                    Val::Int(..) => {
                        let back = self.op(if head == "smul" { "sdiv" } else { "udiv" }, &r, b, &ty)?;
                        self.cmp("ne", &back, a)?
                    }
                    _ => {
                        let is_zero = self.cmp("eq", b, &zero)?;
                        let one = Val::int(1, bits(&ty));
                        let safe = self.arith().select(&is_zero, &one, b, &ty);
                        let safe = self.modelled(safe)?;
                        let back = self.op(if head == "smul" { "sdiv" } else { "udiv" }, &r, &safe, &ty)?;
                        let wrong = self.cmp("ne", &back, a)?;
                        let no = Val::bool(false);
                        let over = self.arith().select(&is_zero, &no, &wrong, &Ty::Int(1));
                        self.modelled(over)?
                    }
                }
            }
        };
        Ok(Val::Agg(vec![r, over]))
    }

    fn saturating(&mut self, head: &str, args: &[Val], ret: &Ty) -> Flow<Val> {
        let n = bits(ret);
        if let (Val::Int(x, _), Val::Int(y, _)) = (&args[0], &args[1]) {
            return Ok(Val::int(
                integers::saturate(&head[1..], head.starts_with('s'), *x, *y, n),
                n,
            ));
        }
        let pair = Ty::Struct(vec![(0, ret.clone()), (ret.size(), Ty::Int(1))], ret.size() + 1);
        let Val::Agg(items) = self.with_overflow(head, args, &pair)? else {
            return self.refuse("saturating arithmetic on values known at run time only");
        };
        let limit = match head {
            "usub" => Val::int(0, n),
            "uadd" => Val::int(u128::MAX, n),
            _ => return self.refuse("signed saturating arithmetic on values known at run time only"),
        };
        let r = self.arith().select(&items[1], &limit, &items[0], ret);
        self.modelled(r)
    }

    fn extreme(&mut self, head: &str, args: &[Val], ret: &Ty) -> Flow<Val> {
        let pred = match head {
            "umin" => "ult",
            "umax" => "ugt",
            "smin" => "slt",
            _ => "sgt",
        };
        let first = self.cmp(pred, &args[0], &args[1])?;
        let r = self.arith().select(&first, &args[0], &args[1], ret);
        self.modelled(r)
    }

    /// Less, equal or greater: -1, 0 or 1.
    fn order(&mut self, head: &str, args: &[Val], ret: &Ty) -> Flow<Val> {
        let (less, more) = if head == "scmp" { ("slt", "sgt") } else { ("ult", "ugt") };
        let (less, more) = (self.cmp(less, &args[0], &args[1])?, self.cmp(more, &args[0], &args[1])?);
        let [minus, zero, one] = [-1, 0, 1].map(|x| Val::signed(x, bits(ret)));
        let r = self.arith().select(&more, &one, &zero, ret);
        let r = self.modelled(r)?;
        let r = self.arith().select(&less, &minus, &r, ret);
        self.modelled(r)
    }

    fn abs(&mut self, a: &Val, ret: &Ty) -> Flow<Val> {
        let zero = Val::int(0, bits(ret));
        let minus = self.op("sub", &zero, a, ret)?;
        let negative = self.cmp("slt", a, &zero)?;
        let r = self.arith().select(&negative, &minus, a, ret);
        self.modelled(r)
    }

    fn bits(&mut self, head: &str, args: &[Val]) -> Flow<Val> {
        let Val::Int(x, n) = args[0] else {
            let v = self.number(&args[0])?;
            let n = match &args[0] {
                Val::Sym(_, t) => bits(t),
                _ => 64,
            };
            let mut fixed = args.to_vec();
            fixed[0] = Val::signed(i128::from(v), n);
            return self.bits(head, &fixed);
        };
        if let Some(seen) = integers::bits(head, x, n) {
            return Ok(Val::int(seen, n));
        }
        let (y, shift) = (self.whole(&args[1])?, self.whole(&args[2])?);
        Ok(Val::int(integers::funnel(head == "fshl", x, y, shift, n), n))
    }

    /// An integer without a sign; asks for a decision if only run time knows it.
    fn whole(&mut self, v: &Val) -> Flow<u128> {
        match v {
            Val::Int(x, _) => Ok(*x),
            other => Ok(self.number(other)? as u64 as u128),
        }
    }

    fn float_to_int(&mut self, head: &str, a: &Val, ret: &Ty) -> Flow<Val> {
        let n = bits(ret);
        let x = match a {
            Val::F32(x) => f64::from(*x),
            Val::F64(x) => *x,
            _ => {
                let from = match a {
                    Val::Sym(_, t) => t.clone(),
                    _ => Ty::F64,
                };
                let r = self.arith().cast(head, a, &from, ret);
                return self.modelled(r);
            }
        };
        Ok(Val::int(integers::from_float(head == "fptosi", x, n), n))
    }
}

fn bits(ty: &Ty) -> u32 {
    match ty {
        Ty::Int(n) => *n,
        _ => 64,
    }
}
