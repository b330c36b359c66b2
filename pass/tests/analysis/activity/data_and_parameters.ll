; test activity f(const,dup,const)->active
; Data that is constant is loaded but not active; an index into it needs no shadow.
define double @f(ptr %data, ptr %w, ptr %index) {
  %x = load double, ptr %data
  %k = load i64, ptr %index
  %p = getelementptr inbounds nuw double, ptr %w, i64 %k
  %v = load double, ptr %p
  %y = fmul double %x, %v
  %z = fadd double %x, 1.0
  %r = fmul double %y, %z
  ret double %r
}
; ----
@f
  active: %v, %y, %r
  shadowed: %w, %p
