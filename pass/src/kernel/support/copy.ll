; Copies of memory. Forward, shadow pointers are copied. In reverse, cotangents of the copy are added to those of the
; original, and end in the copy. A table has the offsets of the
; fields of one sort in a period; in `fields.ll` is what moves these back.

declare void @cotangent.stop(ptr)
declare i64 @cotangent.given.pointer(i64, i64)
declare i64 @cotangent.given.left(i64, i64, i64)

@cotangent.says.undecided = private unnamed_addr constant [213 x i8] c"cotangent: two cotangents meet in memory of which nothing tells whether it holds floats, doubles or integers (a union, or what is only copied): use the values by their type, and leave zeros in shadows of integers\00"

; Two cotangents were to be added of which the width is not known.
define void @cotangent.undecided() #1 {
entry:
  call void @cotangent.stop(ptr @cotangent.says.undecided)
  unreachable
}

; Memory that holds doubles. Reverse of `memcpy`.
define void @cotangent.move.f64(ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %none = icmp ult i64 %bytes, 8
  br i1 %none, label %exit, label %loop

loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @cotangent.move.one.f64(ptr %to, ptr %from, i64 %at)
  %next = add nuw i64 %at, 8
  %end = add nuw i64 %next, 8
  %more = icmp ule i64 %end, %bytes
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

; Reverse of `memmove`: where the ranges overlap, against the order of the forward copy.
define void @cotangent.move.back.f64(ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %ahead = icmp ult ptr %from, %to
  br i1 %ahead, label %descend, label %ascend

ascend:
  call void @cotangent.move.f64(ptr %to, ptr %from, i64 %bytes)
  ret void

descend:
  %whole = and i64 %bytes, -8
  br label %loop

loop:
  %left = phi i64 [ %whole, %descend ], [ %at, %body ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %exit, label %body

body:
  %at = sub nuw i64 %left, 8
  call void @cotangent.move.one.f64(ptr %to, ptr %from, i64 %at)
  br label %loop

exit:
  ret void
}

define void @cotangent.move.one.f64(ptr %to, ptr %from, i64 %at) #2 {
entry:
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %x = load double, ptr %from.at, align 8
  store double 0.0, ptr %from.at, align 8
  %y = load double, ptr %to.at, align 8
  %sum = fadd double %x, %y
  store double %sum, ptr %to.at, align 8
  ret void
}

; Memory that holds floats. Reverse of `memcpy`.
define void @cotangent.move.f32(ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %none = icmp ult i64 %bytes, 4
  br i1 %none, label %exit, label %loop

loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @cotangent.move.one.f32(ptr %to, ptr %from, i64 %at)
  %next = add nuw i64 %at, 4
  %end = add nuw i64 %next, 4
  %more = icmp ule i64 %end, %bytes
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

; Reverse of `memmove`: where the ranges overlap, against the order of the forward copy.
define void @cotangent.move.back.f32(ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %ahead = icmp ult ptr %from, %to
  br i1 %ahead, label %descend, label %ascend

ascend:
  call void @cotangent.move.f32(ptr %to, ptr %from, i64 %bytes)
  ret void

descend:
  %whole = and i64 %bytes, -4
  br label %loop

loop:
  %left = phi i64 [ %whole, %descend ], [ %at, %body ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %exit, label %body

body:
  %at = sub nuw i64 %left, 4
  call void @cotangent.move.one.f32(ptr %to, ptr %from, i64 %at)
  br label %loop

exit:
  ret void
}

define void @cotangent.move.one.f32(ptr %to, ptr %from, i64 %at) #2 {
entry:
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %x = load float, ptr %from.at, align 4
  store float 0.0, ptr %from.at, align 4
  %y = load float, ptr %to.at, align 4
  %sum = fadd float %x, %y
  store float %sum, ptr %to.at, align 4
  ret void
}

; Memory that holds fields: its pointers, forward. Where the ranges overlap, from their end if the copy lies ahead.
define void @cotangent.copy.fields(ptr %to, ptr %from, i64 %bytes, i64 %period, ptr %table, i64 %count) #2 {
entry:
  %periods = call i64 @cotangent.periods(i64 %bytes, i64 %period)
  %descend = icmp ult ptr %from, %to
  br label %period.head

period.head:
  %p = phi i64 [ 0, %entry ], [ %p.next, %period.next ]
  %in = icmp ult i64 %p, %periods
  br i1 %in, label %field.head, label %exit

field.head:
  %k = phi i64 [ 0, %period.head ], [ %k.next, %field.next ]
  %open = icmp ult i64 %k, %count
  br i1 %open, label %field, label %period.next

field:
  %turn = call i64 @cotangent.turn(i64 %p, i64 %periods, i1 %descend)
  %base = mul i64 %turn, %period
  %here = call i64 @cotangent.turn(i64 %k, i64 %count, i1 %descend)
  %offset.at = getelementptr i64, ptr %table, i64 %here
  %offset = load i64, ptr %offset.at, align 8
  %at = add i64 %base, %offset
  %left = icmp ult i64 %at, %bytes
  br i1 %left, label %copy, label %field.next

copy:
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %word = load ptr, ptr %from.at, align 1
  store ptr %word, ptr %to.at, align 1
  br label %field.next

field.next:
  %k.next = add i64 %k, 1
  br label %field.head

period.next:
  %p.next = add i64 %p, 1
  br label %period.head

exit:
  ret void
}

; How many periods there are, the last one perhaps in part.
define i64 @cotangent.periods(i64 %bytes, i64 %period) #2 {
entry:
  %short = sub i64 %period, 1
  %up = add i64 %bytes, %short
  %none = icmp eq i64 %period, 0
  %by = select i1 %none, i64 1, i64 %period
  %periods = udiv i64 %up, %by
  %all = select i1 %none, i64 0, i64 %periods
  ret i64 %all
}

