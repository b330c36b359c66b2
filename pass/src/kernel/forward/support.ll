; What tangents of memory need at run time. A shadow address from 1 << 62 on is none; 1 << 63 is that of memory that the
; program did not say to be constant.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @strlen(ptr)
declare void @abort()
declare i32 @puts(ptr)
; Where there is a Rust runtime, it panics.
declare extern_weak void @cotangent_kernel_lost(ptr, i64)

; Copies shadow memory as the primal copies memory. What comes from constant memory is constant.
define void @cotangent.tangent.copy(ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %to.bits = ptrtoint ptr %to to i64
  %to.active = icmp ult i64 %to.bits, 4611686018427387904
  br i1 %to.active, label %write, label %exit

write:
  %from.bits = ptrtoint ptr %from to i64
  %from.active = icmp ult i64 %from.bits, 4611686018427387904
  br i1 %from.active, label %copy, label %clear

copy:
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  br label %exit

clear:
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %bytes, i1 false)
  br label %exit

exit:
  ret void
}

; What is set to constant bytes is constant.
define void @cotangent.tangent.fill(ptr %to, i64 %bytes) #0 {
entry:
  %to.bits = ptrtoint ptr %to to i64
  %to.active = icmp ult i64 %to.bits, 4611686018427387904
  br i1 %to.active, label %clear, label %exit

clear:
  call void @llvm.memset.p0.i64(ptr %to, i8 0, i64 %bytes, i1 false)
  br label %exit

exit:
  ret void
}

; A tangent that is not zero is about to be stored where there is no place for it.
define void @cotangent.tangent.lost(ptr %to, i1 %counts, ptr %message) {
entry:
  %bits = ptrtoint ptr %to to i64
  %above = icmp uge i64 %bits, 4611686018427387904
  %below = icmp ult i64 %bits, -4611686018427387904
  %unknown = and i1 %above, %below
  %lost = and i1 %unknown, %counts
  br i1 %lost, label %stop, label %exit, !prof !0

stop:
  %rust = icmp ne ptr @cotangent_kernel_lost, null
  br i1 %rust, label %panic, label %print

panic:
  %length = call i64 @strlen(ptr %message)
  call void @cotangent_kernel_lost(ptr %message, i64 %length)
  unreachable

print:
  %said = call i32 @puts(ptr %message)
  call void @abort()
  unreachable

exit:
  ret void
}

attributes #0 = { nounwind }

!0 = !{!"branch_weights", i32 1, i32 2000}
