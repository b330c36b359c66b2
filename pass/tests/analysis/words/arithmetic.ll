; test words
; Bits that only decide something are no words; bits that are changed and become a float again are laundered.
define i1 @less(double %x, double %y) {
  %a = bitcast double %x to i64
  %b = bitcast double %y to i64
  %s = ashr i64 %a, 63
  %k = xor i64 %a, %s
  %c = icmp slt i64 %k, %b
  ret i1 %c
}
define double @next(double %x) {
  %a = bitcast double %x to i64
  %n = add i64 %a, 1
  %y = bitcast i64 %n to double
  ret double %y
}
define double @scale(i32 %e) {
  %w = zext i32 %e to i64
  %b = add i64 %w, 1023
  %s = shl i64 %b, 52
  %y = bitcast i64 %s to double
  ret double %y
}
; ----
@less
@next
  laundered: %y = bitcast i64 %n to double
@scale
