; test content f
; What crosses the module by way of its own memory may be of anything; what is computed with on the way is a number.
define void @f(ptr %to, ptr %from, ptr %count) {
  %own = alloca [16 x i8]
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %from, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %own, i64 16, i1 false)
  %n = load i64, ptr %count
  %more = add i64 %n, 1
  store i64 %more, ptr %count
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
; ----
@f
  %to -> #0 +0
  %from -> #1 +0
  %count -> #2 +0
  %own -> #3 +0
  #0 open: +0 part, +4 part, +8 part, +12 part
  #1 open: +0 part, +4 part, +8 part, +12 part
  #2 open:
  #3 stack: +0 part, +4 part, +8 part, +12 part
