; The arena of a derivative: frames of unknown number, shadows of allocations. Blocks come from chunks of malloc's and
; are freed together. `arena.cur` and `arena.end` bound the free rest of the newest chunk; a chunk begins with the
; address of the one before it.

%cotangent.arena = type { ptr, ptr, ptr, ptr, i64, ptr, ptr }

declare noalias ptr @malloc(i64)
declare void @free(ptr)
declare void @abort()
declare i32 @dprintf(i32, ptr, ...)
declare ptr @cotangent.spare.take(i64) #10
declare ptr @cotangent.spare.fresh(i64) #10
declare void @cotangent.spare.put(ptr readonly captures(none)) #10
declare ptr @cotangent.object(ptr, ptr)
declare void @cotangent.lost(ptr)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare extern_weak void @cotangent_kernel_underived(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; A block of `size` bytes, aligned to 16.
define noalias ptr @cotangent.alloc(ptr %arena, i64 %size) #0 {
entry:
  %padded = add i64 %size, 15
  %bytes = and i64 %padded, -16
  %cur = load ptr, ptr %arena, align 8
  %end.at = getelementptr i8, ptr %arena, i64 8
  %end = load ptr, ptr %end.at, align 8
  %from = ptrtoint ptr %cur to i64
  %to = ptrtoint ptr %end to i64
  %free = sub i64 %to, %from
  %fits = icmp ule i64 %bytes, %free
  br i1 %fits, label %bump, label %grow, !prof !0

bump:
  %next = getelementptr i8, ptr %cur, i64 %bytes
  store ptr %next, ptr %arena, align 8
  ret ptr %cur

grow:
  %chunk = call ptr @cotangent.grow(ptr %arena, i64 %bytes)
  ret ptr %chunk
}

; Starts a chunk: twice as large as the arena's last one was, or as large as the block needs. Large ones are used again
; (`spare.ll`).
define ptr @cotangent.grow(ptr %arena, i64 %bytes) #1 {
entry:
  %chunks.at = getelementptr i8, ptr %arena, i64 16
  %chunks = load ptr, ptr %chunks.at, align 8
  %first = icmp eq ptr %chunks, null
  br i1 %first, label %small, label %double

small:
  br label %take

double:
  %size.at = getelementptr i8, ptr %chunks, i64 8
  %last = load i64, ptr %size.at, align 8
  %twice = shl i64 %last, 1
  %huge = icmp ugt i64 %twice, 1073741824
  %bounded = select i1 %huge, i64 1073741824, i64 %twice
  br label %take

take:
  %wanted = phi i64 [ 16384, %small ], [ %bounded, %double ]
  %least = add i64 %bytes, 16
  %more = icmp ugt i64 %least, %wanted
  %size = select i1 %more, i64 %least, i64 %wanted
  %large = icmp uge i64 %size, 4194304
  br i1 %large, label %again, label %fresh

again:
  %spare = call ptr @cotangent.spare.take(i64 %size)
  %found = icmp ne ptr %spare, null
  br i1 %found, label %link, label %huge.pages

huge.pages:
  %new.large = call ptr @cotangent.spare.fresh(i64 %size)
  br label %made

fresh:
  %new.small = call ptr @malloc(i64 %size)
  br label %made

made:
  %new = phi ptr [ %new.large, %huge.pages ], [ %new.small, %fresh ]
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %none, label %sized

none:
  call void @cotangent.stop(ptr @cotangent.no.memory)
  unreachable

sized:
  %new.size = getelementptr i8, ptr %new, i64 8
  store i64 %size, ptr %new.size, align 8
  br label %link

link:
  %chunk = phi ptr [ %spare, %again ], [ %new, %sized ]
  store ptr %chunks, ptr %chunk, align 8
  store ptr %chunk, ptr %chunks.at, align 8
  %block = getelementptr i8, ptr %chunk, i64 16
  %next = getelementptr i8, ptr %block, i64 %bytes
  store ptr %next, ptr %arena, align 8
  %chunk.size.at = getelementptr i8, ptr %chunk, i64 8
  %chunk.size = load i64, ptr %chunk.size.at, align 8
  %end = getelementptr i8, ptr %chunk, i64 %chunk.size
  %end.at = getelementptr i8, ptr %arena, i64 8
  store ptr %end, ptr %end.at, align 8
  ret ptr %block
}

