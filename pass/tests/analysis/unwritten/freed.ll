; test unwritten f
; What is given back cannot be read again.
declare void @free(ptr allocptr) allockind("free") "alloc-family"="malloc"

define double @f(ptr %x, ptr %y) {
entry:
  %a = load double, ptr %x
  call void @free(ptr %x)
  ret double %a
}
; ----
@f
