; test content f
; Tables and vtables: what initializers hold, and where it points.
@table = internal constant [4 x double] [double 1.0, double 2.0, double 3.0, double 4.0]
@vtable = internal constant { i64, i64, ptr } { i64 8, i64 8, ptr @method }
@state = internal global { i64, double } zeroinitializer
define internal double @method(ptr %self) {
  %x = load double, ptr %self
  ret double %x
}
define double @f(i64 %i, ptr %object) {
  %p = getelementptr inbounds nuw [4 x double], ptr @table, i64 0, i64 %i
  %x = load double, ptr %p
  %m = getelementptr i8, ptr @vtable, i64 16
  %f = load ptr, ptr %m
  %y = call double %f(ptr %object)
  %q = getelementptr i8, ptr @state, i64 8
  store double %y, ptr %q
  %r = fadd double %x, %y
  ret double %r
}
; ----
@method
  %self -> #0 +0
  #0 open: +0 f64
@f
  %object -> #0 +0
  %p -> #1 +0+8k [0..]
  %m -> #2 +16
  %f -> #3 +0
  %q -> #4 +8
  #0 open: +0 f64
  #1 global: +0+8k [0..] f64
  #2 global: +16 ptr -> #3 +0
  #3 global:
  #4 global: +8 f64