; The reverse of calls goes down the arena, on a way that the processor does not foresee: what lies below a frame is wanted
; soon. At addresses where nothing is, a prefetch does nothing.
define void @cotangent.ahead(ptr %frame) #4 {
entry:
  %first = getelementptr i8, ptr %frame, i64 -1024
  %second = getelementptr i8, ptr %frame, i64 -1088
  %third = getelementptr i8, ptr %frame, i64 -1152
  %fourth = getelementptr i8, ptr %frame, i64 -1216
  call void @llvm.prefetch.p0(ptr %first, i32 0, i32 3, i32 1)
  call void @llvm.prefetch.p0(ptr %second, i32 0, i32 3, i32 1)
  call void @llvm.prefetch.p0(ptr %third, i32 0, i32 3, i32 1)
  call void @llvm.prefetch.p0(ptr %fourth, i32 0, i32 3, i32 1)
  ret void
}

@cotangent.no.memory = private unnamed_addr constant [39 x i8] c"cotangent: out of memory for the tape.\00"

; Frees all chunks. The newest is the largest, or was taken again: it may become the spare one.
define void @cotangent.release(ptr %arena) #2 {
entry:
  %chunks.at = getelementptr i8, ptr %arena, i64 16
  %chunks = load ptr, ptr %chunks.at, align 8
  %any = icmp ne ptr %chunks, null
  br i1 %any, label %newest, label %exit

newest:
  %size.at = getelementptr i8, ptr %chunks, i64 8
  %size = load i64, ptr %size.at, align 8
  %large = icmp uge i64 %size, 4194304
  br i1 %large, label %keep, label %loop

keep:
  %others = load ptr, ptr %chunks, align 8
  call void @cotangent.spare.put(ptr %chunks)
  br label %loop

loop:
  %chunk = phi ptr [ %chunks, %newest ], [ %others, %keep ], [ %before, %body ]
  %done = icmp eq ptr %chunk, null
  br i1 %done, label %exit, label %body

body:
  %before = load ptr, ptr %chunk, align 8
  call void @free(ptr %chunk)
  br label %loop

exit:
  ret void
}

; The shadow of an allocation: a zeroed block, whose size stands 16 bytes before it.
define noalias ptr @cotangent.shadow.alloc(ptr %arena, i64 %size) #6 {
entry:
  %bytes = add i64 %size, 16
  %block = call ptr @cotangent.alloc(ptr %arena, i64 %bytes)
  store i64 %size, ptr %block, align 8
  %shadow = getelementptr i8, ptr %block, i64 16
  call void @llvm.memset.p0.i64(ptr align 16 %shadow, i8 0, i64 %size, i1 false)
  ret ptr %shadow
}

; The shadow of a reallocation: a block with what the old shadow holds. Beside its size stands how much was copied.
define ptr @cotangent.shadow.realloc(ptr %arena, ptr allocptr %old, i64 %size, ptr %message) #7 {
entry:
  %new = call ptr @cotangent.shadow.alloc(ptr %arena, i64 %size)
  %bits = ptrtoint ptr %old to i64
  ; Neither without a shadow nor null.
  %from.one = sub i64 %bits, 1
  %active = icmp ult i64 %from.one, 4611686018427387903
  br i1 %active, label %copy, label %done

copy:
  call void @cotangent.shadow.sized(ptr %arena, ptr %old, ptr %message)
  %size.at = getelementptr i8, ptr %old, i64 -16
  %before = load i64, ptr %size.at, align 8
  %less = icmp ult i64 %before, %size
  %common = select i1 %less, i64 %before, i64 %size
  %common.at = getelementptr i8, ptr %new, i64 -8
  store i64 %common, ptr %common.at, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %new, ptr align 16 %old, i64 %common, i1 false)
  br label %done

