; test unwritten f
; What code that is not at hand may write to reaches as far as pointers do.
declare void @change(ptr captures(none)) memory(argmem: readwrite)

define double @f(ptr %list) {
entry:
  %row = load ptr, ptr %list
  %a = load double, ptr %row
  call void @change(ptr %list)
  ret double %a
}
; ----
@f
