; test unwritten f
; What is written is reached through one parameter alone, and so is nothing of the rest.
define double @f(ptr %x, ptr noalias %y) {
entry:
  %a = load double, ptr %x
  store double %a, ptr %y
  %b = load double, ptr %y
  ret double %b
}
; ----
@f
  %a
