; Cotangents of copied memory: those of the copy are added to those of the original, and end there.

define void @cotangent.move.f64(ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %none = icmp ult i64 %bytes, 8
  br i1 %none, label %exit, label %loop

loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %x = load double, ptr %from.at, align 8
  store double 0.0, ptr %from.at, align 8
  %y = load double, ptr %to.at, align 8
  %sum = fadd double %x, %y
  store double %sum, ptr %to.at, align 8
  %next = add nuw i64 %at, 8
  %end = add nuw i64 %next, 8
  %more = icmp ule i64 %end, %bytes
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

define void @cotangent.move.f32(ptr %to, ptr %from, i64 %bytes) #0 {
entry:
  %none = icmp ult i64 %bytes, 4
  br i1 %none, label %exit, label %loop

loop:
  %at = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from.at = getelementptr i8, ptr %from, i64 %at
  %to.at = getelementptr i8, ptr %to, i64 %at
  %x = load float, ptr %from.at, align 4
  store float 0.0, ptr %from.at, align 4
  %y = load float, ptr %to.at, align 4
  %sum = fadd float %x, %y
  store float %sum, ptr %to.at, align 4
  %next = add nuw i64 %at, 4
  %end = add nuw i64 %next, 4
  %more = icmp ule i64 %end, %bytes
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

attributes #0 = { nounwind }
