; test unwritten f
; Nothing is written but memory of its own: whatever the arguments lead to can be read again, lists behind them, too.
define double @f(ptr %x, ptr %list, i64 %n) {
entry:
  %own = alloca double
  %a = load double, ptr %x
  store double %a, ptr %own
  %row = load ptr, ptr %list
  %at = getelementptr double, ptr %row, i64 %n
  %b = load double, ptr %at
  %c = load double, ptr %own
  %s = fadd double %b, %c
  ret double %s
}
; ----
@f
  %a
  %row
  %b
