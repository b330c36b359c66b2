; test unwritten f
; In the place of a function with a derivative of the user's other functions run, which may write more than it does.
define void @forward(ptr %x, ptr %shadow) {
entry:
  store double 1.0, ptr %x
  ret void
}

define void @g(ptr %x) "cotangent-forward-rule"="forward" {
entry:
  ret void
}

define double @f(ptr %x) {
entry:
  %a = load double, ptr %x
  call void @g(ptr %x)
  ret double %a
}
; ----
@forward
@g
@f
