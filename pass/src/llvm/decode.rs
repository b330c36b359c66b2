//! Functions: from LLVM's instructions to the evaluator's.

use super::module::Module;
use super::raw::{B, V};
use cotangent_raise::code::{BlockId, Callee, Code, Func, Inst, Operand, Signature, Ty};
use llvm_sys::LLVMOpcode as Op;
use llvm_sys::LLVMValueKind as VK;
use std::collections::HashMap;
use std::rc::Rc;

/// Is it a call or an invoke?
pub(super) fn is_call(inst: V<'_>) -> bool {
    matches!(inst.opcode(), Op::LLVMCall | Op::LLVMInvoke)
}

/// Numbers of a function's values and blocks.
struct Numbers<'c> {
    locals: HashMap<V<'c>, u32>,
    blocks: HashMap<B<'c>, BlockId>,
}

impl<'c> Module<'c> {
    /// The body of a function that the module defines.
    pub(crate) fn function(&self, name: &str) -> Option<Rc<Func>> {
        let f = self.find(name)?.as_function()?;
        let blocks: Vec<B<'c>> = std::iter::successors(f.first_block(), |b| b.next()).collect();
        if blocks.is_empty() {
            return None;
        }
        let params: Vec<V<'c>> = (0..f.params()).map(|i| f.param(i)).collect();
        let insts = |b: B<'c>| std::iter::successors(b.first(), |i| i.next_instruction());
        let values = params.iter().copied().chain(blocks.iter().flat_map(|b| insts(*b)));
        let numbers = Numbers {
            locals: values.enumerate().map(|(i, v)| (v, i as u32)).collect(),
            blocks: blocks.iter().enumerate().map(|(i, b)| (*b, i as BlockId)).collect(),
        };
        Some(Rc::new(Func {
            symbol: self.symbol(f),
            params: params.iter().map(|p| self.ty(p.ty())).collect(),
            locals: numbers.locals.len() as u32,
            blocks: blocks
                .iter()
                .map(|b| insts(*b).map(|i| self.inst(i, &numbers)).collect())
                .collect(),
        }))
    }

    /// Facts about a function that the module defines or declares.
    pub(crate) fn signature(&self, name: &str) -> Option<Signature> {
        let f = self.find(name)?.as_function()?;
        Some(Signature {
            alloc_kind: f.function_attribute("allockind"),
            noreturn: f.function_attribute("noreturn").is_some(),
        })
    }

    fn inst(&self, i: V<'c>, n: &Numbers<'c>) -> Inst {
        Inst {
            code: self.code(i, n),
            dst: n.locals[&i],
            ty: self.ty(i.ty()),
            at: self.locations.of(i),
        }
    }

    fn operand(&self, v: V<'c>, n: &Numbers<'c>) -> Operand {
        match n.locals.get(&v) {
            Some(i) => Operand::Local(*i),
            None => Operand::Const(self.constant(v), self.ty(v.ty())),
        }
    }

