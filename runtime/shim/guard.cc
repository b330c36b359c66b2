//! Runs compiled code below autograd: inside a region no tensor gets a grad_fn.

#include <ATen/core/grad_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <cstdint>

extern "C" int32_t cotangent_run(int32_t (*code)(void **, double *, void *const *), void **slots, double *floats,
                                 void *const *scalars) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard no_grad;
  return code(slots, floats, scalars);
}

// The same outside of regions: views are LibTorch's own, and gradients are recorded where `recorded` says so and grad
// mode is on.
extern "C" int32_t cotangent_replay(int32_t (*code)(void **, double *, void *const *), void **slots, double *floats,
                                    void *const *scalars, bool recorded) {
  at::AutoGradMode mode(recorded && at::GradMode::is_enabled());
  return code(slots, floats, scalars);
}