; Which of `count` is the `k`-th, from the start or from the end.
define i64 @cotangent.turn(i64 %k, i64 %count, i1 %descend) #2 {
entry:
  %left = sub i64 %count, %k
  %last = sub i64 %left, 1
  %turn = select i1 %descend, i64 %last, i64 %k
  ret i64 %turn
}

define void @cotangent.move.one.part(ptr %to, ptr %from, i64 %at) #2 {
entry:
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %x = load i32, ptr %from.at, align 1
  store i32 0, ptr %from.at, align 1
  %y = load i32, ptr %to.at, align 1
  %sum = call i32 @cotangent.add.part(i32 %x, i32 %y)
  store i32 %sum, ptr %to.at, align 1
  ret void
}

; The sum of two times four bytes of the caller's memory, which no code touches as what they are: of a float of some width,
; or of an integer. It is known where only one of the two is not zero.
define i32 @cotangent.add.part(i32 %x, i32 %y) #0 {
entry:
  %x.zero = icmp eq i32 %x, 0
  %y.zero = icmp eq i32 %y, 0
  %decided = or i1 %x.zero, %y.zero
  br i1 %decided, label %add, label %stop

stop:
  call void @cotangent.undecided()
  unreachable

add:
  %sum = or i32 %x, %y
  ret i32 %sum
}

define void @cotangent.move.one.f80(ptr %to, ptr %from, i64 %at) #0 {
entry:
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %x = load x86_fp80, ptr %from.at, align 4
  store x86_fp80 0xK00000000000000000000, ptr %from.at, align 4
  %y = load x86_fp80, ptr %to.at, align 4
  %sum = fadd x86_fp80 %x, %y
  store x86_fp80 %sum, ptr %to.at, align 4
  ret void
}

; Memory of the program's own of which it is not known what is where. In the forward sweep floats are zero in shadows, so
; every word that is not is a pointer. Gives a mask of them, one byte a word. The first word begins where `to` is aligned.
define ptr @cotangent.copy.words(ptr %arena, ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %words = lshr i64 %bytes, 3
  %mask = call ptr @cotangent.alloc(ptr %arena, i64 %words)
  %ahead = icmp ult ptr %from, %to
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %k, %words
  br i1 %more, label %body, label %exit

body:
  %last = sub i64 %words, %k
  %back = sub i64 %last, 1
  %here = select i1 %ahead, i64 %back, i64 %k
  %from.at = getelementptr i64, ptr %from, i64 %here
  %to.at = getelementptr i64, ptr %to, i64 %here
  %mask.at = getelementptr i8, ptr %mask, i64 %here
  %word = load i64, ptr %from.at, align 1
  store i64 %word, ptr %to.at, align 1
  %pointer = icmp ne i64 %word, 0
  %byte = zext i1 %pointer to i8
  store i8 %byte, ptr %mask.at, align 1
  %next = add i64 %k, 1
  br label %loop

exit:
  ret ptr %mask
}