    fn code(&self, i: V<'c>, n: &Numbers<'c>) -> Code {
        let operand = |k: u32| self.operand(i.operand(k), n);
        let binary = |op: &str| Code::Binary {
            op: op.into(),
            a: operand(0),
            b: operand(1),
        };
        let cast = |op: &str| Code::Cast {
            op: op.into(),
            a: operand(0),
            from: self.ty(i.operand(0).ty()),
        };
        match i.opcode() {
            Op::LLVMRet => Code::Ret((i.operands() > 0).then(|| operand(0))),
            Op::LLVMBr => match i.successors() {
                1 => Code::Br(n.blocks[&i.successor(0)]),
                _ => Code::CondBr {
                    cond: operand(0),
                    yes: n.blocks[&i.successor(0)],
                    no: n.blocks[&i.successor(1)],
                },
            },
            Op::LLVMSwitch => Code::Switch {
                on: operand(0),
                cases: (1..i.successors())
                    .map(|k| (self.integer(i.case_value(k)), n.blocks[&i.successor(k)]))
                    .collect(),
                default: n.blocks[&i.successor(0)],
            },
            Op::LLVMInvoke | Op::LLVMCall => self.call(i, n),
            Op::LLVMUnreachable | Op::LLVMResume => Code::Unreachable,
            Op::LLVMFNeg => Code::FNeg { a: operand(0) },
            Op::LLVMAdd => binary("add"),
            Op::LLVMFAdd => binary("fadd"),
            Op::LLVMSub => binary("sub"),
            Op::LLVMFSub => binary("fsub"),
            Op::LLVMMul => binary("mul"),
            Op::LLVMFMul => binary("fmul"),
            Op::LLVMUDiv => binary("udiv"),
            Op::LLVMSDiv => binary("sdiv"),
            Op::LLVMFDiv => binary("fdiv"),
            Op::LLVMURem => binary("urem"),
            Op::LLVMSRem => binary("srem"),
            Op::LLVMFRem => binary("frem"),
            Op::LLVMShl => binary("shl"),
            Op::LLVMLShr => binary("lshr"),
            Op::LLVMAShr => binary("ashr"),
            Op::LLVMAnd => binary("and"),
            Op::LLVMOr => binary("or"),
            Op::LLVMXor => binary("xor"),
            Op::LLVMTrunc => cast("trunc"),
            Op::LLVMZExt => cast("zext"),
            Op::LLVMSExt => cast("sext"),
            Op::LLVMFPToUI => cast("fptoui"),
            Op::LLVMFPToSI => cast("fptosi"),
            Op::LLVMUIToFP => cast("uitofp"),
            Op::LLVMSIToFP => cast("sitofp"),
            Op::LLVMFPTrunc => cast("fptrunc"),
            Op::LLVMFPExt => cast("fpext"),
            Op::LLVMPtrToInt | Op::LLVMPtrToAddr => cast("ptrtoint"),
            Op::LLVMIntToPtr => cast("inttoptr"),
            Op::LLVMBitCast => cast("bitcast"),
            Op::LLVMAddrSpaceCast => cast("addrspacecast"),
            Op::LLVMAlloca => self.alloca(i),
            Op::LLVMLoad => Code::Load { ptr: operand(0) },
            Op::LLVMStore => Code::Store {
                value: operand(0),
                ty: self.ty(i.operand(0).ty()),
                ptr: operand(1),
            },
            Op::LLVMGetElementPtr => {
                let (offset, dynamic) = self.address(i);
                Code::Gep {
                    base: operand(0),
                    offset,
                    dynamic: dynamic.into_iter().map(|(v, s)| (self.operand(v, n), s)).collect(),
                }
            }
            Op::LLVMICmp => Code::ICmp {
                pred: predicate(&format!("{:?}", i.icmp()), "LLVMInt"),
                ty: self.ty(i.operand(0).ty()),
                a: operand(0),
                b: operand(1),
            },
            Op::LLVMFCmp => Code::FCmp {
                pred: predicate(&format!("{:?}", i.fcmp()), "LLVMReal").replace("predicate", ""),
                a: operand(0),
                b: operand(1),
            },
            Op::LLVMPHI => Code::Phi {
                from: (0..i.incoming())
                    .map(|k| (n.blocks[&i.incoming_block(k)], self.operand(i.incoming_value(k), n)))
                    .collect(),
            },
            Op::LLVMSelect => Code::Select {
                cond: operand(0),
                a: operand(1),
                b: operand(2),
            },
            Op::LLVMExtractValue => Code::Extract {
                a: operand(0),
                path: i.indices(),
            },
            Op::LLVMInsertValue => Code::Insert {
                a: operand(0),
                v: operand(1),
                vty: self.ty(i.operand(1).ty()),
                path: i.indices(),
            },
            Op::LLVMFreeze => Code::Same { a: operand(0) },
            Op::LLVMFence | Op::LLVMLandingPad => Code::Nop,
            Op::LLVMAtomicRMW => Code::AtomicRmw {
                op: predicate(&format!("{:?}", i.rmw()), "LLVMAtomicRMWBinOp"),
                ptr: operand(0),
                value: operand(1),
            },
            Op::LLVMAtomicCmpXchg => Code::CmpXchg {
                ptr: operand(0),
                expected: operand(1),
                new: operand(2),
                ty: self.ty(i.operand(1).ty()),
            },
            other => Code::Other(predicate(&format!("{other:?}"), "LLVM")),
        }
    }

    fn alloca(&self, i: V<'c>) -> Code {
        let count = i.operand(0);
        if count.kind() != VK::LLVMConstantIntValueKind {
            return Code::Other("alloca of a variable number of elements".into());
        }
        Code::Alloca {
            size: self.layout.abi_size(i.allocated_type()) * count.zext_value(),
            align: u64::from(i.alignment()),
        }
    }

    fn call(&self, i: V<'c>, n: &Numbers<'c>) -> Code {
        let called = i.called();
        let called = called.as_alias().map_or(called, V::aliasee);
        let callee = if let Some(asm) = called.as_asm() {
            Callee::Asm(asm.asm())
        } else if let Some(f) = called.as_function() {
            Callee::Symbol(self.symbol(f))
        } else {
            Callee::Pointer(self.operand(called, n))
        };
        let metadata = |v: V<'c>| v.kind() == VK::LLVMMetadataAsValueValueKind;
        Code::Call {
            callee,
            args: (0..i.arg_operands())
                .map(|k| i.operand(k))
                .map(|v| {
                    if metadata(v) {
                        Operand::Const(cotangent_raise::code::Const::Undef, Ty::Void)
                    } else {
                        self.operand(v, n)
                    }
                })
                .collect(),
            normal: (i.opcode() == Op::LLVMInvoke).then(|| n.blocks[&i.normal_dest()]),
            noreturn: i.call_attribute("noreturn")
                || called
                    .as_function()
                    .is_some_and(|f| f.function_attribute("noreturn").is_some()),
        }
    }
}

/// LLVM's own word for a predicate or operation, from the name of the constant in its C API.
fn predicate(constant: &str, prefix: &str) -> String {
    constant.strip_prefix(prefix).unwrap_or(constant).to_lowercase()
}
