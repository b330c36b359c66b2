; test loops
; A loop with a constant count in one counted by an argument; a panic within does not count as an exit.
declare void @panic() noreturn
define void @f(i64 %n, i64 %len) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.latch ]
  %bad = icmp uge i64 %i, %len
  br i1 %bad, label %fail, label %inner.entry
fail:
  call void @panic()
  unreachable
inner.entry:
  br label %inner
inner:
  %j = phi i64 [ 0, %inner.entry ], [ %j.next, %inner ]
  %j.next = add nuw nsw i64 %j, 1
  %inner.done = icmp eq i64 %j.next, 4
  br i1 %inner.done, label %outer.latch, label %inner
outer.latch:
  %i.next = add nuw i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %exit, label %outer
exit:
  ret void
}
; ----
@f
  #0 loop outer: blocks outer inner.entry inner outer.latch; latches outer.latch; exits outer->fail outer.latch->exit; counted
  #1 loop inner: blocks inner; latches inner; exits inner->outer.latch; in #0; 3 times again
