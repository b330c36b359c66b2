; test content
; A pointer that runs through an array reaches up, not down.
define double @f(ptr %s, ptr %end) {
entry:
  %tag = load ptr, ptr %s
  %v = load double, ptr %tag
  %a = getelementptr i8, ptr %s, i64 8
  br label %loop
loop:
  %p = phi ptr [ %a, %entry ], [ %n, %loop ]
  %sum = phi double [ %v, %entry ], [ %t, %loop ]
  %x = load double, ptr %p
  %t = fadd double %sum, %x
  %n = getelementptr inbounds nuw i8, ptr %p, i64 8
  %done = icmp eq ptr %n, %end
  br i1 %done, label %exit, label %loop
exit:
  ret double %t
}
; ----
@f
  %s -> #0 +0
  %end -> #1 +0
  %tag -> #2 +0
  %a -> #0 +8
  %p -> #0 +8+8k [8..]
  %n -> #0 +16+8k [16..]
  #0 open: +0 ptr -> #2 +0, +8 f64, +8+8k [8..] f64
  #1 open:
  #2 open: +0 f64
