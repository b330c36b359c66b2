; test content f
; What LLVM leaves of a struct behind a field that it keeps in a register is copied as a block that begins where no float
; does: both ends are one object, moved against each other.
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define double @f(double %x) {
  %all = alloca [32 x i8]
  %rest = alloca [15 x i8]
  %value = getelementptr i8, ptr %all, i64 8
  store double %x, ptr %value
  %behind = getelementptr i8, ptr %all, i64 1
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %rest, ptr align 1 %behind, i64 15, i1 false)
  %next = getelementptr i8, ptr %all, i64 17
  call void @llvm.memcpy.p0.p0.i64(ptr align 1 %next, ptr align 1 %rest, i64 15, i1 false)
  %copy = getelementptr i8, ptr %all, i64 24
  %y = load double, ptr %copy
  ret double %y
}
; ----
@f
  %all -> #0 +-1
  %rest -> #0 +0
  %value -> #0 +7
  %behind -> #0 +0
  %next -> #0 +0+16k [0..16]
  %copy -> #0 +23
  #0 stack: +7 f64 (every 16)
