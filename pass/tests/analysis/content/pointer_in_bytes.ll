; test content f
; A pointer that is moved byte by byte leads where it led before.
define double @f(ptr %x) {
  %value = alloca double
  %other = alloca double
  %from = alloca ptr
  %to = alloca ptr
  store ptr %value, ptr %from
  store ptr %other, ptr %to
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %a = getelementptr inbounds nuw i8, ptr %from, i64 %i
  %byte = load i8, ptr %a
  %b = getelementptr inbounds nuw i8, ptr %to, i64 %i
  store i8 %byte, ptr %b
  %next = add nuw nsw i64 %i, 1
  %done = icmp eq i64 %next, 8
  br i1 %done, label %end, label %loop
end:
  %p = load ptr, ptr %to
  %r = load double, ptr %p
  ret double %r
}
; ----
@f
  %x -> #0 +0
  %value -> #1 +0
  %other -> #1 +0
  %from -> #2 +0
  %to -> #3 +0
  %a -> #2 +0+1k [0..7]
  %b -> #3 +0+1k [0..7]
  %p -> #1 +0
  #0 open:
  #1 stack: +0 f64
  #2 stack: +0 ptr -> #1 +0
  #3 stack: +0 ptr -> #1 +0
