; test words
; A copy between arguments that nothing else touches may be of anything; one into a buffer of integers is of integers.
define i64 @f(ptr %to, ptr %from, ptr %n) {
  %own = alloca i64
  %a = load i64, ptr %from
  store i64 %a, ptr %to
  %b = load i64, ptr %n
  store i64 %b, ptr %own
  %c = load i64, ptr %own
  ret i64 %c
}
; ----
@f
  %a: 0: part, 4: part
