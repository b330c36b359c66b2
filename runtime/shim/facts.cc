// Facts about tensors, cheap enough to ask on every call, and copies of handles.

#include "shim.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/VariableTypeUtils.h>

// The artifact that the pass embeds in the program; absent in a program that was built without it.
extern "C" {
extern const unsigned char cotangent_artifact_start[] __attribute__((weak));
extern const unsigned char cotangent_artifact_end[] __attribute__((weak));
extern const unsigned char cotangent_kernels[] __attribute__((weak));
extern const int64_t cotangent_kernels_len __attribute__((weak));
// Addresses of the program's symbols that the artifact lists, in its order.
extern const uint64_t cotangent_addresses_start[] __attribute__((weak));
}

namespace {

// Numbering of torch-sys: -1 is the CPU, n is the n-th CUDA device.
int32_t device_number(const at::Tensor &t) {
  const auto device = t.device();
  switch (device.type()) {
    case at::kCPU: return -1;
    case at::kMPS: return -2;
    case at::kVulkan: return -3;
    case at::kCUDA: return device.index();
    default: return -100;
  }
}

const void *storage_of(const at::Tensor &t) {
  return t.defined() && t.has_storage() ? t.storage().unsafeGetStorageImpl() : nullptr;
}

}  // namespace

extern "C" {

const unsigned char *cotangent_artifact(size_t *length) {
  if (&cotangent_artifact_start[0] == nullptr || &cotangent_artifact_end[0] == nullptr) return nullptr;
  *length = static_cast<size_t>(cotangent_artifact_end - cotangent_artifact_start);
  return cotangent_artifact_start;
}

// The layout of the entries is that of `kernel::Kernel`.
const void *cotangent_kernel_table(size_t *length) {
  if (&cotangent_kernels[0] == nullptr || &cotangent_kernels_len == nullptr) return nullptr;
  *length = static_cast<size_t>(cotangent_kernels_len);
  return cotangent_kernels;
}

const uint64_t *cotangent_addresses() { return &cotangent_addresses_start[0]; }

// The layout is that of `torch::facts::Raw`.
struct CotangentFacts {
  const int64_t *shape;
  const int64_t *strides;  // Null where the tensor has none.
  const void *identity;
  const void *storage;
  uint64_t rank;
  int32_t kind;
  int32_t device;
  int32_t layout;  // Zero: strided.
  uint8_t requires_grad;
};

// False for the undefined tensor.
bool cotangent_facts(Handle t, CotangentFacts *out) {
  if (!t->defined()) return false;
  const auto layout = t->layout();
  const bool strided = layout == at::kStrided && !t->is_quantized();
  out->shape = t->sizes().data();
  out->strides = strided ? t->strides().data() : nullptr;
  out->identity = t->unsafeGetTensorImpl();
  out->storage = storage_of(*t);
  out->rank = static_cast<uint64_t>(t->dim());
  out->kind = static_cast<int32_t>(t->scalar_type());
  out->device = device_number(*t);
  out->layout = static_cast<int32_t>(layout);
  out->requires_grad = t->requires_grad();
  return true;
}

// `any_device` in place of a device takes them all.
constexpr int32_t any_device = INT32_MIN;

bool cotangent_matches(Handle t, int32_t kind, const int64_t *shape, size_t rank, int32_t device) {
  return t->defined() && t->layout() == at::kStrided && static_cast<int32_t>(t->scalar_type()) == kind &&
         t->sizes() == at::IntArrayRef(shape, rank) && (device == any_device || device_number(*t) == device);
}

bool cotangent_has_strides(Handle t, const int64_t *strides, size_t rank) {
  return t->strides() == at::IntArrayRef(strides, rank);
}

bool cotangent_defined(Handle t) { return t->defined(); }
bool cotangent_requires_grad(Handle t) { return t->requires_grad(); }
const void *cotangent_identity(Handle t) { return t->unsafeGetTensorImpl(); }
const void *cotangent_storage(Handle t) { return storage_of(*t); }
bool cotangent_grad_enabled() { return at::GradMode::is_enabled(); }
bool cotangent_autocast() {
  return at::autocast::is_autocast_enabled(at::kCPU) ||
         (at::hasCUDA() && at::autocast::is_autocast_enabled(at::kCUDA));
}
uint64_t cotangent_bytes(Handle t) { return t->defined() ? t->nbytes() : 0; }

// Another handle of the same tensor.
Handle cotangent_share(Handle t) { return new at::Tensor(*t); }

// The same storage and version counter without autograd: what may be kept without keeping a graph alive.
Handle cotangent_plain(Handle t) { return new at::Tensor(t->tensor_data()); }

// A tensor of its own with the same elements, off the record of autograd. Null on failure.
Handle cotangent_clone(Handle t) {
  Handle copy = nullptr;
  char *error = guarded([&] {
    at::AutoDispatchBelowADInplaceOrView below;
    copy = new at::Tensor(t->clone());
  });
  free(error);
  return copy;
}

// How often the tensor was written to; -1 where LibTorch does not count (inference tensors).
int64_t cotangent_version(Handle t) {
  if (!t->defined() || t->is_inference()) return -1;
  return static_cast<int64_t>(t->_version());
}

// LibTorch's check before a write in place; `differentiable`: what is written requires grad.
char *cotangent_check_write(Handle t, bool differentiable) {
  return guarded([&] { torch::autograd::check_inplace(*t, differentiable || t->requires_grad()); });
}

// Writes `from` into `into`, on the record of autograd or off it; the version counter counts it either way.
char *cotangent_write(Handle into, Handle from, bool recorded) {
  return guarded([&] {
    at::AutoGradMode mode(recorded && at::GradMode::is_enabled());
    into->copy_(*from);
  });
}

// Name of a tensor's type as LibTorch's messages have it: `CPUFloatType [2, 3]`.
char *cotangent_describe(Handle t) {
  if (!t->defined()) return strdup("UndefinedType []");
  auto text = t->toString() + " [";
  for (int64_t d = 0; d < t->dim(); ++d) text += (d ? ", " : "") + std::to_string(t->size(d));
  return strdup((text + "]").c_str());
}

}  // extern "C"
