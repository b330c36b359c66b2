// Operations on whole modules that LLVM offers in C++ only: a copy of part of a module, bodies taken away, blocks split,
// errors told through the context.

#include "llvm/Analysis/ConstantFolding.h"
#include "llvm-c/Types.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;

extern "C" {

// A copy of a module in the same context with the definitions of some globals; all others become declarations. What
// stands for a whole program (lists of constructors, inline assembly) is left out, and aliases give way to what they
// stand for. Places in the source stay known; what debuggers are told of variables does not.
LLVMModuleRef ct_copy_module(LLVMModuleRef module, const LLVMValueRef *keep, size_t count) {
  SmallPtrSet<const GlobalValue *, 32> kept;
  for (size_t i = 0; i < count; ++i)
    kept.insert(cast<GlobalValue>(unwrap(keep[i])));
  ValueToValueMapTy map;
  auto copy = CloneModule(*unwrap(module), map, [&](const GlobalValue *g) { return kept.contains(g); });
  copy->setModuleInlineAsm("");
  for (auto *name : {"llvm.used", "llvm.compiler.used", "llvm.global_ctors", "llvm.global_dtors"})
    if (auto *list = copy->getNamedGlobal(name))
      list->eraseFromParent();
  for (GlobalAlias &alias : make_early_inc_range(copy->aliases())) {
    alias.replaceAllUsesWith(alias.getAliasee());
    alias.eraseFromParent();
  }
  for (GlobalObject &g : copy->global_objects())
    g.setComdat(nullptr);
  for (Function &f : *copy)
    for (BasicBlock &block : f) {
      for (Instruction &i : block)
        i.dropDbgRecords();
      block.deleteTrailingDbgRecords();
    }
  return wrap(copy.release());
}

// What an alias stands for; null if it is not an alias, or one that another definition may replace.
LLVMValueRef ct_aliasee(LLVMValueRef value) {
  auto *alias = dyn_cast<GlobalAlias>(unwrap(value));
  return alias && !alias->isInterposable() ? wrap(alias->getAliaseeObject()) : nullptr;
}

// May the definition be replaced by another one when the program is linked or loaded?
bool ct_is_interposable(LLVMValueRef global) { return cast<GlobalValue>(unwrap(global))->isInterposable(); }

// Turns a definition into a declaration.
void ct_delete_body(LLVMValueRef global) {
  if (auto *function = dyn_cast<Function>(unwrap(global))) {
    function->deleteBody();
    function->setComdat(nullptr);
  } else {
    auto *variable = cast<GlobalVariable>(unwrap(global));
    variable->setInitializer(nullptr);
    variable->setLinkage(GlobalValue::ExternalLinkage);
    variable->setComdat(nullptr);
  }
}

// Takes away what is said of the module as a whole: another module into which it is linked says it already.
void ct_drop_named_metadata(LLVMModuleRef module) {
  for (NamedMDNode &node : make_early_inc_range(unwrap(module)->named_metadata()))
    node.eraseFromParent();
}

// Jumps to computed labels become switches over numbers. A number stands for its label wherever that is kept.
void ct_number_labels(LLVMValueRef function) {
  auto *f = cast<Function>(unwrap(function));
  SmallVector<IndirectBrInst *> jumps;
  for (BasicBlock &block : *f)
    if (auto *jump = dyn_cast<IndirectBrInst>(block.getTerminator()))
      jumps.push_back(jump);
  if (jumps.empty())
    return;
  auto *word = f->getDataLayout().getIntPtrType(f->getContext());
  MapVector<BasicBlock *, ConstantInt *> labels;
  for (BasicBlock &block : *f)
    if (auto *label = BlockAddress::lookup(&block)) {
      auto *number = ConstantInt::get(f->getContext(), APInt(word->getBitWidth(), labels.size() + 1));
      labels[&block] = number;
      label->replaceAllUsesWith(ConstantExpr::getIntToPtr(number, label->getType()));
      label->destroyConstant();
    }
  auto *nowhere = BasicBlock::Create(f->getContext(), "nowhere", f);
  new UnreachableInst(f->getContext(), nowhere);
  for (IndirectBrInst *jump : jumps) {
    auto *block = jump->getParent();
    auto *number = new PtrToIntInst(jump->getAddress(), word, "label", jump->getIterator());
    auto *choice = SwitchInst::Create(number, nowhere, jump->getNumDestinations(), jump->getIterator());
    choice->setDebugLoc(jump->getDebugLoc());
    SmallPtrSet<BasicBlock *, 16> seen;
    for (unsigned i = 0; i < jump->getNumDestinations(); ++i) {
      auto *to = jump->getDestination(i);
      if (labels.count(to) && seen.insert(to).second)
        choice->addCase(labels[to], to);
      else
        to->removePredecessor(block, /*KeepOneInputPHIs=*/true);
    }
    jump->eraseFromParent();
  }
}

// Has the value a use other than as what a call calls?
bool ct_is_address_taken(LLVMValueRef function) {
  return cast<Function>(unwrap(function))->hasAddressTaken(nullptr, /*IgnoreCallbackUses=*/false,
                                                           /*IgnoreAssumeLikeCalls=*/true, /*IgnoreLLVMUsed=*/false);
}

// Lets functions look used that nothing in the module uses.
void ct_keep_alive(LLVMModuleRef module, const LLVMValueRef *functions, size_t count) {
  SmallVector<Constant *, 8> list;
  for (size_t i = 0; i < count; ++i)
    list.push_back(cast<Constant>(unwrap(functions[i])));
  auto *type = ArrayType::get(PointerType::get(unwrap(module)->getContext(), 0), count);
  auto *array = ConstantArray::get(type, list);
  auto *global = new GlobalVariable(*unwrap(module), type, false, GlobalValue::AppendingLinkage, array, "llvm.compiler.used");
  global->setSection("llvm.metadata");
}

// Ends a block before an instruction: what follows moves to a new block, to which nothing leads yet. Merges further on
// then know the new block in the place of the old one.
LLVMBasicBlockRef ct_split_before(LLVMValueRef instruction) {
  auto *at = cast<Instruction>(unwrap(instruction));
  auto *old = at->getParent();
  auto *rest = old->splitBasicBlock(at);
  old->getTerminator()->eraseFromParent();
  return wrap(rest);
}

// Makes an invoke a call, which goes on where the invoke did.
void ct_invoke_to_call(LLVMValueRef invoke) { changeToCall(cast<InvokeInst>(unwrap(invoke))); }

// Lets exceptions leave the function by a block of its own, in which `resume` ends: the calls given become invokes.
void ct_unwind_by_resume(LLVMValueRef function, const LLVMValueRef *calls, size_t count) {
  auto &f = *cast<Function>(unwrap(function));
  auto &context = f.getContext();
  auto *out = BasicBlock::Create(context, "unwound", &f);
  auto *type = StructType::get(context, {PointerType::get(context, 0), Type::getInt32Ty(context)});
  auto *pad = LandingPadInst::Create(type, 0, "", out);
  pad->setCleanup(true);
  ResumeInst::Create(pad, out);
  for (size_t i = 0; i < count; ++i) {
    auto *call = cast<CallInst>(unwrap(calls[i]));
    call->setTailCallKind(CallInst::TCK_None);
    changeToInvokeAndSplitBasicBlock(call, out);
  }
}

// Lets the merges at the start of a block name another predecessor.
void ct_replace_predecessor(LLVMBasicBlockRef block, LLVMBasicBlockRef before, LLVMBasicBlockRef after) {
  unwrap(block)->replacePhiUsesWith(unwrap(before), unwrap(after));
}

// The text of a metadata operand that is a string; null if it is none.
const char *ct_metadata_text(LLVMValueRef value, size_t *length) {
  auto *wrapped = dyn_cast<MetadataAsValue>(unwrap(value));
  if (!wrapped)
    return nullptr;
  auto *metadata = wrapped->getMetadata();
  if (auto *node = dyn_cast<MDNode>(metadata))
    metadata = node->getNumOperands() == 1 ? node->getOperand(0).get() : nullptr;
  auto *text = dyn_cast_or_null<MDString>(metadata);
  if (!text)
    return nullptr;
  *length = text->getString().size();
  return text->getString().data();
}

// Tells an error at a place in the source, or at a function where the place is not known (line 0). The compiler that
// runs the pass shows it as its own and fails.
void ct_report_error(LLVMValueRef function, const char *directory, const char *file, uint32_t line, uint32_t column,
                     const char *message) {
  auto &f = *cast<Function>(unwrap(function));
  auto &context = f.getContext();
  DiagnosticLocation location;
  if (line) {
    auto *source = DIFile::get(context, file, directory);
    auto *scope = DISubprogram::getDistinct(context, source, "", "", source, line, nullptr, line, nullptr, 0, 0,
                                            DINode::FlagZero, DISubprogram::SPFlagZero, nullptr);
    location = DiagnosticLocation(DebugLoc(DILocation::get(context, line, column, scope)));
  }
  context.diagnose(DiagnosticInfoUnsupported(f, message, location, DS_Error));
}

// The pointer that a global constant holds at an offset; null if that is not known, or no pointer.
LLVMValueRef ct_constant_pointer(LLVMValueRef global, uint64_t offset) {
  auto *g = dyn_cast<GlobalVariable>(unwrap(global));
  if (!g || !g->isConstant() || !g->hasDefinitiveInitializer())
    return nullptr;
  auto &layout = g->getDataLayout();
  APInt at(layout.getIndexTypeSizeInBits(g->getType()), offset);
  return wrap(ConstantFoldLoadFromConst(g->getInitializer(), PointerType::getUnqual(g->getContext()), at, layout));
}

// The name that a programmer gave; to be freed with `free`.
char *ct_demangle(const char *name) { return strdup(demangle(name).c_str()); }
}
