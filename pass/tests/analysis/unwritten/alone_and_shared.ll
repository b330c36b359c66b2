; test unwritten f
; The parameter leads alone to its memory, but that holds a pointer to what is written: `%x` may, too.
define double @f(ptr %x, ptr noalias %y, ptr noalias readonly %z) {
entry:
  %a = load double, ptr %x
  %c = load double, ptr %z
  %inner = load ptr, ptr %y
  store double %a, ptr %inner
  ret double %c
}
; ----
@f
  %c
  %inner
