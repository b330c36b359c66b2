; test activity f(out)->active
; The shadow of a pointer in memory is needed where an active load goes through it, and not where it only counts.
define double @f(double %x) {
  %a = alloca double
  %box = alloca ptr
  %seen = alloca ptr
  store double %x, ptr %a
  store ptr %a, ptr %box
  store ptr %a, ptr %seen
  %p = load ptr, ptr %box
  %q = load ptr, ptr %seen
  %same = icmp eq ptr %p, %q
  %v = load double, ptr %p
  %r = select i1 %same, double %v, double 0.0
  ret double %r
}
; ----
@f
  active: %x, %v, %r
  shadowed: %a, %box, %p
  writes: store double %x, ptr %a, align 8, store ptr %a, ptr %box, align 8
