//! Calls LibTorch's C functions without compiled code, and small facts that torch-sys has no function for.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <utility>

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

void fail(const char *what) {
  free(torch_last_err);
  torch_last_err = strdup(what);
}

/// Runs `f`; false, and the message kept, if it throws.
template <typename F> bool protect(F f) {
  try {
    f();
    return true;
  } catch (const std::exception &e) {
    fail(e.what());
  } catch (...) {
    fail("an exception of an unknown type left LibTorch");
  }
  return false;
}

} // namespace

extern "C" {

/// `words` holds 64 integers, `doubles` four. Returns what the function returns.
void *cotangent_call(void *code, Words words, Doubles doubles) {
  at::AutoDispatchBelowADInplaceOrView below;
  at::NoGradGuard no_grad;
  return call(code, words, doubles, std::make_index_sequence<64>());
}

/// Moves `count` handles out of a list that a C function gave. Returns non-zero if there is none (the function failed)
/// or it has another length.
int32_t cotangent_list_take(at::Tensor **list, at::Tensor **out, int32_t count) {
  if (list == nullptr) {
    return 1;
  }
  int32_t length = 0;
  while (list[length] != nullptr) {
    length++;
  }
  for (int32_t i = 0; i < length; i++) {
    if (length == count) {
      out[i] = list[i];
    } else {
      delete list[i];
    }
  }
  free(list);
  if (length == count) {
    return 0;
  }
  fail("a list of tensors has another length than at compile time");
  return 1;
}

/// Where the elements of `count` tensors lie, of which the first `written` are going to be written. Zero if those of one
/// do not lie in order in the CPU's memory.
int32_t cotangent_dense(at::Tensor *const *tensors, void **data, int32_t written, int32_t count) {
  try {
    for (int32_t i = 0; i < count; i++) {
      const at::Tensor &x = *tensors[i];
      if (!x.defined() || !x.is_cpu() || x.layout() != at::kStrided || !x.is_contiguous() || x.is_neg() ||
          x._is_zerotensor()) {
        return 0;
      }
      data[i] = i < written ? x.mutable_data_ptr() : const_cast<void *>(x.const_data_ptr());
    }
    return 1;
  } catch (...) {
    // The kernel that runs instead says why in its own words.
    return 0;
  }
}

// Functions that LibTorch's C interface has outside the `atg_*` family, with the signature of that family.

void cotangent_copy(at::Tensor **out, at::Tensor *self, at::Tensor *source) {
  protect([&] { out[0] = new at::Tensor(self->copy_(*source)); });
}

void cotangent_get(at::Tensor **out, at::Tensor *self, int64_t index) {
  protect([&] { out[0] = new at::Tensor(self->select(0, index)); });
}

void cotangent_shallow_clone(at::Tensor **out, at::Tensor *self) { out[0] = new at::Tensor(*self); }

/// A tensor without storage, for shape inference; null on failure.
at::Tensor *cotangent_meta_tensor(const int64_t *shape, int32_t rank, int32_t kind) {
  at::Tensor *made = nullptr;
  protect([&] {
    auto options = at::TensorOptions().device(at::kMeta).dtype(at::ScalarType(kind));
    made = new at::Tensor(at::empty(at::IntArrayRef(shape, rank), options));
  });
  return made;
}

/// The state of LibTorch's default generator, for `cotangent_generator_restore`, which takes it back; null on failure.
at::Tensor *cotangent_generator_state() {
  at::Tensor *state = nullptr;
  protect([&] {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard<std::mutex> lock(generator.mutex());
    state = new at::Tensor(generator.get_state());
  });
  return state;
}

void cotangent_generator_restore(at::Tensor *state) {
  protect([&] {
    at::Generator generator = at::detail::getDefaultCPUGenerator();
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(*state);
  });
  delete state;
}

/// Has the result the kind and shape that were inferred for it? Returns non-zero if not.
int32_t cotangent_differs(const at::Tensor *x, int32_t kind, const int64_t *shape, int32_t rank) {
  at::IntArrayRef want(shape, rank);
  if (x->defined() && x->scalar_type() == at::ScalarType(kind) && x->sizes() == want) {
    return 0;
  }
  fail("a result has another shape or kind than LibTorch tells for tensors without data: it depends on values, which "
       "Cotangent does not compile");
  return 1;
}

/// Does the tensor have a grad_fn?
int32_t cotangent_has_grad_fn(const at::Tensor *x) { return x->defined() && x->grad_fn() != nullptr; }

/// The one element of a tensor as a double. Returns non-zero on failure.
int32_t cotangent_item(const at::Tensor *x, double *out) {
  return protect([&] { *out = x->item().toDouble(); }) ? 0 : 1;
}

/// A region wrote to a tensor that others may hold: whoever saved it must notice.
void cotangent_bump_version(at::Tensor *x) {
  if (x->defined() && !x->is_inference()) {
    x->unsafeGetTensorImpl()->bump_version();
  }
}

} // extern "C"
