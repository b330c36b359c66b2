; test activity f(out,const)->active
; A call of a pointer reaches every function of the type whose address is taken.
define internal double @square(double %x) {
  %y = fmul double %x, %x
  ret double %y
}
define internal double @two(double %x) {
  ret double 2.0
}
define double @f(double %x, i1 %c) {
  %g = select i1 %c, ptr @square, ptr @two
  %y = call double %g(double %x)
  ret double %y
}
; ----
@square
  active: %x, %y
@two: inactive
@f
  active: %x, %y
