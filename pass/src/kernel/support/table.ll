; The memory that a Rust call reaches, as the runtime lists it: objects { start, size, shadow, align }, sorted by start,
; whose address and number stand in the arena.

; The shadow of an address in one of them. Bisection: objects before `low` start at the address or before it, those
; from `high` on after it.
define ptr @cotangent.object(ptr %arena, ptr %primal) #0 {
entry:
  %objects.at = getelementptr i8, ptr %arena, i64 24
  %objects = load ptr, ptr %objects.at, align 8
  %count.at = getelementptr i8, ptr %arena, i64 32
  %count = load i64, ptr %count.at, align 8
  br label %loop

loop:
  %low = phi i64 [ 0, %entry ], [ %low.next, %step ]
  %high = phi i64 [ %count, %entry ], [ %high.next, %step ]
  %done = icmp uge i64 %low, %high
  br i1 %done, label %found, label %step

step:
  %sum = add nuw nsw i64 %low, %high
  %middle = lshr i64 %sum, 1
  %offset = shl i64 %middle, 5
  %object = getelementptr i8, ptr %objects, i64 %offset
  %start = load ptr, ptr %object, align 8
  %before = icmp ule ptr %start, %primal
  %after = add nuw nsw i64 %middle, 1
  %low.next = select i1 %before, i64 %after, i64 %low
  %high.next = select i1 %before, i64 %high, i64 %middle
  br label %loop

found:
  %none = icmp eq i64 %low, 0
  br i1 %none, label %inactive, label %check

check:
  %last = add i64 %low, -1
  %last.offset = shl i64 %last, 5
  %last.object = getelementptr i8, ptr %objects, i64 %last.offset
  %last.start = load ptr, ptr %last.object, align 8
  %size.at = getelementptr i8, ptr %last.object, i64 8
  %size = load i64, ptr %size.at, align 8
  %shadow.at = getelementptr i8, ptr %last.object, i64 16
  %shadow = load ptr, ptr %shadow.at, align 8
  %to = ptrtoint ptr %primal to i64
  %from = ptrtoint ptr %last.start to i64
  %within = sub i64 %to, %from
  %inside = icmp ult i64 %within, %size
  br i1 %inside, label %active, label %inactive

active:
  %place = getelementptr i8, ptr %shadow, i64 %within
  ret ptr %place

inactive:
  ret ptr inttoptr (i64 -9223372036854775808 to ptr)
}

attributes #0 = { nounwind }
