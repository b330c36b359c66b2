; test content f
; A struct moved by memcpy: its fields are known at both ends, and nothing else of the larger struct is drawn in.
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define double @f(ptr %big, i64 %n) {
  %tmp = alloca [24 x i8]
  %first = load float, ptr %big
  %part = getelementptr i8, ptr %big, i64 8
  call void @llvm.memcpy.p0.p0.i64(ptr %tmp, ptr %part, i64 24, i1 false)
  %data = load ptr, ptr %tmp
  %len = getelementptr i8, ptr %tmp, i64 8
  %l = load i64, ptr %len
  %k = getelementptr i8, ptr %tmp, i64 16
  %v = load double, ptr %k
  %e = getelementptr nuw double, ptr %data, i64 %n
  %w = load double, ptr %e
  %r = fadd double %v, %w
  ret double %r
}
; ----
@f
  %big -> #0 +0
  %tmp -> #1 +0
  %part -> #0 +8
  %data -> #2 +0
  %len -> #1 +8
  %k -> #1 +16
  %e -> #2 +0+8k [0..]
  #0 open: +0 f32, +8 ptr -> #2 +0, +24 f64
  #1 stack: +0 ptr -> #2 +0, +16 f64
  #2 open: +0 f64, +0+8k [0..] f64
