; test activity f(dup)->active
; What is only printed is not useful: the logging function stays as it is, though it reads active memory.
declare void @print(double) memory(inaccessiblemem: write)
define internal void @log(ptr %x) {
  %v = load double, ptr %x
  %s = fmul double %v, 2.0
  call void @print(double %s)
  ret void
}
define double @f(ptr %x) {
  call void @log(ptr %x)
  %v = load double, ptr %x
  %r = fmul double %v, %v
  ret double %r
}
; ----
@log: inactive
  inactive calls: call void @print(double %s)
@f
  active: %v, %r
  shadowed: %x
