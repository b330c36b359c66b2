; test content
; Fields keep their places; the elements of an array in the struct share one, between the bounds that the loop gives.
define void @f(ptr %s, double %x) {
entry:
  %w = getelementptr inbounds nuw i8, ptr %s, i64 8
  %last = getelementptr inbounds nuw i8, ptr %s, i64 40
  %n = load i32, ptr %s
  %y = load float, ptr %last
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr inbounds double, ptr %w, i64 %i
  store double %x, ptr %p
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 4
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
; ----
@f
  %s -> #0 +0
  %w -> #0 +8
  %last -> #0 +40
  %p -> #0 +8+8k [8..32]
  #0 open: +8+8k [8..32] f64, +40 f32
