; test unwritten f
; What functions that no root calls write to does not count, but memory that they made may have been given back.
declare noalias ptr @malloc(i64) allockind("alloc,uninitialized") allocsize(0) "alloc-family"="malloc"

define internal double @g(ptr %x) {
entry:
  %a = load double, ptr %x
  ret double %a
}

define double @f(ptr %x) {
entry:
  %a = call double @g(ptr %x)
  %b = load double, ptr %x
  %s = fadd double %a, %b
  ret double %s
}

define void @other(ptr %y) {
entry:
  store double 1.0, ptr %y
  ret void
}
; ----
@g
  %a
@f
  %b
@other
