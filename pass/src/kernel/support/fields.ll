; Memory that holds fields: reverse of a copy, for the fields of one sort.
define void @cotangent.move.fields.SORT(ptr %to, ptr %from, i64 %bytes, i64 %period, ptr %table, i64 %count) #1 {
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
  br i1 %left, label %move, label %field.next

move:
  call void @cotangent.move.one.SORT(ptr %to, ptr %from, i64 %at)
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

declare void @cotangent.move.one.SORT(ptr, ptr, i64)
declare i64 @cotangent.periods(i64, i64)
declare i64 @cotangent.turn(i64, i64, i1)

attributes #1 = { nounwind alwaysinline }
