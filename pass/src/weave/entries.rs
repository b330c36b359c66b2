//! What the runtime calls: derivatives of a shim, and the table of them. The layout is told in the runtime's `kernel`.
//!
//! ```text
//! aug(args, out, arena) -> frame     rev(frame, arena)     grad(args, out, arena)     jvp(args, out, arena)
//! ```
//!
//! The addresses `args` and `out` are objects of the arena's table, where their shadows are found.

use crate::kernel::{Activity, DiffRequest, Mode};
use crate::llvm::{Builder, Function, Mod, Type, Value};

/// The runtime's function that asks for derivatives of a kernel.
pub(crate) const KERNEL_MARKER: &str = "cotangent_kernel";
/// Symbol of the table.
const TABLE: &str = "cotangent_kernels";
/// Symbol of its length.
const LENGTH: &str = "cotangent_kernels_len";
/// The support function that finds shadows.
const SHADOW: &str = "cotangent.object";

/// A kernel that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    /// What the runtime knows it by.
    pub(crate) key: String,
    /// Its shim, by the name that it has in the assembled module.
    pub(crate) shim: String,
    /// What is asked for, as bits: 1 pullback, 2 gradient, 4 tangent.
    pub(crate) modes: u32,
    /// The functions that ask for it, by the names that they would have in the assembled module.
    pub(crate) thunks: Vec<String>,
}

/// Must the symbol be visible to the program?
pub(crate) fn is_public(name: &str) -> bool {
    name == TABLE || name == LENGTH
}

/// Writes the functions and the table; gives what they need of the engine.
pub(crate) fn write<'m>(module: Mod<'m>, kernels: &[Kernel]) -> Vec<DiffRequest<'m>> {
    let mut requests = Vec::new();
    let context = module.context();
    let (ptr, words) = (context.ptr(), context.int(64));
    let row = context.structure(&[ptr, words, ptr, ptr, ptr, ptr]);
    let mut rows = Vec::new();
    for (i, kernel) in kernels.iter().enumerate() {
        let Some(shim) = module.function(&kernel.shim) else {
            continue;
        };
        let writer = Writer {
            module,
            shim,
            name: format!("cotangent.kernel.{i}"),
        };
        let entries = writer.entries(kernel.modes, &mut requests);
        let key = module.add_global(
            &format!("{}.key", writer.name),
            context.int(8).array(kernel.key.len() as u64 + 1),
        );
        key.set_initializer(context.const_string(&kernel.key));
        key.set_global_constant();
        let mut fields = vec![key, words.int(kernel.key.len() as u64)];
        fields.extend(entries.iter().map(|e| e.map_or(ptr.zero(), Function::value)));
        let value = context.const_structure(&fields);
        for thunk in kernel.thunks.iter().filter_map(|t| module.function(t)) {
            answer(module, thunk, row, value, &writer.name);
        }
        rows.push(value);
    }
    let table = module.add_global(TABLE, row.array(rows.len() as u64));
    table.set_initializer(row.const_array(&rows));
    table.set_global_constant();
    let length = module.add_global(LENGTH, words);
    length.set_initializer(words.int(rows.len() as u64));
    length.set_global_constant();
    requests
}

/// Within differentiated code, the answer to a request is known.
fn answer<'m>(module: Mod<'m>, thunk: Function<'m>, row: Type<'m>, value: Value<'m>, name: &str) {
    let known = module.global(name).unwrap_or_else(|| {
        let known = module.add_global(name, row);
        known.set_initializer(value);
        known.set_global_constant();
        known
    });
    thunk.value().delete_body();
    let b = Builder::new(module.context());
    b.at_end(thunk.append_block("entry"));
    b.ret(Some(known));
}

struct Writer<'m> {
    module: Mod<'m>,
    shim: Function<'m>,
    name: String,
}

impl<'m> Writer<'m> {
    /// aug, rev, grad, jvp: those that are asked for.
    fn entries(&self, modes: u32, requests: &mut Vec<DiffRequest<'m>>) -> [Option<Function<'m>>; 4] {
        let context = self.module.context();
        let (ptr, void) = (context.ptr(), context.void());
        let pullback = modes & 1 != 0;
        let mut ask = |mode, what: &str, result, parameters: &[Type<'m>]| {
            let entry = format!("{}.{what}", self.name);
            requests.push(DiffRequest {
                function: self.shim,
                mode,
                arguments: vec![Activity::Dup; 2],
                result_active: false,
                primal_result: false,
                seed_argument: false,
                arena_argument: true,
                entry: entry.clone(),
            });
            self.module.add_function(&entry, context.function(result, parameters))
        };
        let aug = pullback.then(|| {
            let frame = context.structure(&[ptr]);
            let derived = ask(Mode::Augmented, "augmented", frame, &[ptr; 5]);
            self.call(derived, "aug", ptr, |b, given| Some(b.extract(given, 0)))
        });
        let rev = pullback.then(|| ask(Mode::Reverse, "rev", void, &[ptr; 2]));
        let grad = (modes & 2 != 0).then(|| {
            let derived = ask(Mode::Combined, "gradient", void, &[ptr; 5]);
            self.call(derived, "grad", void, |_, _| None)
        });
        let jvp = (modes & 4 != 0).then(|| {
            let derived = ask(Mode::Forward, "tangent", void, &[ptr; 5]);
            self.call(derived, "jvp", void, |_, _| None)
        });
        [aug, rev, grad, jvp]
    }

    /// A function of `args`, `out` and `arena` that finds the shadows and calls the derivative.
    fn call(
        &self,
        derived: Function<'m>,
        what: &str,
        result: Type<'m>,
        of: impl Fn(&Builder<'m>, Value<'m>) -> Option<Value<'m>>,
    ) -> Function<'m> {
        let (module, context) = (self.module, self.module.context());
        let ptr = context.ptr();
        let f = module.add_function(&format!("{}.{what}", self.name), context.function(result, &[ptr; 3]));
        let shadow = || module.add_function(SHADOW, context.function(ptr, &[ptr; 2]));
        let shadow = module.function(SHADOW).unwrap_or_else(shadow);
        let b = Builder::new(context);
        b.at_end(f.append_block("entry"));
        if let [args, out, arena] = f.params()[..] {
            let of_args = b.call(shadow, &[arena, args]);
            let of_out = b.call(shadow, &[arena, out]);
            let given = b.call(derived, &[args, of_args, out, of_out, arena]);
            b.ret(of(&b, given));
        }
        f
    }
}
