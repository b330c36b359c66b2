; test activity returned(dup)->active written(dup,dup) checked(dup)->active index(dup,dup) counted(dup,dup)
; Of memory of the caller's that is read as integers alone nobody knows that it holds no floats: what is computed from it and
; taken for a float, or stored to such memory, is laundered.
define double @returned(ptr %x) {
  %bits = load i64, ptr %x
  %more = add i64 %bits, 13510798882111488
  %float = bitcast i64 %more to double
  ret double %float
}
define void @written(ptr %x, ptr %y) {
  %bits = load i64, ptr %x
  %more = add i64 %bits, 13510798882111488
  store i64 %more, ptr %y
  ret void
}
declare { i64, i1 } @llvm.uadd.with.overflow.i64(i64, i64)
define double @checked(ptr %x) {
  %bits = load i64, ptr %x
  %sum = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %bits, i64 13510798882111488)
  %more = extractvalue { i64, i1 } %sum, 0
  %float = bitcast i64 %more to double
  ret double %float
}
define void @index(ptr %i, ptr %y) {
  %at = load i64, ptr %i
  %place = getelementptr double, ptr %y, i64 %at
  %v = load double, ptr %place
  %w = fmul double %v, %v
  store double %w, ptr %place
  ret void
}
define void @counted(ptr %n, ptr %y) {
  %old = load i32, ptr %n
  %new = add i32 %old, 1
  store i32 %new, ptr %n
  %float = sitofp i32 %new to double
  %v = load double, ptr %y
  %w = fmul double %v, %float
  store double %w, ptr %y
  ret void
}
; ----
@returned
  laundered: %float
@written
  shadowed: %y, %more
  writes: store i64 %more, ptr %y, align 4
  laundered: store i64 %more, ptr %y, align 4
@checked
  laundered: %float
  inactive calls: %sum
@index
  active: %v, %w
  shadowed: %y, %place
  writes: store double %w, ptr %place, align 8
@counted
  active: %v, %w
  shadowed: %n, %y, %new
  writes: store i32 %new, ptr %n, align 4, store double %w, ptr %y, align 8
  laundered: store i32 %new, ptr %n, align 4
