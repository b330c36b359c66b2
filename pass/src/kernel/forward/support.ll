; What tangents of memory need at run time, and what stops a program that would lose a derivative. A shadow address from
; 1 << 62 on is none.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @strlen(ptr)
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

; A derivative that counts is about to be stored where there is no place for it.
define void @cotangent.lost.unless(ptr %to, i1 %counts, ptr %message) #1 {
entry:
  %bits = ptrtoint ptr %to to i64
  %none = icmp uge i64 %bits, 4611686018427387904
  %lost = and i1 %none, %counts
  br i1 %lost, label %stop, label %exit, !prof !0

stop:
  call void @cotangent.lost(ptr %message)
  unreachable

exit:
  ret void
}

; Tangents, or addresses of shadows, are about to be copied to where there is no place for them.
define void @cotangent.lost.copied(ptr %to, ptr %from, i64 %bytes, ptr %message) {
entry:
  %to.bits = ptrtoint ptr %to to i64
  %none = icmp uge i64 %to.bits, 4611686018427387904
  %from.bits = ptrtoint ptr %from to i64
  %some = icmp ult i64 %from.bits, 4611686018427387904
  %looked = and i1 %none, %some
  br i1 %looked, label %loop, label %exit, !prof !0

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %step, label %exit

step:
  %at = getelementptr i8, ptr %from, i64 %k
  %byte = load i8, ptr %at, align 1
  %next = add i64 %k, 1
  %set = icmp ne i8 %byte, 0
  br i1 %set, label %stop, label %loop

stop:
  call void @cotangent.lost(ptr %message)
  unreachable

exit:
  ret void
}

; Stops the program.
define void @cotangent.lost(ptr %message) #2 {
entry:
  %rust = icmp ne ptr @cotangent_kernel_lost, null
  br i1 %rust, label %panic, label %print

panic:
  %length = call i64 @strlen(ptr %message)
  call void @cotangent_kernel_lost(ptr %message, i64 %length)
  unreachable

print:
  call void @cotangent.stop(ptr %message)
  unreachable
}

declare void @cotangent.stop(ptr)

attributes #0 = { nounwind }
attributes #1 = { alwaysinline }
attributes #2 = { noinline cold noreturn }
!0 = !{!"branch_weights", i32 1, i32 2000}
