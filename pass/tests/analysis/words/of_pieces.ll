; test words
; Four bytes that are put together of halves and only copied are words, made of pieces, as the halves are; a count that is
; written the same way, where no float is near, is none.
define double @put_together(ptr %x) {
  %kept = alloca [2 x i32]
  %moved = alloca [2 x i32]
  %copy = alloca double
  %v = load double, ptr %x
  br label %take
take:
  %i = phi i64 [ 0, %0 ], [ %i.next, %take ]
  %from = getelementptr inbounds nuw i16, ptr %x, i64 %i
  %half = load i16, ptr %from
  %at = getelementptr inbounds nuw i16, ptr %kept, i64 %i
  store i16 %half, ptr %at
  %i.next = add nuw nsw i64 %i, 1
  %taken = icmp eq i64 %i.next, 4
  br i1 %taken, label %move, label %take
move:
  %low = load i32, ptr %kept
  store i32 %low, ptr %moved
  %tail = getelementptr inbounds i8, ptr %kept, i64 4
  %high = load i32, ptr %tail
  %to = getelementptr inbounds i8, ptr %moved, i64 4
  store i32 %high, ptr %to
  br label %give
give:
  %k = phi i64 [ 0, %move ], [ %k.next, %give ]
  %source = getelementptr inbounds nuw i16, ptr %moved, i64 %k
  %piece = load i16, ptr %source
  %target = getelementptr inbounds nuw i16, ptr %copy, i64 %k
  store i16 %piece, ptr %target
  %k.next = add nuw nsw i64 %k, 1
  %given = icmp eq i64 %k.next, 4
  br i1 %given, label %done, label %give
done:
  %w = load double, ptr %copy
  %r = fadd double %v, %w
  ret double %r
}
define i16 @count(ptr %to, i16 %n) {
  %place = alloca i32
  store i16 %n, ptr %place
  %whole = load i32, ptr %place
  store i32 %whole, ptr %to
  %back = load i16, ptr %place
  ret i16 %back
}
; ----
@put_together
  %half: 0: bytes
  %low: 0: bytes
  %high: 0: bytes
  %piece: 0: bytes
@count
