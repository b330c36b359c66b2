//! LibTorch functions that `torch-sys` binds outside the generated `atg_*` family.

use super::{Facts, OpDef, Param, ParamKind, Results};

/// * `copy_` is the C function `at_copy_`: writes `src`, broadcast and cast, into `self`.
/// * `get` is `at_get`: `self[index]` along the first dimension, a view (`select(0, index)`).
/// * `shallow_clone` is `at_shallow_clone`: a second handle to the same tensor.
pub(super) fn table() -> Vec<OpDef> {
    let tensor = |name| Param {
        name,
        kind: ParamKind::Tensor,
    };
    let index = Param {
        name: "index",
        kind: ParamKind::Int,
    };
    let view = Facts {
        view: true,
        ..Facts::default()
    };
    let writes = Facts {
        mutates: vec![0],
        ..Facts::default()
    };
    [
        ("copy_", vec![tensor("self"), tensor("src")], writes),
        ("get", vec![tensor("self"), index], view.clone()),
        ("shallow_clone", vec![tensor("self")], view),
    ]
    .into_iter()
    .map(|(name, params, facts)| OpDef {
        name,
        base: name,
        params,
        results: Results::Count(1),
        facts,
        own: None,
    })
    .collect()
}
