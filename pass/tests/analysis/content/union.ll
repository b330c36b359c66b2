; test content
; A double and a pointer at one place: undecided, and said so.
define double @f(ptr %u, i1 %tag) {
  %p = getelementptr i8, ptr %u, i64 8
  br i1 %tag, label %a, label %b
a:
  %x = load double, ptr %p
  ret double %x
b:
  %q = load ptr, ptr %p
  %y = load double, ptr %q
  ret double %y
}
; ----
@f
  %u -> #0 +0
  %p -> #0 +8
  %q -> #1 +0
  #0 open: +8 f64|ptr -> #1 +0, +12 f64+4|ptr+4
  #1 open: +0 f64
