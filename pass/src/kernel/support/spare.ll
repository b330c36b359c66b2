; Chunks of arenas that are so large (4 MB) that the system takes their pages back when they are freed, and clears each page
; that is touched next: that costs more than what derivatives do with it. So one such chunk, of up to 1 GB, stays with the
; program for the next derivative, whatever thread runs it. The system is told that it may have the pages when it needs
; them. Derivatives of the same size, one after the other, so come to one chunk with pages that are there.
;
; No other support function has state. To code that is differentiated again these are functions outside of the program, which
; have no part in derivatives; they become part of it at the end.

; Beside it, derivatives that run at the same time have chunks of their own.
@cotangent.spare = linkonce_odr hidden global ptr null

declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)

; The spare chunk if there is one of at least that size; else null.
define ptr @cotangent.spare.take(i64 %size) #0 {
entry:
  %chunk = atomicrmw xchg ptr @cotangent.spare, ptr null acquire
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %nothing, label %look

look:
  %size.at = getelementptr i8, ptr %chunk, i64 8
  %here = load i64, ptr %size.at, align 8
  %fits = icmp uge i64 %here, %size
  br i1 %fits, label %found, label %small

found:
  ret ptr %chunk

small:
  ; Whoever asks keeps a larger one soon.
  call void @free(ptr %chunk)
  br label %nothing

nothing:
  ret ptr null
}

; A new chunk. It is backed by huge pages where the system has them.
define ptr @cotangent.spare.fresh(i64 %size) #0 {
entry:
  %chunk = call ptr @malloc(i64 %size)
  %failed = icmp eq ptr %chunk, null
  br i1 %failed, label %done, label %made

made:
  ; 14: MADV_HUGEPAGE.
  call void @cotangent.advise(ptr %chunk, i64 %size, i32 14)
  br label %done

done:
  ret ptr %chunk
}

; Makes a chunk the spare one. The one before it is freed, and this one if it is too large to be kept.
define void @cotangent.spare.put(ptr %chunk) #0 {
entry:
  %size.at = getelementptr i8, ptr %chunk, i64 8
  %size = load i64, ptr %size.at, align 8
  %fits = icmp ule i64 %size, 1073741824
  br i1 %fits, label %keep, label %old

keep:
  ; 8: MADV_FREE.
  call void @cotangent.advise(ptr %chunk, i64 %size, i32 8)
  %before = atomicrmw xchg ptr @cotangent.spare, ptr %chunk acq_rel
  br label %old

old:
  %goes = phi ptr [ %chunk, %entry ], [ %before, %keep ]
  call void @free(ptr %goes)
  ret void
}

; Tells the system something about the whole pages of a chunk, after the words at its start. Where it does not understand,
; that is all.
define void @cotangent.advise(ptr %chunk, i64 %size, i32 %advice) #0 {
entry:
  %from = ptrtoint ptr %chunk to i64
  %from.up = add i64 %from, 4111
  %start = and i64 %from.up, -4096
  %to = add i64 %from, %size
  %stop = and i64 %to, -4096
  %length = sub i64 %stop, %start
  %pages = inttoptr i64 %start to ptr
  %heard = call i32 @madvise(ptr %pages, i64 %length, i32 %advice)
  ret void
}

attributes #0 = { noinline cold nounwind "cotangent-inactive" }
