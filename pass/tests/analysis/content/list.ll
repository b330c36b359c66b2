; test content
; A linked list on the heap: one region that points into itself.
declare noalias ptr @make(i64) allockind("alloc,uninitialized") allocsize(0) "alloc-family"="malloc"
define ptr @push(ptr %list, double %x) {
  %node = call ptr @make(i64 16)
  store double %x, ptr %node
  %next = getelementptr i8, ptr %node, i64 8
  store ptr %list, ptr %next
  ret ptr %node
}
define double @sum(ptr %list) {
entry:
  br label %loop
loop:
  %p = phi ptr [ %list, %entry ], [ %q, %body ]
  %s = phi double [ 0.0, %entry ], [ %t, %body ]
  %end = icmp eq ptr %p, null
  br i1 %end, label %exit, label %body
body:
  %v = load double, ptr %p
  %t = fadd double %s, %v
  %n = getelementptr i8, ptr %p, i64 8
  %q = load ptr, ptr %n
  br label %loop
exit:
  ret double %s
}
; ----
@push
  %list -> #0 +0
  %node -> #1 +0
  %next -> #1 +8
  #0 open:
  #1 heap: +0 f64, +8 ptr -> #0 +0
@sum
  %list -> #0 +0
  %p -> #0 +0
  %n -> #0 +8
  %q -> #0 +0
  #0 open: +0 f64, +8 ptr -> #0 +0
