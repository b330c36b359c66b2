; test activity f(dup,out)
; A constant stored over an active value ends its derivative: the store counts. A buffer that never holds one does not.
define void @f(ptr %y, double %x) {
  %t = alloca double
  %u = alloca double
  store double %x, ptr %t
  store double 1.0, ptr %u
  %a = load double, ptr %t
  %b = load double, ptr %u
  %c = fmul double %a, %b
  store double %c, ptr %y
  store double 0.0, ptr %t
  ret void
}
; ----
@f
  active: %x, %a, %c
  shadowed: %y, %t
  writes: store double %x, ptr %t, align 8, store double %c, ptr %y, align 8, store double 0.000000e+00, ptr %t, align 8
