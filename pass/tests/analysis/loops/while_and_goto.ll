; test loops
; A loop that floats end has no count; one that is entered in two places is irreducible.
define double @while(double %x) {
entry:
  br label %loop
loop:
  %y = phi double [ %x, %entry ], [ %z, %loop ]
  %z = fmul double %y, 5.0e-1
  %more = fcmp ogt double %z, 1.0
  br i1 %more, label %loop, label %exit
exit:
  ret double %z
}
define void @goto(i1 %c, i1 %d) {
entry:
  br i1 %c, label %a, label %b
a:
  br label %b
b:
  br i1 %d, label %a, label %exit
exit:
  ret void
}
; ----
@while
  #0 loop loop: blocks loop; latches loop; exits loop->exit; count unknown
@goto
  #0 irreducible b a: blocks a b; latches a b; exits b->exit; count unknown
