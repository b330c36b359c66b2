//! Calls LibTorch's C functions without compiled code, and small facts that torch-sys has no function for.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>

extern thread_local char *torch_last_err;

namespace {

using Words = const uint64_t *;
using Doubles = const double *;

/// On x86-64 and AArch64 Linux, integers (and pointers) and doubles travel independently of each other: integers in
/// registers, then in 8-byte stack slots in order; at most eight doubles in registers. Arguments beyond those that the
/// callee takes are ignored. So one signature serves every `atg_*` function.
template <size_t... I> void *call(void *code, Words w, Doubles d, std::index_sequence<I...>) {
  auto f = reinterpret_cast<void *(*)(decltype((void)I, uint64_t())..., double, double, double, double)>(code);
  return f(w[I]..., d[0], d[1], d[2], d[3]);
}

} // namespace

extern "C" {

/// `words` holds `COTANGENT_CALL_WORDS` integers, `doubles` four. Returns what the function returns.
void *cotangent_call(void *code, Words words, Doubles doubles) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard no_grad;
  return call(code, words, doubles, std::make_index_sequence<64>());
}

/// A tensor without storage, for shape inference; null on failure.
at::Tensor *cotangent_meta_tensor(const int64_t *shape, int32_t rank, int32_t kind) {
  try {
    auto options = at::TensorOptions().device(at::kMeta).dtype(at::ScalarType(kind));
    return new at::Tensor(at::empty(at::IntArrayRef(shape, rank), options));
  } catch (const std::exception &e) {
    free(torch_last_err);
    torch_last_err = strdup(e.what());
    return nullptr;
  }
}

/// Does the tensor have a grad_fn?
int32_t cotangent_has_grad_fn(const at::Tensor *x) { return x->defined() && x->grad_fn() != nullptr; }

/// The one element of a tensor as a double. Returns non-zero on failure.
int32_t cotangent_item(const at::Tensor *x, double *out) {
  try {
    *out = x->item().toDouble();
    return 0;
  } catch (const std::exception &e) {
    free(torch_last_err);
    torch_last_err = strdup(e.what());
    return 1;
  }
}

/// A region wrote to a tensor that others may hold: whoever saved it must notice.
void cotangent_bump_version(at::Tensor *x) {
  if (x->defined() && !x->is_inference()) {
    x->unsafeGetTensorImpl()->bump_version();
  }
}

} // extern "C"
