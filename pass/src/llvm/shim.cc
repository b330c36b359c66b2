// What LLVM offers in C++ only, as C functions: cloning with a value map, and LLVM's own analyses.
//
// Nothing here throws: LLVM is built without exceptions, and every function only forwards. References are those of the
// C API. Results that do not exist are null or a documented number; callers never pass null.

#include "llvm-c/Types.h"
#include "llvm/Analysis/AliasAnalysis.h"
#include "llvm/Analysis/CycleAnalysis.h"
#include "llvm/Analysis/LazyValueInfo.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/MemorySSA.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace {

/// The analysis managers of a module. Results are computed when first asked for, and kept until they are forgotten.
struct Analyses {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder;
  /// Blocks of functions from which a return is reached.
  DenseMap<Function *, SmallPtrSet<BasicBlock *, 32>> returning;

  Analyses() {
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }

  template <typename A> typename A::Result &get(Function &f) { return functions.getResult<A>(f); }

  /// Can control that enters the block come back to the caller by a return, or by an exception that somebody catches?
  bool returns(BasicBlock *from) {
    auto [found, fresh] = returning.try_emplace(from->getParent());
    auto &blocks = found->second;
    if (fresh) {
      SmallVector<BasicBlock *, 32> work;
      bool caught = from->getParent()->hasFnAttribute("cotangent-caught");
      auto ends = [&](Instruction *end) { return isa<ReturnInst>(end) || caught && isa<ResumeInst>(end); };
      for (BasicBlock &b : *from->getParent())
        if (ends(b.getTerminator()) && blocks.insert(&b).second)
          work.push_back(&b);
      while (!work.empty())
        for (BasicBlock *before : predecessors(work.pop_back_val()))
          if (blocks.insert(before).second)
            work.push_back(before);
    }
    return blocks.contains(from);
  }
};

Analyses *analyses(void *a) { return static_cast<Analyses *>(a); }

template <typename T> T *value(LLVMValueRef v) { return cast<T>(unwrap(v)); }

MemoryLocation location(LLVMValueRef pointer, uint64_t size) {
  auto extent = size == ~0ull ? LocationSize::beforeOrAfterPointer() : LocationSize::precise(size);
  return MemoryLocation(unwrap(pointer), extent);
}

/// How often the backedge is taken: the least of all exit counts. Exits from which the function cannot return (panics,
/// unwinding) need no count. Null where a count is missing.
const SCEV *backedges(Analyses &all, Loop *loop) {
  auto &se = all.get<ScalarEvolutionAnalysis>(*loop->getHeader()->getParent());
  SmallVector<BasicBlock *, 8> exiting;
  loop->getExitingBlocks(exiting);
  SmallVector<const SCEV *, 8> counts;
  bool regular = false;
  for (BasicBlock *block : exiting) {
    const SCEV *count = se.getExitCount(loop, block);
    bool leads_on = false;
    for (BasicBlock *next : successors(block))
      leads_on |= !loop->contains(next) && all.returns(next);
    if (!isa<SCEVCouldNotCompute>(count)) {
      counts.push_back(count);
      regular |= leads_on;
    } else if (leads_on) {
      return nullptr;
    }
  }
  return regular ? se.getUMinFromMismatchedTypes(counts, /*Sequential=*/true) : nullptr;
}

SmallVector<AttributeSet, 8> params(const Function &f) {
  SmallVector<AttributeSet, 8> sets;
  for (unsigned i = 0; i < f.arg_size(); ++i)
    sets.push_back(f.getAttributes().getParamAttrs(i));
  return sets;
}

} // namespace

