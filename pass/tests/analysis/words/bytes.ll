; test words
; A tag beside a double is no part of it; a double copied byte by byte is told, also through a buffer between.
define void @tag(ptr %to, ptr %from) {
  %t = load i8, ptr %from
  store i8 %t, ptr %to
  %p = getelementptr i8, ptr %from, i64 8
  %x = load double, ptr %p
  %q = getelementptr i8, ptr %to, i64 8
  store double %x, ptr %q
  ret void
}
define double @through(ptr %x, i64 %i) {
  %buffer = alloca [8 x i8]
  %copy = alloca double
  %v = load double, ptr %x
  %a = getelementptr nuw i8, ptr %x, i64 %i
  %b = load i8, ptr %a
  %c = getelementptr nuw i8, ptr %buffer, i64 %i
  store i8 %b, ptr %c
  %d = load i8, ptr %c
  %e = getelementptr nuw i8, ptr %copy, i64 %i
  store i8 %d, ptr %e
  %w = load double, ptr %copy
  %r = fadd double %v, %w
  ret double %r
}
; ----
@tag
@through
  %b: 0: bytes
  %d: 0: bytes
