//! LibTorch's C functions: each call becomes an instruction of the graph.

use crate::code::Ty;
use crate::eval::{Eval, Flow, Handle, Stop};
use crate::memory::Cell;
use crate::value::{Base, Ptr, Val};
use cotangent_graph::ir::{Arg, Kind, Type, Value};
use cotangent_graph::ops::{Op, ParamKind, Results};

impl Eval<'_> {
    /// A call of `atg_*`, `at_*` or `ats_*`.
    pub(crate) fn libtorch(&mut self, name: &str, args: &[Val], ret: &Ty) -> Flow<Val> {
        if let Some(op) = name.strip_prefix("atg_") {
            return match Op::find(op).filter(|o| o.is_libtorch()) {
                Some(op) => self.operation(op, args, ret),
                None => self.refuse(format!(
                    "`{op}` does not give tensors; call it outside of the differentiable function"
                )),
            };
        }
        match name {
            "ats_int" | "ats_float" => {
                let arg = self.arg(&args[0])?;
                self.scalars.push(arg);
                Ok(Val::Ptr(Ptr::to(Base::Scalar(self.scalars.len() - 1))))
            }
            "ats_free" => Ok(Val::Undef),
            "at_shallow_clone" => {
                let mut t = self.tensor(&args[0])?;
                if !self.inactive.is_empty() {
                    t = self.emit(Op::named("detach"), vec![Arg::Value(t)], 1)?[0];
                }
                Ok(self.handle(t))
            }
            "at_free" => self.free_handle(&args[0]),
            "at_dim" => self.metadata("dim", &args[0], ret),
            "at_scalar_type" => self.metadata("kind", &args[0], ret),
            "at_device" => self.metadata("device", &args[0], ret),
            "at_requires_grad" => self.metadata("requires_grad", &args[0], ret),
            "at_defined" => match &args[0] {
                Val::Ptr(Ptr {
                    base: Base::Handle(_), ..
                }) => Ok(Val::int(1, 32)),
                _ => self.metadata("defined", &args[0], ret),
            },
            "at_shape" => self.shape(&args[0], &args[1]),
            "at_get" => {
                let (t, i) = (self.tensor(&args[0])?, self.arg(&args[1])?);
                let call = vec![Arg::Value(t), Arg::Int(0), i];
                let r = self.emit(Op::named("select"), call, 1)?;
                Ok(self.handle(r[0]))
            }
            "at_copy_" => {
                let (to, from) = (self.tensor(&args[0])?, self.tensor(&args[1])?);
                if !self.grad_enabled {
                    self.may_write_without_grad(to)?;
                }
                let from = self.constant_under_no_grad(from)?;
                self.emit(Op::named("copy_"), vec![Arg::Value(to), Arg::Value(from)], 1)?;
                Ok(Val::Undef)
            }
            "at_fill_double" | "at_fill_int64" => {
                let (t, x) = (self.tensor(&args[0])?, self.arg(&args[1])?);
                self.emit(Op::named("fill_"), vec![Arg::Value(t), x], 1)?;
                Ok(Val::Undef)
            }
            "at_grad_set_enabled" => {
                let on = self.number(&args[0])?;
                let was = std::mem::replace(&mut self.grad_enabled, on != 0);
                Ok(Val::int(u128::from(was), 32))
            }
            "at_tensor_of_data" => self.literal(args),
            "at_copy_data" => self.elements(args),
            "at_double_value_at_indexes" | "at_int64_value_at_indexes" => self.read_element(args, ret),
            _ => self.refuse(format!(
                "`{name}` is not supported in a differentiable function; call it outside"
            )),
        }
    }

    /// One operation.
    fn operation(&mut self, op: Op, args: &[Val], _ret: &Ty) -> Flow<Val> {
        let mut rest = args.iter();
        let out = match op.results {
            Results::Count(_) => rest.next().cloned(),
            Results::List => None,
        };
        let mut call = vec![];
        for p in &op.params {
            let mut next = || rest.next().cloned().unwrap_or(Val::Undef);
            let arg = match p.kind {
                ParamKind::Tensor => {
                    let t = next();
                    Arg::Value(self.tensor(&t)?)
                }
                ParamKind::OptTensor => {
                    let t = next();
                    self.optional_tensor(&t)?.map_or(Arg::None, Arg::Value)
                }
                ParamKind::Tensors | ParamKind::OptTensors => {
                    let (p, n) = (next(), next());
                    self.tensor_list(&p, &n)?
                }
                ParamKind::Scalar => {
                    let s = next();
                    self.scalar_box(&s)?
                }
                ParamKind::Int | ParamKind::Float => {
                    let v = next();
                    self.arg(&v)?
                }
                ParamKind::OptInt | ParamKind::OptFloat => {
                    let (v, null) = (next(), next());
                    if self.number(&null)? != 0 {
                        Arg::None
                    } else {
                        self.arg(&v)?
                    }
                }
                ParamKind::Ints | ParamKind::OptInts => {
                    let (p, n) = (next(), next());
                    self.numbers(&p, &n, &Ty::Int(64), Arg::Ints)?
                }
                ParamKind::Floats | ParamKind::OptFloats => {
                    let (p, n) = (next(), next());
                    self.numbers(&p, &n, &Ty::F64, Arg::Floats)?
                }
                ParamKind::Bool => match next() {
                    Val::Int(b, _) => Arg::Bool(b != 0),
                    v => self.arg(&v)?,
                },
                ParamKind::Kind | ParamKind::OptKind => {
                    let v = next();
                    let k = self.number(&v)?;
                    match Kind::from_number(k) {
                        Some(k) => Arg::Kind(k),
                        None if k < 0 && p.kind == ParamKind::OptKind => Arg::None,
                        // Quantized and other exotic kinds: the original may handle them, a derivative does not exist.
                        None => return Err(Stop::Replay),
                    }
                }
                ParamKind::Device => {
                    let v = next();
                    Arg::Device(self.number(&v)? as i32)
                }
                ParamKind::Str => {
                    let (p, n) = (next(), next());
                    Arg::Str(self.text(&p, &n)?)
                }
                ParamKind::Any => unreachable!("not a LibTorch function"),
            };
            call.push(arg);
        }
        if !self.grad_enabled {
            call = self.constants_under_no_grad(op, call)?;
        }
        match op.results {
            Results::Count(n) => {
                let mut results = self.emit(op, call, n)?;
                if !self.grad_enabled && op.facts.mutates.is_empty() {
                    for r in &mut results {
                        *r = self.emit(Op::named("detach"), vec![Arg::Value(*r)], 1)?[0];
                    }
                }
                let out = out.unwrap_or(Val::Undef);
                for (k, r) in results.into_iter().enumerate() {
                    let h = self.handle(r);
                    let at = self.offset(out.clone(), 8 * k as i64)?;
                    self.store(&at, &h, &Ty::Ptr)?;
                }
                Ok(Val::Undef)
            }
            Results::List => {
                let loc = self.loc();
                let list = self.trace.tensors(op, call, vec![Type::List], loc)[0];
                self.lists.push(list);
                Ok(Val::Ptr(Ptr::to(Base::List(self.lists.len() - 1))))
            }
        }
    }

    /// Under `no_grad`, what an in-place op reads beside its target is a constant.
    fn constants_under_no_grad(&mut self, op: Op, call: Vec<Arg>) -> Flow<Vec<Arg>> {
        if op.facts.mutates.is_empty() {
            return Ok(call);
        }
        for i in &op.facts.mutates {
            if let Some(Arg::Value(target)) = call.get(*i) {
                self.may_write_without_grad(*target)?;
            }
        }
        call.into_iter()
            .enumerate()
            .map(|(i, a)| match a {
                Arg::Value(v) if !op.facts.mutates.contains(&i) && self.trace.graph.ty(v).is_tensor() => {
                    Ok(Arg::Value(self.constant_under_no_grad(v)?))
                }
                a => Ok(a),
            })
            .collect()
    }

    /// LibTorch keeps the derivative of a tensor that is written to under `no_grad` as if it had not been: only a tensor
    /// that has none (a buffer of the caller, a constant) may be written to there.
    fn may_write_without_grad(&mut self, target: Value) -> Flow<()> {
        let made = self.trace.graph.insts.iter().find(|i| i.results.contains(&target));
        let constant = made.is_some_and(|i| {
            let reads_tensors =
                i.op.params
                    .iter()
                    .any(|p| matches!(p.kind, ParamKind::Tensor | ParamKind::Tensors));
            matches!(i.op.name, "host.tensor" | "detach") || (i.op.is_libtorch() && !reads_tensors)
        });
        if constant {
            return Ok(());
        }
        self.refuse(
            "a tensor that depends on others is written to under `no_grad`, which would leave its derivative wrong",
        )
    }

    fn constant_under_no_grad(&mut self, v: Value) -> Flow<Value> {
        if self.grad_enabled {
            return Ok(v);
        }
        Ok(self.emit(Op::named("detach"), vec![Arg::Value(v)], 1)?[0])
    }

    pub(crate) fn emit(&mut self, op: Op, args: Vec<Arg>, results: usize) -> Flow<Vec<Value>> {
        let loc = self.loc();
        Ok(self.trace.tensors(op, args, vec![Type::Tensor(None); results], loc))
    }

    /// A new C handle of a tensor.
    pub(crate) fn handle(&mut self, value: Value) -> Val {
        *self.held.entry(value).or_default() += 1;
        self.handles.push(Handle { value, freed: false });
        Val::Ptr(Ptr::to(Base::Handle(self.handles.len() - 1)))
    }

    /// The tensor of a C handle.
    pub(crate) fn tensor(&mut self, p: &Val) -> Flow<Value> {
        match p {
            Val::Ptr(Ptr {
                base: Base::Handle(h),
                off: 0,
            }) => {
                let h = &self.handles[*h];
                if h.freed {
                    return self.refuse("a tensor is used after it was freed");
                }
                Ok(h.value)
            }
            Val::Ptr(Ptr {
                base: Base::Host(v),
                off: 0,
            }) => {
                let loc = self.loc();
                Ok(self
                    .trace
                    .scalar("host.tensor", vec![Arg::Value(*v)], Type::Tensor(None), loc))
            }
            other => self.refuse(format!("{other} is not a tensor")),
        }
    }

    fn optional_tensor(&mut self, p: &Val) -> Flow<Option<Value>> {
        match p {
            Val::Ptr(p) if p.is_null() => Ok(None),
            Val::Int(0, _) => Ok(None),
            _ => self.tensor(p).map(Some),
        }
    }

    /// Nothing reads the value any more.
    pub(crate) fn release(&mut self, value: Value) {
        let loc = self.loc();
        self.trace
            .tensors(Op::named("release"), vec![Arg::Value(value)], vec![], loc);
    }

    pub(crate) fn free_handle(&mut self, p: &Val) -> Flow<Val> {
        match p {
            Val::Ptr(Ptr {
                base: Base::Handle(h),
                off: 0,
            }) => {
                let Handle { value, freed } = &mut self.handles[*h];
                let value = *value;
                if !std::mem::replace(freed, true) {
                    let held = self.held.entry(value).or_default();
                    *held = held.saturating_sub(1);
                    if *held == 0 {
                        self.release(value);
                    }
                }
            }
            Val::Ptr(Ptr {
                base: Base::Host(v),
                off: 0,
            }) => self.dropped.push(*v),
            Val::Ptr(p) if p.is_null() => {}
            other => return self.refuse(format!("{other} is freed as a tensor")),
        }
        Ok(Val::Undef)
    }

    pub(crate) fn metadata(&mut self, op: &'static str, p: &Val, ret: &Ty) -> Flow<Val> {
        let t = self.tensor(p)?;
        let r = self.arith().emit(op, vec![Arg::Value(t)], ret);
        self.modelled(r)
    }

    fn shape(&mut self, p: &Val, to: &Val) -> Flow<Val> {
        let t = self.tensor(p)?;
        if let Val::Ptr(Ptr {
            base: Base::Absolute, ..
        }) = to
        {
            // Room for no size: right for a tensor of no dimension.
            let loc = self.loc();
            let dim = self.trace.scalar("dim", vec![Arg::Value(t)], Type::Int(64), loc);
            let dim = self.arith().known(dim, &Ty::Int(64));
            let none = self.arith().icmp("eq", &dim, &Val::int(0, 64));
            let none = self.modelled(none)?;
            return if self.decide_bool(&none)? {
                Ok(Val::Undef)
            } else {
                Err(Stop::Replay)
            };
        }
        let (o, off) = self.writable(to, 0)?;
        let room = self.objects[o].size.map_or(8 * 64, |s| s - off);
        if room == 0 {
            return Ok(Val::Undef);
        }
        let done = self.objects[o].write_cell(off, room, Cell::Sizes(t));
        self.plain(done)?;
        Ok(Val::Undef)
    }

    fn tensor_list(&mut self, p: &Val, n: &Val) -> Flow<Arg> {
        let n = self.number(n)?;
        let mut items = vec![];
        for i in 0..n {
            let at = self.offset(p.clone(), 8 * i)?;
            let h = self.load(&at, &Ty::Ptr)?;
            items.push(self.optional_tensor(&h)?);
        }
        Ok(Arg::List(items))
    }

    fn scalar_box(&mut self, p: &Val) -> Flow<Arg> {
        match p {
            Val::Ptr(Ptr {
                base: Base::Scalar(s),
                off: 0,
            }) => Ok(self.scalars[*s].clone()),
            other => self.refuse(format!("{other} is not a scalar")),
        }
    }

    pub(crate) fn numbers(&mut self, p: &Val, n: &Val, ty: &Ty, list: fn(Vec<Arg>) -> Arg) -> Flow<Arg> {
        if matches!(p, Val::Ptr(p) if p.is_null()) {
            return Ok(Arg::None);
        }
        let n = self.number(n)?;
        let mut items = vec![];
        for i in 0..n {
            let at = self.offset(p.clone(), 8 * i)?;
            let v = self.load(&at, ty)?;
            items.push(self.arg(&v)?);
        }
        Ok(list(items))
    }

    pub(crate) fn text(&mut self, p: &Val, n: &Val) -> Flow<String> {
        let n = self.number(n)?;
        let mut bytes = vec![];
        for i in 0..n {
            let at = self.offset(p.clone(), i)?;
            let c = self.load(&at, &Ty::Int(8))?;
            bytes.push(self.number(&c)? as u8);
        }
        match String::from_utf8(bytes) {
            Ok(s) => Ok(s),
            Err(_) => self.refuse("a string that is not UTF-8"),
        }
    }

    /// Item `i` of a returned list: null after the last.
    pub(crate) fn list_item(&mut self, l: usize, i: i64) -> Flow<Val> {
        if let Some(h) = self.list_items.get(&(l, i)) {
            return Ok(Val::Ptr(Ptr::to(Base::Handle(*h))));
        }
        let loc = self.loc();
        let len = self
            .trace
            .scalar("list.len", vec![Arg::Value(self.lists[l])], Type::Int(64), loc.clone());
        let len = self.arith().known(len, &Ty::Int(64));
        let more = self.arith().icmp("sgt", &len, &Val::signed(i128::from(i), 64));
        let more = self.modelled(more)?;
        if !self.decide_bool(&more)? {
            return Ok(Val::null());
        }
        let item = self.trace.scalar(
            "list.get",
            vec![Arg::Value(self.lists[l]), Arg::Int(i)],
            Type::Tensor(None),
            loc,
        );
        let h = self.handle(item);
        if let Val::Ptr(Ptr {
            base: Base::Handle(h), ..
        }) = h
        {
            self.list_items.insert((l, i), h);
        }
        Ok(h)
    }
}
