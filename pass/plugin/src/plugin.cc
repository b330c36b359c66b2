// What LLVM wants of a loadable pass: the name of the pass, and where in a compiler's pipeline it runs.
//
// It runs first: at every level of optimisation it sees what the front end wrote, and what it writes is optimised with
// the rest of the program.

#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/CBindingWrapping.h"

extern "C" bool cotangent_plugin_run(LLVMModuleRef module);

namespace {
struct Cotangent : llvm::PassInfoMixin<Cotangent> {
  llvm::PreservedAnalyses run(llvm::Module &module, llvm::ModuleAnalysisManager &) {
    return cotangent_plugin_run(llvm::wrap(&module)) ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
  // Functions marked `optnone` are differentiated as well.
  static bool isRequired() { return true; }
};

void registerPasses(llvm::PassBuilder &builder) {
  builder.registerPipelineParsingCallback(
      [](llvm::StringRef name, llvm::ModulePassManager &passes, llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        if (name != "cotangent") return false;
        passes.addPass(Cotangent());
        return true;
      });
  builder.registerPipelineStartEPCallback(
      [](llvm::ModulePassManager &passes, llvm::OptimizationLevel) { passes.addPass(Cotangent()); });
}
} // namespace

static_assert(sizeof(llvm::PassPluginLibraryInfo) == 5 * sizeof(void *), "Rust returns five words");

extern "C" void cotangent_plugin_info(llvm::PassPluginLibraryInfo *info) {
  *info = {LLVM_PLUGIN_API_VERSION, "cotangent", COTANGENT_VERSION, registerPasses, nullptr};
}
