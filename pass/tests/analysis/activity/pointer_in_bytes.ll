; test activity f(dup)->active
; What a pointer leads to that was moved byte by byte is read by it: it is active, and so are the bytes, which need shadows.
define double @f(ptr %x) {
  %value = alloca double
  %from = alloca ptr
  %to = alloca ptr
  %v = load double, ptr %x
  store double %v, ptr %value
  store ptr %value, ptr %from
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
  active: %v, %r
  shadowed: %x, %value, %from, %to, %a, %byte, %b, %p
  writes: store double %v, ptr %value, align 8, store ptr %value, ptr %from, align 8, store i8 %byte, ptr %b, align 1
