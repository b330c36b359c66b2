//! Calls under autocast, where LibTorch's functions give other kinds.

use crate::functions::*;
use crate::support::*;
use tch::Tensor;

unsafe extern "C" {
    /// `at::autocast::set_autocast_enabled(at::DeviceType, bool)`: tch can switch it for CUDA only.
    #[link_name = "_ZN2at8autocast20set_autocast_enabledEN3c1010DeviceTypeEb"]
    fn set_autocast_enabled(device: i8, enabled: bool);
}

/// Runs `f` with autocast on the CPU.
fn autocast<T>(f: impl FnOnce() -> T) -> T {
    const CPU: i8 = 0;
    // SAFETY: the function sets a flag of this thread.
    unsafe { set_autocast_enabled(CPU, true) };
    let result = f();
    // SAFETY: as above.
    unsafe { set_autocast_enabled(CPU, false) };
    result
}

#[test]
fn forward_and_backward_are_refused_under_autocast_and_work_again_after_it() {
    let (x, w, v) = (random(1, &[4, 3]), random(2, &[3, 5]), random(3, &[5, 2]));
    let function = compiled_net();
    let refused = |error: cotangent_runtime::Error| {
        let text = error.to_string();
        assert!(
            text.contains("autocast is enabled") && text.contains("to_kind"),
            "{text}"
        );
    };
    refused(autocast(|| vjp::<Tensor>(function, &[&&x, &&w, &&v])).expect_err("an error"));
    refused(autocast(|| autograd::<Tensor>(function, &[&&leaf(&x), &&leaf(&w), &&leaf(&v)])).expect_err("an error"));

    let (y, run) = vjp::<Tensor>(function, &[&&x, &&w, &&v]).unwrap();
    same(&y, &net(&x, &w, &v));
    let seed = || [random(1, &[4, 2])];
    let before = pull(&run, &seed()).unwrap();
    refused(autocast(|| pull(&run, &seed())).expect_err("an error"));
    for (a, b) in before.iter().zip(pull(&run, &seed()).unwrap()) {
        same(a, &b);
    }
}

#[test]
fn autocast_of_a_device_that_is_not_there_changes_nothing() {
    let (x, w, v) = (random(1, &[4, 3]), random(2, &[3, 5]), random(3, &[5, 2]));
    let (y, _) = tch::autocast(true, || vjp::<Tensor>(compiled_net(), &[&&x, &&w, &&v])).unwrap();
    same(&y, &net(&x, &w, &v));
}
