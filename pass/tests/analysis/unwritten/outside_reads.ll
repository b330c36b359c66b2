; test unwritten f
; Code that is not at hand does not write to what it takes to read.
declare double @look(ptr readonly captures(none)) memory(argmem: readwrite)

define double @f(ptr %x) {
entry:
  %a = load double, ptr %x
  %b = call double @look(ptr %x)
  ret double %a
}
; ----
@f
  %a
