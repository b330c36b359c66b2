; test words
; Copies as integers: a double, a pair of floats, a pointer; a length beside them is an integer.
define void @f(ptr %to, ptr %from) {
  %x = load double, ptr %from
  %p1 = getelementptr i8, ptr %from, i64 8
  %y = load float, ptr %p1
  %p2 = getelementptr i8, ptr %from, i64 12
  %z = load float, ptr %p2
  %p3 = getelementptr i8, ptr %from, i64 16
  %q = load ptr, ptr %p3
  %p4 = getelementptr i8, ptr %from, i64 24
  %a = load i64, ptr %from
  %b = load i64, ptr %p1
  %c = load i64, ptr %p3
  %d = load i64, ptr %p4
  %e = add i64 %d, 1
  store i64 %a, ptr %to
  %t1 = getelementptr i8, ptr %to, i64 8
  store i64 %b, ptr %t1
  %t3 = getelementptr i8, ptr %to, i64 16
  store i64 %c, ptr %t3
  %t4 = getelementptr i8, ptr %to, i64 24
  store i64 %e, ptr %t4
  ret void
}
; ----
@f
  %a: 0: f64, 4: f64+4
  %b: 0: f32, 4: f32
  %c: 0: ptr, 4: ptr+4
