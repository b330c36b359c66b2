; Copies of memory. Forward, shadow pointers are copied. In reverse, cotangents of the copy are added to those of the
; original, and end in the copy. A table has the offsets of the fields of one sort in a period; in `fields.ll` is what moves
; these back, and in `words.ll` what serves where it is not known what is where.

declare void @cotangent.stop(ptr)

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

attributes #0 = { nounwind }
attributes #1 = { noinline cold noreturn nounwind }
attributes #2 = { nounwind alwaysinline }
