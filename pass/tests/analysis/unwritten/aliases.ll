; test unwritten f(dup,dup)->active
; Where one argument is written, the other may lead to the same memory.
define double @f(ptr %x, ptr %y) {
entry:
  %a = load double, ptr %x
  store double %a, ptr %y
  ret double %a
}
; ----
@f
