//! Tapes: LibTorch's own record of one opaque op, for that op's derivative.
//!
//! `open`, `arg` for each tensor, the op itself, `close`: between `open` and `close` autograd is on, although the
//! region around runs below it. The op sees detached copies of its tensors, so that nothing outside is recorded.

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

// Where torch-sys keeps the message of the last failure; `get_and_reset_last_err` takes it.
extern thread_local char *torch_last_err;

namespace {

/// Autograd as outside of regions: its dispatch keys and grad mode.
class AutogradOn {
public:
  explicit AutogradOn(bool grad) : force_(keys()), grad_(grad) {}

private:
  static c10::impl::LocalDispatchKeySet keys() {
    auto set = c10::impl::tls_local_dispatch_key_set();
    set.excluded_ = set.excluded_ - c10::autograd_dispatch_keyset_with_ADInplaceOrView;
    return set;
  }

  c10::impl::ForceDispatchKeyGuard force_;
  at::AutoGradMode grad_;
};

void fail(const char *what) {
  free(torch_last_err);
  torch_last_err = strdup(what);
}

} // namespace

struct Tape {
  // The tensors that a derivative is wanted for, in the order of the places that the instruction names.
  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> outputs;
  // While the op runs: what it is called with. Handles point into it, so it never grows beyond its reserve.
  std::vector<at::Tensor> args;
  std::unique_ptr<AutogradOn> on;
};

extern "C" {

Tape *cotangent_tape_open(int32_t args) {
  auto tape = std::make_unique<Tape>();
  tape->args.reserve(args);
  tape->on = std::make_unique<AutogradOn>(true);
  return tape.release();
}

/// The tensor that the op is to be called with in place of `x`.
at::Tensor *cotangent_tape_arg(Tape *tape, at::Tensor *x, int32_t active) {
  // Detaching a dense tensor does not fail; an undefined tensor stays what it is.
  tape->args.push_back(x->defined() ? x->detach() : at::Tensor());
  at::Tensor &copy = tape->args.back();
  if (active) {
    copy.set_requires_grad(true);
    tape->leaves.push_back(copy);
  }
  return &copy;
}

/// Ends the record. The handles in `results` become detached tensors.
void cotangent_tape_close(Tape *tape, at::Tensor **results, int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    tape->outputs.push_back(*results[i]);
    if (results[i]->defined()) {
      *results[i] = results[i]->detach();
    }
  }
  tape->args.clear();
  tape->on.reset();
}

void cotangent_tape_free(Tape *tape) { delete tape; }

/// The cotangents of the tape's leaves. A null or undefined cotangent is none. A result to which no path leads is
/// undefined; where `materialize` says so, zeros. Returns non-zero on failure.
int32_t cotangent_tape_vjp(const Tape *tape, at::Tensor *const *cotangents, at::Tensor **results,
                           const uint8_t *materialize) {
  try {
    AutogradOn on(false);
    torch::autograd::variable_list outputs, seeds;
    for (size_t i = 0; i < tape->outputs.size(); i++) {
      const at::Tensor &y = tape->outputs[i];
      if (cotangents[i] && cotangents[i]->defined() && y.defined() && y.requires_grad()) {
        outputs.push_back(y);
        seeds.push_back(cotangents[i]->detach());
      }
    }
    torch::autograd::variable_list got(tape->leaves.size());
    if (!outputs.empty() && !tape->leaves.empty()) {
      got = torch::autograd::grad(outputs, tape->leaves, seeds, /*retain_graph=*/true, /*create_graph=*/false,
                                  /*allow_unused=*/true);
    }
    for (size_t i = 0; i < got.size(); i++) {
      if (!got[i].defined() && materialize[i]) {
        got[i] = at::zeros_like(tape->leaves[i].detach());
      }
    }
    for (size_t i = 0; i < got.size(); i++) {
      results[i] = new at::Tensor(got[i].defined() ? got[i].detach() : got[i]);
    }
    return 0;
  } catch (const std::exception &e) {
    fail(e.what());
  } catch (...) {
    fail("an exception of an unknown type left LibTorch");
  }
  return 1;
}

} // extern "C"
