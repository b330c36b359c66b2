; test activity f(dup)->active
; A pointer that is given back has a shadow, by which its caller seeds what the function left there.
define ptr @f(ptr %x) {
  %p = call ptr @malloc(i64 8)
  %a = load double, ptr %x
  %b = fmul double %a, %a
  store double %b, ptr %p
  ret ptr %p
}
declare noalias ptr @malloc(i64) allockind("alloc,uninitialized") allocsize(0)
; ----
@f
  active: %a, %b
  shadowed: %x, %p
  writes: store double %b, ptr %p, align 8