done:
  ret ptr %new
}

; Before the shadow of an allocation stands its size: of those in the arena, and of all if the caller has a table. The
; shadow of other memory of the caller's has none, and the program stops.
define void @cotangent.shadow.sized(ptr %arena, ptr %shadow, ptr %message) #9 {
entry:
  %objects.at = getelementptr i8, ptr %arena, i64 24
  %objects = load ptr, ptr %objects.at, align 8
  %table = icmp ne ptr %objects, null
  br i1 %table, label %known, label %look

look:
  %chunks.at = getelementptr i8, ptr %arena, i64 16
  %chunks = load ptr, ptr %chunks.at, align 8
  %address = ptrtoint ptr %shadow to i64
  br label %loop

loop:
  %chunk = phi ptr [ %chunks, %look ], [ %before, %step ]
  %none = icmp eq ptr %chunk, null
  br i1 %none, label %stop, label %step

step:
  %before = load ptr, ptr %chunk, align 8
  %size.at = getelementptr i8, ptr %chunk, i64 8
  %size = load i64, ptr %size.at, align 8
  %start = ptrtoint ptr %chunk to i64
  %within = sub i64 %address, %start
  %inside = icmp ult i64 %within, %size
  br i1 %inside, label %known, label %loop

stop:
  call void @cotangent.lost(ptr %message)
  unreachable

known:
  ret void
}

; Its reverse: the old block is dead after the reallocation, so its cotangents are those of the new one.
define void @cotangent.shadow.realloc.reverse(ptr %old, ptr %new) #3 {
entry:
  %size.at = getelementptr i8, ptr %new, i64 -16
  %size = load i64, ptr %size.at, align 8
  %bits = ptrtoint ptr %old to i64
  ; Neither without a shadow nor null.
  %from.one = sub i64 %bits, 1
  %active = icmp ult i64 %from.one, 4611686018427387903
  br i1 %active, label %copy, label %done

copy:
  %common.at = getelementptr i8, ptr %new, i64 -8
  %common = load i64, ptr %common.at, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %old, ptr align 16 %new, i64 %common, i1 false)
  br label %done

done:
  call void @llvm.memset.p0.i64(ptr align 16 %new, i8 0, i64 %size, i1 false)
  ret void
}

; Zeroes the shadow of an allocation.
define void @cotangent.shadow.clear(ptr %shadow) #3 {
entry:
  %size.at = getelementptr i8, ptr %shadow, i64 -16
  %size = load i64, ptr %size.at, align 8
  call void @llvm.memset.p0.i64(ptr align 16 %shadow, i8 0, i64 %size, i1 false)
  ret void
}

; The shadow of a pointer that was loaded from memory: the word that its shadow memory holds; if it holds none, what the
; caller's table says of the address.
define ptr @cotangent.shadow(ptr %arena, ptr %primal, ptr %word) #4 {
entry:
  %known = icmp ne ptr %word, null
  br i1 %known, label %found, label %find

found:
  ret ptr %word

find:
  %shadow = call ptr @cotangent.elsewhere(ptr %arena, ptr %primal)
  ret ptr %shadow
}

; The same in another direction than the first, of which the shadows of global variables lie at a distance. Who asks for
; several directions has no table.
define ptr @cotangent.shadow.in(ptr %arena, ptr %primal, ptr %word, i64 %distance) #4 {
entry:
  %known = icmp ne ptr %word, null
  br i1 %known, label %found, label %find

found:
  ret ptr %word

find:
  %first = call ptr @cotangent.elsewhere(ptr %arena, ptr %primal)
  %bits = ptrtoint ptr %first to i64
  %active = icmp ult i64 %bits, 4611686018427387904
  %by = select i1 %active, i64 %distance, i64 0
  %shadow = getelementptr i8, ptr %first, i64 %by
  ret ptr %shadow
}

