; test content f
; A pointer that is stored, loaded elsewhere and passed on leads to the same cells; so does one copied as an integer.
define internal double @get(ptr %box) {
  %p = load ptr, ptr %box
  %v = load double, ptr %p
  ret double %v
}
define double @f(ptr %x) {
  %box = alloca ptr
  %other = alloca i64
  %q = getelementptr i8, ptr %x, i64 16
  store ptr %q, ptr %box
  %bits = load i64, ptr %box
  store i64 %bits, ptr %other
  %v = call double @get(ptr %other)
  ret double %v
}
; ----
@get
  %box -> #0 +0
  %p -> #1 +16
  #0 stack: +0 ptr -> #1 +16
  #1 open: +16 f64
@f
  %x -> #0 +0
  %box -> #1 +0
  %other -> #2 +0
  %q -> #0 +16
  #0 open: +16 f64
  #1 stack: +0 ptr -> #0 +16
  #2 stack: +0 ptr -> #0 +16