; The same where an end is the caller's, before the copy is made. There the shadow of a float may be a seed, and an address
; tells a pointer: see `reverse/given.rs`. A mask of 2 says that the shadow of the pointer stays in the copy's place.
define ptr @cotangent.copy.given(ptr %arena, ptr %to, ptr %from, i64 %bytes, ptr %primal.to, ptr %primal.from, i64 %to.given, i64 %from.given) #0 {
entry:
  %words = lshr i64 %bytes, 3
  %mask = call ptr @cotangent.alloc(ptr %arena, i64 %words)
  %ahead = icmp ult ptr %from, %to
  %seeds.to = icmp ne i64 %to.given, 0
  %seeds.from = icmp ne i64 %from.given, 0
  %says = select i1 %seeds.to, i8 2, i8 1
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %k, %words
  br i1 %more, label %body, label %exit

body:
  %here = call i64 @cotangent.turn(i64 %k, i64 %words, i1 %ahead)
  %from.at = getelementptr i64, ptr %from, i64 %here
  %to.at = getelementptr i64, ptr %to, i64 %here
  %mask.at = getelementptr i8, ptr %mask, i64 %here
  %new.at = getelementptr i64, ptr %primal.from, i64 %here
  %old.at = getelementptr i64, ptr %primal.to, i64 %here
  %word = load i64, ptr %from.at, align 1
  %seed = load i64, ptr %to.at, align 1
  %new = load i64, ptr %new.at, align 1
  %old = load i64, ptr %old.at, align 1
  %found = call i64 @cotangent.given.pointer(i64 %new, i64 %word)
  %shadow = select i1 %seeds.from, i64 %found, i64 %word
  %pointer = icmp ne i64 %shadow, 0
  %kept = call i64 @cotangent.given.left(i64 %old, i64 %seed, i64 %shadow)
  %left = select i1 %seeds.to, i64 %kept, i64 %shadow
  store i64 %left, ptr %to.at, align 1
  %byte = select i1 %pointer, i8 %says, i8 0
  store i8 %byte, ptr %mask.at, align 1
  %next = add i64 %k, 1
  br label %loop

exit:
  ret ptr %mask
}

; Its reverse: words that were pointers are left out. Two floats that may be of either width are only added if one is 0.
define void @cotangent.move.words(ptr %to, ptr %from, i64 %bytes, ptr %mask, i64 %sort) #0 {
entry:
  %words = lshr i64 %bytes, 3
  %descend = icmp ult ptr %from, %to
  ; Where either end does not begin as a float would, nobody knows where in the block they begin.
  %to.bits = ptrtoint ptr %to to i64
  %from.bits = ptrtoint ptr %from to i64
  %ends = or i64 %to.bits, %from.bits
  %floats = icmp eq i64 %sort, 2
  %width = select i1 %floats, i64 3, i64 7
  %beside = and i64 %ends, %width
  %aligned = icmp eq i64 %beside, 0
  br i1 %aligned, label %loop, label %pieces

pieces:
  call void @cotangent.move.pieces(ptr %to, ptr %from, i64 %bytes, ptr %mask, i64 %words)
  ret void

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp ult i64 %k, %words
  br i1 %more, label %body, label %exit

body:
  %last = sub i64 %words, %k
  %back = sub i64 %last, 1
  %here = select i1 %descend, i64 %back, i64 %k
  %mask.at = getelementptr i8, ptr %mask, i64 %here
  %byte = load i8, ptr %mask.at, align 1
  %at = shl i64 %here, 3
  switch i8 %byte, label %step [
    i8 0, label %what
    i8 1, label %clear
  ]

clear:
  %clear.at = getelementptr i8, ptr %from, i64 %at
  store i64 0, ptr %clear.at, align 1
  br label %step

what:
  switch i64 %sort, label %either [
    i64 1, label %double
    i64 2, label %float
  ]

double:
  call void @cotangent.move.one.f64(ptr %to, ptr %from, i64 %at)
  br label %step

float:
  call void @cotangent.move.one.f32(ptr %to, ptr %from, i64 %at)
  %half = add i64 %at, 4
  call void @cotangent.move.one.f32(ptr %to, ptr %from, i64 %half)
  br label %step

