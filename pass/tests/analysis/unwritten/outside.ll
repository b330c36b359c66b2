; test unwritten f
; Code that is not at hand may write to anything, unless its attributes forbid that.
declare void @any()

define double @f(ptr %x) {
entry:
  %a = load double, ptr %x
  call void @any()
  ret double %a
}
; ----
@f
