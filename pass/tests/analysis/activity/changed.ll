; test activity scaled(dup,const)->active key(dup)->active
; Bits that are shifted by what only run time knows and go through bytes make the cast to float one that is laundered; a
; number that is computed from bits and stays one does not.
define double @scaled(ptr %x, i64 %by) {
  %raw = alloca [8 x i8]
  %v = load double, ptr %x
  %bits = bitcast double %v to i64
  %shifted = lshr i64 %bits, %by
  %low = trunc i64 %shifted to i8
  store i8 %low, ptr %raw
  %byte = load i8, ptr %raw
  %wide = zext i8 %byte to i64
  %back = shl i64 %wide, %by
  %float = bitcast i64 %back to double
  ret double %float
}
define double @key(ptr %x) {
  %raw = alloca i64
  %v = load double, ptr %x
  %bits = bitcast double %v to i64
  %exponent = lshr i64 %bits, 52
  store i64 %exponent, ptr %raw
  %n = load i64, ptr %raw
  %weight = sitofp i64 %n to double
  %r = fmul double %weight, %v
  ret double %r
}
; ----
@scaled
  laundered: %float
@key
  active: %v, %r
  shadowed: %x
