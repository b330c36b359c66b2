; test unwritten f
; An argument may be the address of a variable of the program.
@g = global double 0.0

define double @f(ptr %x) {
entry:
  %a = load double, ptr %x
  store double %a, ptr @g
  ret double %a
}
; ----
@f