either:
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %x = load i64, ptr %from.at, align 1
  %y = load i64, ptr %to.at, align 1
  %x.zero = icmp eq i64 %x, 0
  %y.zero = icmp eq i64 %y, 0
  %decided = or i1 %x.zero, %y.zero
  br i1 %decided, label %add, label %stop

stop:
  call void @cotangent.undecided()
  unreachable

add:
  %sum = or i64 %x, %y
  store i64 0, ptr %from.at, align 1
  store i64 %sum, ptr %to.at, align 1
  br label %step

step:
  %next = add i64 %k, 1
  br label %loop

exit:
  %last.at = shl i64 %words, 3
  %doubles = icmp eq i64 %sort, 1
  br i1 %doubles, label %last.half, label %last.four

last.half:
  %left = and i64 %bytes, 7
  %to.left = getelementptr i8, ptr %to, i64 %last.at
  %from.left = getelementptr i8, ptr %from, i64 %last.at
  call void @cotangent.move.pieces(ptr %to.left, ptr %from.left, i64 %left, ptr %mask, i64 0)
  ret void

last.four:
  %tail = and i64 %bytes, 4
  %rest = icmp ne i64 %tail, 0
  br i1 %rest, label %last.float, label %done

last.float:
  call void @cotangent.move.one.f32(ptr %to, ptr %from, i64 %last.at)
  br label %done

done:
  ret void
}

; The same, byte by byte: of every two one must be zero. Only the first words are masked.
define void @cotangent.move.pieces(ptr %to, ptr %from, i64 %bytes, ptr %mask, i64 %words) #0 {
entry:
  %descend = icmp ult ptr %from, %to
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %body, label %exit

body:
  %here = call i64 @cotangent.turn(i64 %k, i64 %bytes, i1 %descend)
  %from.at = getelementptr i8, ptr %from, i64 %here
  %to.at = getelementptr i8, ptr %to, i64 %here
  %word = lshr i64 %here, 3
  %masked = icmp ult i64 %word, %words
  br i1 %masked, label %ask, label %move

ask:
  %mask.at = getelementptr i8, ptr %mask, i64 %word
  %what = load i8, ptr %mask.at, align 1
  switch i8 %what, label %step [
    i8 0, label %move
    i8 1, label %clear
  ]

clear:
  store i8 0, ptr %from.at, align 1
  br label %step

move:
  %x = load i8, ptr %from.at, align 1
  %y = load i8, ptr %to.at, align 1
  %x.zero = icmp eq i8 %x, 0
  %y.zero = icmp eq i8 %y, 0
  %decided = or i1 %x.zero, %y.zero
  br i1 %decided, label %add, label %stop

stop:
  call void @cotangent.undecided()
  unreachable

add:
  %sum = or i8 %x, %y
  store i8 0, ptr %from.at, align 1
  store i8 %sum, ptr %to.at, align 1
  br label %step

step:
  %next = add i64 %k, 1
  br label %loop

exit:
  ret void
}

; The sum of two words: doubles (1), floats (2), or what only one of them is not zero of (3).
define i64 @cotangent.add.word(i64 %x, i64 %y, i64 %sort) #0 {
entry:
  switch i64 %sort, label %either [
    i64 1, label %double
    i64 2, label %float
  ]

double:
  %a = bitcast i64 %x to double
  %b = bitcast i64 %y to double
  %c = fadd double %a, %b
  %d = bitcast double %c to i64
  ret i64 %d

float:
  %p = bitcast i64 %x to <2 x float>
  %q = bitcast i64 %y to <2 x float>
  %r = fadd <2 x float> %p, %q
  %s = bitcast <2 x float> %r to i64
  ret i64 %s

either:
  %x.zero = icmp eq i64 %x, 0
  %y.zero = icmp eq i64 %y, 0
  %decided = or i1 %x.zero, %y.zero
  br i1 %decided, label %merge, label %stop

stop:
  call void @cotangent.undecided()
  unreachable

merge:
  %sum = or i64 %x, %y
  ret i64 %sum
}

declare ptr @cotangent.alloc(ptr, i64)

attributes #0 = { nounwind }
attributes #1 = { noinline cold noreturn nounwind }
attributes #2 = { nounwind alwaysinline }
