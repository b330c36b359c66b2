; test words
; Two floats packed into one integer and taken apart; the sign of a double cleared as a bit.
define float @pack(float %x, float %y) {
  %a = bitcast float %x to i32
  %b = bitcast float %y to i32
  %wide = zext i32 %a to i64
  %wider = zext i32 %b to i64
  %high = shl nuw i64 %wider, 32
  %pair = or disjoint i64 %high, %wide
  %shifted = lshr i64 %pair, 32
  %c = trunc i64 %shifted to i32
  %z = bitcast i32 %c to float
  ret float %z
}
define double @sign(double %x) {
  %a = bitcast double %x to i64
  %magnitude = and i64 %a, 9223372036854775807
  %y = bitcast i64 %magnitude to double
  ret double %y
}
; ----
@pack
  %b: 0: f32
  %wider: 0: f32
  %high: 4: f32
  %pair: 4: f32
  %shifted: 0: f32
  %c: 0: f32
@sign
  %a: 0: f64, 4: f64+4
  %magnitude: 0: f64, 4: f64+4
