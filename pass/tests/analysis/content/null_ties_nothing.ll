; test content
; Two lists that both end in null stay two lists; stack slots that only integers enter hold integers.
define double @f(i1 %c, double %x) {
entry:
  %a = alloca double
  %b = alloca float
  br i1 %c, label %some, label %join
some:
  store double %x, ptr %a
  store float 1.0, ptr %b
  br label %join
join:
  %p = phi ptr [ null, %entry ], [ %a, %some ]
  %q = phi ptr [ null, %entry ], [ %b, %some ]
  %v = load double, ptr %p
  %w = load float, ptr %q
  %d = fpext float %w to double
  %r = fadd double %v, %d
  ret double %r
}
; ----
@f
  %a -> #0 +0
  %b -> #1 +0
  %p -> #0 +0
  %q -> #1 +0
  #0 stack: +0 f64
  #1 stack: +0 f32
