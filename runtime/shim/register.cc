// Compiled functions as operators of LibTorch's dispatcher (`torch.ops.<namespace>.<function>`).

#include "shim.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {

// An argument or result. The layout is that of `torch::operators::Value`.
struct CotangentValue {
  int64_t tag;  // What it is: one of the constants below.
  int64_t integer;
  double real;
  Handle tensor;
  const Handle *list;
  uint64_t count;
};
constexpr int64_t absent = 0, tensor = 1, tensors = 2, real = 3, integer = 4, flag = 5;

// Runs a function: fills one result per return of the schema, with handles of its own. `recorded` says whether LibTorch
// is to record gradients. Gives a text on failure, which the caller frees.
using Call = char *(*)(const void *function, const CotangentValue *args, size_t count, CotangentValue *results,
                       size_t result_count, bool recorded);

CotangentValue lend(c10::IValue &value, std::vector<std::vector<at::Tensor>> &lists,
                    std::vector<std::vector<Handle>> &handles) {
  CotangentValue out{absent, 0, 0, nullptr, nullptr, 0};
  if (value.isTensor()) {
    lists.push_back({value.toTensor()});
    out.tag = tensor;
    out.tensor = &lists.back()[0];
  } else if (value.isTensorList()) {
    lists.push_back(value.toTensorVector());
    handles.emplace_back();
    for (auto &t : lists.back()) handles.back().push_back(&t);
    out.tag = tensors;
    out.list = handles.back().data();
    out.count = handles.back().size();
  } else if (value.isDouble()) {
    out.tag = real;
    out.real = value.toDouble();
  } else if (value.isInt()) {
    out.tag = integer;
    out.integer = value.toInt();
  } else if (value.isBool()) {
    out.tag = flag;
    out.integer = value.toBool();
  } else {
    TORCH_CHECK(value.isNone(), "an argument of a type that Cotangent does not pass on: ", value.tagKind());
  }
  return out;
}

c10::IValue take(CotangentValue &value) {
  switch (value.tag) {
    case tensor: {
      std::unique_ptr<at::Tensor> owned(value.tensor);
      return c10::IValue(std::move(*owned));
    }
    case real: return c10::IValue(value.real);
    case integer: return c10::IValue(value.integer);
    case flag: return c10::IValue(value.integer != 0);
    default: return c10::IValue();
  }
}

struct Kernel : c10::OperatorKernel {
  Kernel(const void *function, Call call, bool recorded) : function(function), call(call), recorded(recorded) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
    const size_t count = op.schema().arguments().size();
    std::vector<std::vector<at::Tensor>> lists;
    std::vector<std::vector<Handle>> handles;
    lists.reserve(count);
    handles.reserve(count);
    std::vector<CotangentValue> args, results(op.schema().returns().size());
    for (auto &value : torch::jit::last(*stack, count)) {
      c10::IValue copy(value);
      args.push_back(lend(copy, lists, handles));
    }
    char *error = call(function, args.data(), count, results.data(), results.size(), recorded);
    if (error != nullptr) {
      std::string text(error);
      free(error);
      TORCH_CHECK(false, text);
    }
    torch::jit::drop(*stack, count);
    for (auto &result : results) torch::jit::push(*stack, take(result));
  }

  const void *function;
  Call call;
  bool recorded;
};

// Registrations last as long as the program.
std::mutex mutex;
std::vector<std::unique_ptr<torch::Library>> &libraries() {
  static auto *all = new std::vector<std::unique_ptr<torch::Library>>();
  return *all;
}

}  // namespace

extern "C" {

char *cotangent_register(const char *space, const char *name, const char *schema, const void *function, Call call) {
  return guarded([&] {
    std::lock_guard<std::mutex> lock(mutex);
    auto library =
        std::make_unique<torch::Library>(torch::Library::FRAGMENT, space, std::nullopt, __FILE__, __LINE__);
    library->def(schema);
    auto kernel = [&](bool recorded) {
      return torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(function, call, recorded));
    };
    library->impl(name, torch::dispatch(c10::DispatchKey::Autograd, kernel(true)));
    library->impl(name, torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, kernel(false)));
    libraries().push_back(std::move(library));
  });
}

// Calls any operator by its name, through the dispatcher. Results are handles of their own.
char *cotangent_dispatch(const char *name, const CotangentValue *args, size_t count, CotangentValue *results,
                         size_t result_count) {
  return guarded([&] {
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    torch::jit::Stack stack;
    for (size_t i = 0; i < count; ++i) {
      const auto &arg = args[i];
      switch (arg.tag) {
        case tensor: stack.emplace_back(*arg.tensor); break;
        case tensors: {
          std::vector<at::Tensor> list;
          for (uint64_t k = 0; k < arg.count; ++k) list.push_back(*arg.list[k]);
          stack.emplace_back(std::move(list));
          break;
        }
        case real: stack.emplace_back(arg.real); break;
        case integer: stack.emplace_back(arg.integer); break;
        case flag: stack.emplace_back(arg.integer != 0); break;
        default: stack.emplace_back();
      }
    }
    op.callBoxed(&stack);
    TORCH_CHECK(stack.size() == result_count, "`", name, "` gives ", stack.size(), " results");
    for (size_t i = 0; i < result_count; ++i) {
      results[i] = CotangentValue{absent, 0, 0, nullptr, nullptr, 0};
      if (stack[i].isTensor()) {
        results[i].tag = tensor;
        results[i].tensor = new at::Tensor(stack[i].toTensor());
      } else if (stack[i].isDouble()) {
        results[i].tag = real;
        results[i].real = stack[i].toDouble();
      }
    }
  });
}

}  // extern "C"
