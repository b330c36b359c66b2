// Pipelines of LLVM's passes, in time that grows with the functions and not faster.
//
// Some passes take time that grows as the square of a function's blocks, in clang as here: for every load, variable or
// value they go through all code around. They are not run on functions of more blocks than they are given. What is left
// as it is is right, and may only be slower.

#include "llvm-c/Core.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassInstrumentation.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"

using namespace llvm;

// A pass by the name of its class, and the blocks of the largest function on which it runs.
struct CtLimit {
  const char *pass;
  uint64_t blocks;
};

extern "C" {

// Runs a pipeline in the words of `opt -passes`. Null, or what is wrong with the words, to be disposed of as a message.
char *ct_run_passes(LLVMModuleRef module, const char *pipeline, const CtLimit *limits, size_t count) {
  Module &m = *unwrap(module);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassInstrumentationCallbacks callbacks;
  StandardInstrumentations standard(m.getContext(), false);
  standard.registerCallbacks(callbacks, &modules);
  callbacks.registerShouldRunOptionalPassCallback([=](StringRef pass, const Any &unit) {
    auto *function = any_cast<const Function *>(&unit);
    auto exceeds = [&](const CtLimit &l) { return pass == l.pass && (*function)->size() > l.blocks; };
    return !function || std::none_of(limits, limits + count, exceeds);
  });
  PassBuilder builder(nullptr, PipelineTuningOptions(), std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes;
  if (Error error = builder.parsePassPipeline(passes, pipeline))
    return LLVMCreateMessage(toString(std::move(error)).c_str());
  passes.run(m, modules);
  return nullptr;
}
}
