// The node that a compiled function is in LibTorch's graph: its apply runs the compiled pullback.

#include "shim.h"

#include <torch/csrc/autograd/VariableTypeUtils.h>
#include <torch/csrc/autograd/function.h>

#include <mutex>
#include <string>

namespace {

struct CotangentNode;

// What Rust does for a node. Texts are freed by the caller.
struct Callbacks {
  // The cotangents of the edges that `needs` asks for. A null handle is the undefined tensor, in seeds and in results.
  // `node` is not null where the result must be differentiable itself.
  char *(*apply)(const void *run, CotangentNode *node, const Handle *seeds, size_t seed_count,
                 const uint8_t *needs, size_t need_count, Handle *out);
  // What was saved will be freed after the next `apply`, which may use it up.
  void (*will_release)(const void *run);
  // Frees what was saved.
  void (*release)(const void *run);
  // Ends the node's share of the run.
  void (*drop)(const void *run);
};

struct CotangentNode : torch::autograd::Node {
  CotangentNode(const Callbacks *callbacks, const void *run, std::string name, torch::autograd::edge_list &&edges)
      : Node(std::move(edges)), callbacks(callbacks), run(run), label(std::move(name)) {}

  ~CotangentNode() override { callbacks->drop(run); }

  std::string name() const override { return label; }

  // The run behind it is shared and never written to, so threads need no lock; `release` takes its own.
  torch::autograd::variable_list apply(torch::autograd::variable_list &&seeds) override {
    const size_t count = num_outputs();
    c10::SmallVector<Handle, 8> in(num_inputs(), nullptr), out(count, nullptr);
    c10::SmallVector<uint8_t, 8> needs(count, 0);
    for (size_t i = 0; i < in.size() && i < seeds.size(); ++i)
      if (seeds[i].defined()) in[i] = &seeds[i];
    bool any = false;
    for (size_t i = 0; i < count; ++i) any |= needs[i] = task_should_compute_output(i);
    torch::autograd::variable_list result(count);
    if (!any) return result;
    CotangentNode *self = at::GradMode::is_enabled() ? this : nullptr;
    char *error = callbacks->apply(run, self, in.data(), in.size(), needs.data(), count, out.data());
    for (size_t i = 0; i < count; ++i) {
      if (out[i] == nullptr) continue;
      result[i] = std::move(*out[i]);
      delete out[i];
    }
    if (error != nullptr) {
      std::string text(error);
      free(error);
      TORCH_CHECK(false, text);
    }
    return result;
  }

  void will_release_variables() override { callbacks->will_release(run); }

  void release_variables() override { callbacks->release(run); }

  const Callbacks *callbacks;
  const void *run;
  std::string label;
};

}  // namespace

extern "C" {

// Makes a node and attaches the outputs to it. Its edges are those of `parent` (if it is not null), then those of
// the tensors `from`; a null tensor is an edge to nowhere. Takes over the caller's share of `run`, on failure too.
char *cotangent_attach(const Callbacks *callbacks, const void *run, const char *name, CotangentNode *parent,
                       const Handle *from, size_t from_count, const Handle *outputs, size_t output_count) {
  c10::intrusive_ptr<CotangentNode> node;
  return guarded([&] {
    torch::autograd::edge_list edges;
    try {
      edges.reserve((parent ? parent->num_outputs() : 0) + from_count);
      if (parent) edges = parent->next_edges();
      for (size_t i = 0; i < from_count; ++i)
        edges.push_back(from[i] ? torch::autograd::impl::gradient_edge(*from[i]) : torch::autograd::Edge());
      node = c10::make_intrusive<CotangentNode>(callbacks, run, name, std::move(edges));
    } catch (...) {
      callbacks->drop(run);
      throw;
    }
    for (size_t i = 0; i < output_count; ++i) torch::autograd::set_history(*outputs[i], node);
  });
}

}  // extern "C"