extern "C" {

typedef void (*ct_pair)(void *context, LLVMValueRef old_value, LLVMValueRef new_value);
typedef void (*ct_value)(void *context, LLVMValueRef value);
typedef void (*ct_block)(void *context, LLVMBasicBlockRef block);

// A copy of the function's body in the same module, as a function of another type: its first parameters are those of
// the original. Reports arguments, blocks and instructions, in order, each with its copy. Attributes that bound what the
// function does to memory, or that speak of the result where its type differs, are left out; the convention is C's.
LLVMValueRef ct_clone_function(LLVMValueRef original, LLVMTypeRef type, const char *name, size_t length, ct_pair report,
                               void *context) {
  auto *from = value<Function>(original);
  auto *to = Function::Create(cast<FunctionType>(unwrap(type)), GlobalValue::InternalLinkage, from->getAddressSpace(),
                              StringRef(name, length), from->getParent());
  ValueToValueMapTy map;
  auto next = to->arg_begin();
  for (Argument &a : from->args()) {
    next->setName(a.getName());
    map[&a] = &*next++;
  }
  SmallVector<ReturnInst *, 4> returns;
  CloneFunctionInto(to, from, map, CloneFunctionChangeType::LocalChangesOnly, returns);
  // Nobody but the new callers calls the copy, whatever convention LLVM chose for the original's.
  to->setCallingConv(CallingConv::C);
  // What is said of the original's result does not hold for another result, and a derivative has effects of its own.
  bool same_result = to->getReturnType() == from->getReturnType();
  if (!same_result)
    to->setAttributes(AttributeList::get(to->getContext(), to->getAttributes().getFnAttrs(), AttributeSet(), params(*to)));
  for (Argument &a : to->args()) {
    a.removeAttr(Attribute::Captures);
    if (!same_result)
      a.removeAttr(Attribute::Returned);
  }
  for (auto kind : {Attribute::Memory, Attribute::Speculatable, Attribute::NoFree})
    to->removeFnAttr(kind);
  auto tell = [&](Value *v) {
    if (Value *copy = map.lookup(v))
      report(context, wrap(v), wrap(copy));
  };
  for (Argument &a : from->args())
    tell(&a);
  for (BasicBlock &b : *from) {
    tell(&b);
    for (Instruction &i : b)
      tell(&i);
  }
  return wrap(to);
}

// Analyses of a module. `ct_analyses_forget` must follow each change of a function before the next question about it;
// with a null function it forgets all.
void *ct_analyses_new() { return new Analyses(); }

void ct_analyses_free(void *a) {
  auto *all = analyses(a);
  all->returning.clear();
  all->modules.clear();
  all->components.clear();
  all->functions.clear();
  all->loops.clear();
  delete all;
}

void ct_analyses_clear(void *a) {
  auto *all = analyses(a);
  all->returning.clear();
  all->modules.clear();
  all->components.clear();
  all->functions.clear();
  all->loops.clear();
}

void ct_analyses_forget(void *a, LLVMValueRef function) {
  auto *f = value<Function>(function);
  analyses(a)->returning.erase(f);
  analyses(a)->functions.invalidate(*f, PreservedAnalyses::none());
}

bool ct_dominates(void *a, LLVMBasicBlockRef above, LLVMBasicBlockRef below) {
  return analyses(a)->get<DominatorTreeAnalysis>(*unwrap(above)->getParent()).dominates(unwrap(above), unwrap(below));
}

bool ct_post_dominates(void *a, LLVMBasicBlockRef later, LLVMBasicBlockRef earlier) {
  auto &tree = analyses(a)->get<PostDominatorTreeAnalysis>(*unwrap(later)->getParent());
  return tree.dominates(unwrap(later), unwrap(earlier));
}

// Is the value of an instruction available at another?
bool ct_dominates_instruction(void *a, LLVMValueRef definition, LLVMValueRef user) {
  auto *d = value<Instruction>(definition);
  return analyses(a)->get<DominatorTreeAnalysis>(*d->getFunction()).dominates(d, value<Instruction>(user));
}

// The immediate dominator; null for the entry and for what it does not reach.
LLVMBasicBlockRef ct_immediate_dominator(void *a, LLVMBasicBlockRef block) {
  auto *node = analyses(a)->get<DominatorTreeAnalysis>(*unwrap(block)->getParent()).getNode(unwrap(block));
  auto *above = node ? node->getIDom() : nullptr;
  return above ? wrap(above->getBlock()) : nullptr;
}

bool ct_reachable(void *a, LLVMBasicBlockRef block) {
  auto *b = unwrap(block);
  return analyses(a)->get<DominatorTreeAnalysis>(*b->getParent()).isReachableFromEntry(b);
}

// The innermost cycle of a block and the cycle around a cycle; null where there is none.
const void *ct_cycle_of(void *a, LLVMBasicBlockRef block) {
  return analyses(a)->get<CycleAnalysis>(*unwrap(block)->getParent()).getCycle(unwrap(block));
}

const void *ct_cycle_parent(const void *cycle) { return static_cast<const Cycle *>(cycle)->getParentCycle(); }

// The cycle's entries: one, the header, if the cycle is a natural loop.
void ct_cycle_entries(const void *cycle, ct_block report, void *context) {
  for (BasicBlock *b : static_cast<const Cycle *>(cycle)->getEntries())
    report(context, wrap(b));
}

// Is it known how often the backedge of the loop with this header is taken? 0: no; 1: yes, and it is a value at the
// preheader; 2: yes, a constant, left in `count`.
int ct_backedge_count(void *a, LLVMBasicBlockRef header, uint64_t *count) {
  auto &f = *unwrap(header)->getParent();
  auto *loop = analyses(a)->get<LoopAnalysis>(f).getLoopFor(unwrap(header));
  if (!loop || loop->getHeader() != unwrap(header) || !loop->getLoopPreheader())
    return 0;
  auto &se = analyses(a)->get<ScalarEvolutionAnalysis>(f);
  const SCEV *taken = backedges(*analyses(a), loop);
  if (!taken || se.getTypeSizeInBits(taken->getType()) > 64)
    return 0;
  if (auto *constant = dyn_cast<SCEVConstant>(taken)) {
    *count = constant->getAPInt().getZExtValue();
    return 2;
  }
  SCEVExpander expander(se, "trips");
  return expander.isSafeToExpandAt(taken, loop->getLoopPreheader()->getTerminator()) ? 1 : 0;
}

// That count as an integer of the given type, computed before the preheader's terminator; null if it is not known.
LLVMValueRef ct_expand_backedge_count(void *a, LLVMBasicBlockRef header, LLVMTypeRef type) {
  uint64_t constant = 0;
  if (!ct_backedge_count(a, header, &constant))
    return nullptr;
  auto &f = *unwrap(header)->getParent();
  auto *loop = analyses(a)->get<LoopAnalysis>(f).getLoopFor(unwrap(header));
  auto &se = analyses(a)->get<ScalarEvolutionAnalysis>(f);
  auto *taken = se.getTruncateOrZeroExtend(backedges(*analyses(a), loop), unwrap(type));
  SCEVExpander expander(se, "trips");
  auto *at = loop->getLoopPreheader()->getTerminator();
  return expander.isSafeToExpandAt(taken, at) ? wrap(expander.expandCodeFor(taken, unwrap(type), at)) : nullptr;
}

// The values that an integer can have. Scalar evolution knows loops; of remainders and the like it knows less than their
// operands tell, and what holds where it is used (`at`) is known to neither.
static ConstantRange range_of(ScalarEvolution &se, LazyValueInfo &lvi, Value *v, Instruction *at, unsigned depth) {
  const SCEV *s = se.getSCEV(v);
  ConstantRange known = se.getSignedRange(s).intersectWith(se.getUnsignedRange(s), ConstantRange::Signed);
  if (isa<Instruction>(v) || isa<Argument>(v))
    known = known.intersectWith(lvi.getConstantRange(v, at, /*UndefAllowed=*/false), ConstantRange::Signed);
  if (depth == 0) return known;
  auto with = [&](const ConstantRange &more) { return known.intersectWith(more, ConstantRange::Signed); };
  auto operand = [&](User *u, unsigned k) { return range_of(se, lvi, u->getOperand(k), at, depth - 1); };
  if (auto *cast = dyn_cast<CastInst>(v); cast && cast->getSrcTy()->isIntegerTy() && cast->getDestTy()->isIntegerTy())
    return with(operand(cast, 0).castOp(cast->getOpcode(), cast->getDestTy()->getIntegerBitWidth()));
  if (auto *op = dyn_cast<BinaryOperator>(v)) return with(operand(op, 0).binaryOp(op->getOpcode(), operand(op, 1)));
  if (auto *select = dyn_cast<SelectInst>(v)) return with(operand(select, 1).unionWith(operand(select, 2)));
  return known;
}

// What is known of an integer where an instruction uses it: facts[0], a number that it is a multiple of; facts[1] and
// facts[2], its least and greatest value with sign. False if it has more than 64 bits.
bool ct_integer_facts(void *a, LLVMValueRef at, LLVMValueRef integer, int64_t *facts) {
  auto *where = value<Instruction>(at);
  auto &se = analyses(a)->get<ScalarEvolutionAnalysis>(*where->getFunction());
  auto &lvi = analyses(a)->get<LazyValueAnalysis>(*where->getFunction());
  if (!se.isSCEVable(unwrap(integer)->getType()) || se.getTypeSizeInBits(unwrap(integer)->getType()) > 64)
    return false;
  const SCEV *s = se.getSCEV(unwrap(integer));
  ConstantRange range = range_of(se, lvi, unwrap(integer), where, 6);
  // Where nothing gets to, everything is true.
  if (range.isEmptySet()) range = ConstantRange::getFull(range.getBitWidth());
  facts[0] = se.getConstantMultiple(s).getZExtValue();
  facts[1] = range.getSignedMin().getSExtValue();
  facts[2] = range.getSignedMax().getSExtValue();
  return true;
}

// Do two ranges of memory overlap? 0: no; 1: perhaps; 2: partly; 3: they are the same. Pointers must belong to the
// function, and the answer holds for one execution of their definitions.
int ct_alias(void *a, LLVMValueRef function, LLVMValueRef p, uint64_t p_size, LLVMValueRef q, uint64_t q_size) {
  auto &aa = analyses(a)->get<AAManager>(*value<Function>(function));
  return static_cast<AliasResult::Kind>(aa.alias(location(p, p_size), location(q, q_size)));
}

// What an instruction may do to a range: bit 0, read it; bit 1, write it.
int ct_mod_ref(void *a, LLVMValueRef instruction, LLVMValueRef pointer, uint64_t size) {
  auto *i = value<Instruction>(instruction);
  auto &aa = analyses(a)->get<AAManager>(*i->getFunction());
  return static_cast<int>(aa.getModRefInfo(i, location(pointer, size)));
}

// Is the memory that a load reads as it was when the function was entered?
bool ct_live_on_entry(void *a, LLVMValueRef load) {
  auto *i = value<LoadInst>(load);
  auto &ssa = analyses(a)->get<MemorySSAAnalysis>(*i->getFunction()).getMSSA();
  return ssa.isLiveOnEntryDef(ssa.getWalker()->getClobberingMemoryAccess(i));
}

// Memory effects of a call, or of a function: two bits (read, write) each for argument memory, memory that the module
// cannot name, errno, and the rest, in this order.
uint32_t ct_memory_effects(LLVMValueRef call_or_function) {
  auto *call = dyn_cast<CallBase>(unwrap(call_or_function));
  auto effects = call ? call->getMemoryEffects() : value<Function>(call_or_function)->getMemoryEffects();
  auto bits = [&](IRMemLocation where) { return static_cast<uint32_t>(effects.getModRef(where)); };
  return bits(IRMemLocation::ArgMem) | bits(IRMemLocation::InaccessibleMem) << 2 | bits(IRMemLocation::ErrnoMem) << 4 |
         bits(IRMemLocation::Other) << 6;
}

// What a call does to the memory behind an argument: bit 0, read; bit 1, write; bit 2, it may keep the pointer.
uint32_t ct_argument_effects(LLVMValueRef call, uint32_t argument) {
  auto *c = value<CallBase>(call);
  bool reads = !c->onlyWritesMemory(argument), writes = !c->onlyReadsMemory(argument);
  return reads | writes << 1 | !c->doesNotCapture(argument) << 2;
}

// The object that a pointer points into, through casts, offsets and calls that return an argument.
LLVMValueRef ct_underlying_object(LLVMValueRef pointer) { return wrap(getUnderlyingObject(unwrap(pointer), 64)); }

// The objects that a pointer may point into, through merges as well.
void ct_underlying_objects(LLVMValueRef pointer, ct_value report, void *context) {
  SmallVector<const Value *, 4> objects;
  getUnderlyingObjects(unwrap(pointer), objects, nullptr, 64);
  for (auto *object : objects)
    report(context, wrap(object));
}

// A list with one new scope of alias analysis, in a domain of its own.
LLVMMetadataRef ct_scope_new(LLVMModuleRef module) {
  auto &context = unwrap(module)->getContext();
  MDBuilder builder(context);
  auto *scope = builder.createAnonymousAliasScope(builder.createAnonymousAliasScopeDomain("cotangent"), "memory");
  return wrap(MDNode::get(context, {scope}));
}

// The memory of the access is in the scope.
void ct_scope_own(LLVMValueRef instruction, LLVMMetadataRef scope) {
  auto *i = value<Instruction>(instruction);
  i->setMetadata(LLVMContext::MD_alias_scope,
                 MDNode::concatenate(i->getMetadata(LLVMContext::MD_alias_scope), unwrap<MDNode>(scope)));
}

// The memory of all other accesses of the function is not.
void ct_scope_close(LLVMValueRef function, LLVMMetadataRef scope) {
  auto *list = unwrap<MDNode>(scope);
  auto owns = [&](const Instruction &i) {
    auto *scopes = i.getMetadata(LLVMContext::MD_alias_scope);
    return scopes && is_contained(scopes->operands(), list->getOperand(0));
  };
  for (Instruction &i : instructions(value<Function>(function)))
    if ((isa<LoadInst, StoreInst, MemIntrinsic>(i)) && !owns(i))
      i.setMetadata(LLVMContext::MD_noalias, MDNode::concatenate(i.getMetadata(LLVMContext::MD_noalias), list));
}
}