; The shadow of an address that no shadow word tells: of what the caller's table lists, or of a global variable.
define ptr @cotangent.elsewhere(ptr %arena, ptr %primal) #8 {
entry:
  %object = call ptr @cotangent.object(ptr %arena, ptr %primal)
  %bits = ptrtoint ptr %object to i64
  %active = icmp ult i64 %bits, 4611686018427387904
  br i1 %active, label %done, label %globals

globals:
  %block.at = getelementptr i8, ptr %arena, i64 48
  %block = load ptr, ptr %block.at, align 8
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %count

count:
  %n = load i64, ptr %block, align 8
  %address = ptrtoint ptr %primal to i64
  br label %loop

loop:
  %k = phi i64 [ 0, %count ], [ %next, %step ]
  %more = icmp ult i64 %k, %n
  br i1 %more, label %step, label %done

step:
  %offset = mul i64 %k, 24
  %first = getelementptr i8, ptr %block, i64 16
  %entry.at = getelementptr i8, ptr %first, i64 %offset
  %start = load i64, ptr %entry.at, align 8
  %size.at = getelementptr i8, ptr %entry.at, i64 8
  %size = load i64, ptr %size.at, align 8
  %within = sub i64 %address, %start
  %inside = icmp ult i64 %within, %size
  %next = add i64 %k, 1
  br i1 %inside, label %found, label %loop

found:
  %shadow.at = getelementptr i8, ptr %entry.at, i64 16
  %shadow = load ptr, ptr %shadow.at, align 8
  %place = getelementptr i8, ptr %shadow, i64 %within
  ret ptr %place

done:
  ret ptr %object
}

; Zeroes the shadows of global variables.
define void @cotangent.globals.clear(ptr %arena) #3 {
entry:
  %block.at = getelementptr i8, ptr %arena, i64 48
  %block = load ptr, ptr %block.at, align 8
  %from.at = getelementptr i8, ptr %block, i64 8
  %from = load i64, ptr %from.at, align 8
  %total.at = getelementptr i8, ptr %block, i64 -16
  %total = load i64, ptr %total.at, align 8
  %bytes = sub i64 %total, %from
  %shadows = getelementptr i8, ptr %block, i64 %from
  call void @llvm.memset.p0.i64(ptr align 16 %shadows, i8 0, i64 %bytes, i1 false)
  ret void
}

; Stops the program with a message.
define void @cotangent.stop(ptr %message) #5 {
entry:
  %said = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @cotangent.line, ptr %message)
  call void @abort()
  unreachable
}

@cotangent.line = private unnamed_addr constant [4 x i8] c"%s\0A\00"

; A pointer was called whose function has no derivative. Where there is a Rust runtime, it panics.
define void @cotangent.no.derivative(ptr %function) #11 {
entry:
  %rust = icmp ne ptr @cotangent_kernel_underived, null
  br i1 %rust, label %panic, label %print

panic:
  call void @cotangent_kernel_underived(ptr %function)
  unreachable

print:
  %said = call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @cotangent.says.no.derivative, ptr %function)
  call void @abort()
  unreachable
}

@cotangent.says.no.derivative = private unnamed_addr constant [107 x i8] c"cotangent: the function at %p, which the program has called by a pointer, is not part of the code at hand\0A\00"

attributes #0 = { noinline nounwind allockind("alloc,uninitialized") allocsize(1) "alloc-family"="cotangent" }
attributes #1 = { noinline cold nounwind }
attributes #2 = { nounwind "cotangent-inactive" }
attributes #3 = { nounwind }
attributes #4 = { nounwind alwaysinline }
attributes #6 = { nounwind allockind("alloc,zeroed") allocsize(1) "alloc-family"="cotangent" }
attributes #7 = { nounwind allockind("realloc") allocsize(2) "alloc-family"="cotangent" }

!0 = !{!"branch_weights", i32 2000, i32 1}
attributes #5 = { noinline cold noreturn nounwind }
attributes #8 = { noinline nounwind }
attributes #11 = { noinline cold noreturn }
attributes #9 = { "cotangent-inactive" }
attributes #10 = { nounwind "cotangent-inactive" }
