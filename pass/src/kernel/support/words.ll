; Copies of memory of which it is not known what is where: some of it holds pointers, the rest floats.
;
; Where words begin, pointers and doubles, `told` says: 8 and so many bytes from the start, if that is known; else by an
; address that is a multiple of eight, of the copy (1), of the original (2), of both (3). The bytes before the first word and
; after the last go one by one; so do all, if nothing tells where words begin (0), or both ends do and differ. The mask has a
; byte for each of them, and one for a word.

; The bytes before the first word; 8 if it is not known where that is.
define i64 @cotangent.phase(ptr %to, ptr %from, i64 %told) #2 {
entry:
  %to.bits = ptrtoint ptr %to to i64
  %from.bits = ptrtoint ptr %from to i64
  %to.down = sub i64 0, %to.bits
  %from.down = sub i64 0, %from.bits
  %to.phase = and i64 %to.down, 7
  %from.phase = and i64 %from.down, 7
  %one = icmp eq i64 %told, 1
  %two = icmp eq i64 %told, 2
  %both = icmp eq i64 %told, 3
  %same = icmp eq i64 %to.phase, %from.phase
  %agree = and i1 %both, %same
  %by.to = or i1 %one, %agree
  %otherwise = select i1 %two, i64 %from.phase, i64 8
  %by.address = select i1 %by.to, i64 %to.phase, i64 %otherwise
  %known = icmp uge i64 %told, 8
  %distance = and i64 %told, 7
  %phase = select i1 %known, i64 %distance, i64 %by.address
  ret i64 %phase
}

; How many bytes go one by one before the words.
define i64 @cotangent.lead(i64 %phase, i64 %bytes) #2 {
entry:
  %blind = icmp eq i64 %phase, 8
  %short = icmp ult i64 %bytes, %phase
  %all = or i1 %blind, %short
  %lead = select i1 %all, i64 %bytes, i64 %phase
  ret i64 %lead
}

; Bytes of shadows of the program's own memory: see below.
define void @cotangent.copy.bytes(ptr %to, ptr %from, i64 %bytes, ptr %mask, i1 %ahead) #0 {
entry:
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %body, label %exit

body:
  %here = call i64 @cotangent.turn(i64 %k, i64 %bytes, i1 %ahead)
  %from.at = getelementptr i8, ptr %from, i64 %here
  %to.at = getelementptr i8, ptr %to, i64 %here
  %mask.at = getelementptr i8, ptr %mask, i64 %here
  %x = load i8, ptr %from.at, align 1
  store i8 %x, ptr %to.at, align 1
  %pointer = icmp ne i8 %x, 0
  %byte = zext i1 %pointer to i8
  store i8 %byte, ptr %mask.at, align 1
  %next = add i64 %k, 1
  br label %loop

exit:
  ret void
}

; Memory of the program's own. In the forward sweep floats are zero in shadows, so every word that is not is a pointer, and
; every byte a pointer's. Gives the mask of them.
define ptr @cotangent.copy.words(ptr %arena, ptr %to, ptr %from, i64 %bytes, i64 %told) #0 {
entry:
  %phase = call i64 @cotangent.phase(ptr %to, ptr %from, i64 %told)
  %lead = call i64 @cotangent.lead(i64 %phase, i64 %bytes)
  %rest = sub i64 %bytes, %lead
  %words = lshr i64 %rest, 3
  %tail = and i64 %rest, 7
  %ends = add i64 %lead, %tail
  %entries = add i64 %ends, %words
  %mask = call ptr @cotangent.alloc(ptr %arena, i64 %entries)
  %to.words = getelementptr i8, ptr %to, i64 %lead
  %from.words = getelementptr i8, ptr %from, i64 %lead
  %mask.words = getelementptr i8, ptr %mask, i64 %lead
  %to.tail = getelementptr i64, ptr %to.words, i64 %words
  %from.tail = getelementptr i64, ptr %from.words, i64 %words
  %mask.tail = getelementptr i8, ptr %mask.words, i64 %words
  %ahead = icmp ult ptr %from, %to
  br i1 %ahead, label %tail.first, label %lead.first

tail.first:
  call void @cotangent.copy.bytes(ptr %to.tail, ptr %from.tail, i64 %tail, ptr %mask.tail, i1 true)
  br label %loop

lead.first:
  call void @cotangent.copy.bytes(ptr %to, ptr %from, i64 %lead, ptr %mask, i1 false)
  br label %loop

loop:
  %k = phi i64 [ 0, %tail.first ], [ 0, %lead.first ], [ %next, %body ]
  %more = icmp ult i64 %k, %words
  br i1 %more, label %body, label %last

body:
  %here = call i64 @cotangent.turn(i64 %k, i64 %words, i1 %ahead)
  %from.at = getelementptr i64, ptr %from.words, i64 %here
  %to.at = getelementptr i64, ptr %to.words, i64 %here
  %mask.at = getelementptr i8, ptr %mask.words, i64 %here
  %word = load i64, ptr %from.at, align 1
  store i64 %word, ptr %to.at, align 1
  %pointer = icmp ne i64 %word, 0
  %byte = zext i1 %pointer to i8
  store i8 %byte, ptr %mask.at, align 1
  %next = add i64 %k, 1
  br label %loop

last:
  br i1 %ahead, label %lead.last, label %tail.last

lead.last:
  call void @cotangent.copy.bytes(ptr %to, ptr %from, i64 %lead, ptr %mask, i1 true)
  ret ptr %mask

tail.last:
  call void @cotangent.copy.bytes(ptr %to.tail, ptr %from.tail, i64 %tail, ptr %mask.tail, i1 false)
  ret ptr %mask
}

; The same where an end is the caller's, before the copy is made. There the shadow of a float may be a seed, and an address
; tells a pointer: see `reverse/given.rs`. A mask of 2 says that the shadow of the pointer stays in the copy's place. Bytes
; that are no word hold no pointer.
define ptr @cotangent.copy.given(ptr %arena, ptr %to, ptr %from, i64 %bytes, ptr %primal.to, ptr %primal.from, i64 %to.given, i64 %from.given, i64 %told) #0 {
entry:
  %phase = call i64 @cotangent.phase(ptr %to, ptr %from, i64 %told)
  %lead = call i64 @cotangent.lead(i64 %phase, i64 %bytes)
  %rest = sub i64 %bytes, %lead
  %words = lshr i64 %rest, 3
  %tail = and i64 %rest, 7
  %ends = add i64 %lead, %tail
  %entries = add i64 %ends, %words
  %mask = call ptr @cotangent.alloc(ptr %arena, i64 %entries)
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 %entries, i1 false)
  %to.words = getelementptr i8, ptr %to, i64 %lead
  %from.words = getelementptr i8, ptr %from, i64 %lead
  %new.words = getelementptr i8, ptr %primal.from, i64 %lead
  %old.words = getelementptr i8, ptr %primal.to, i64 %lead
  %mask.words = getelementptr i8, ptr %mask, i64 %lead
  %ahead = icmp ult ptr %from, %to
  %seeds.to = icmp ne i64 %to.given, 0
  %seeds.from = icmp ne i64 %from.given, 0
  %says = select i1 %seeds.to, i8 2, i8 1
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %body ]
  %more = icmp ult i64 %k, %words
  br i1 %more, label %body, label %exit

body:
  %here = call i64 @cotangent.turn(i64 %k, i64 %words, i1 %ahead)
  %from.at = getelementptr i64, ptr %from.words, i64 %here
  %to.at = getelementptr i64, ptr %to.words, i64 %here
  %mask.at = getelementptr i8, ptr %mask.words, i64 %here
  %new.at = getelementptr i64, ptr %new.words, i64 %here
  %old.at = getelementptr i64, ptr %old.words, i64 %here
  %word = load i64, ptr %from.at, align 1
  %seed = load i64, ptr %to.at, align 1
  %new = load i64, ptr %new.at, align 1
  %old = load i64, ptr %old.at, align 1
  %found = call i64 @cotangent.given.pointer(i64 %new, i64 %word)
  %shadow = select i1 %seeds.from, i64 %found, i64 %word
  %pointer = icmp ne i64 %shadow, 0
  %kept = call i64 @cotangent.given.left(i64 %old, i64 %seed, i64 %shadow)
  %left = select i1 %seeds.to, i64 %kept, i64 %shadow
  store i64 %left, ptr %to.at, align 1
  %byte = select i1 %pointer, i8 %says, i8 0
  store i8 %byte, ptr %mask.at, align 1
  %next = add i64 %k, 1
  br label %loop

exit:
  ret ptr %mask
}

; Their reverse: what was a pointer is left out. Two floats that may be of either width are only added if one is 0.
define void @cotangent.move.words(ptr %to, ptr %from, i64 %bytes, ptr %mask, i64 %sort, i64 %told) #0 {
entry:
  ; `to` is the original here.
  %phase = call i64 @cotangent.phase(ptr %from, ptr %to, i64 %told)
  %lead = call i64 @cotangent.lead(i64 %phase, i64 %bytes)
  %rest = sub i64 %bytes, %lead
  %words = lshr i64 %rest, 3
  %tail = and i64 %rest, 7
  %to.words = getelementptr i8, ptr %to, i64 %lead
  %from.words = getelementptr i8, ptr %from, i64 %lead
  %mask.words = getelementptr i8, ptr %mask, i64 %lead
  %to.tail = getelementptr i64, ptr %to.words, i64 %words
  %from.tail = getelementptr i64, ptr %from.words, i64 %words
  %mask.tail = getelementptr i8, ptr %mask.words, i64 %words
  ; Half a word is a float, if there are any; where words begin has to be known if there may be doubles, too.
  %blind = icmp eq i64 %phase, 8
  %no.doubles = icmp eq i64 %sort, 2
  %no.floats = icmp eq i64 %sort, 1
  %known = select i1 %blind, i1 %no.doubles, i1 true
  %floats = select i1 %no.floats, i1 false, i1 %known
  %descend = icmp ult ptr %from, %to
  br i1 %descend, label %tail.first, label %lead.first

tail.first:
  call void @cotangent.move.ends(ptr %to.tail, ptr %from.tail, i64 %tail, ptr %mask.tail, i1 %floats, i1 true)
  br label %loop

lead.first:
  call void @cotangent.move.ends(ptr %to, ptr %from, i64 %lead, ptr %mask, i1 %floats, i1 false)
  br label %loop

loop:
  %k = phi i64 [ 0, %tail.first ], [ 0, %lead.first ], [ %next, %step ]
  %more = icmp ult i64 %k, %words
  br i1 %more, label %body, label %last

body:
  %here = call i64 @cotangent.turn(i64 %k, i64 %words, i1 %descend)
  %mask.at = getelementptr i8, ptr %mask.words, i64 %here
  %byte = load i8, ptr %mask.at, align 1
  %at = shl i64 %here, 3
  switch i8 %byte, label %step [
    i8 0, label %what
    i8 1, label %clear
  ]

clear:
  %clear.at = getelementptr i8, ptr %from.words, i64 %at
  store i64 0, ptr %clear.at, align 1
  br label %step

what:
  switch i64 %sort, label %either [
    i64 1, label %double
    i64 2, label %float
  ]

double:
  call void @cotangent.move.one.f64(ptr %to.words, ptr %from.words, i64 %at)
  br label %step

float:
  call void @cotangent.move.one.f32(ptr %to.words, ptr %from.words, i64 %at)
  %half = add i64 %at, 4
  call void @cotangent.move.one.f32(ptr %to.words, ptr %from.words, i64 %half)
  br label %step

either:
  %from.at = getelementptr i8, ptr %from.words, i64 %at
  %to.at = getelementptr i8, ptr %to.words, i64 %at
  %x = load i64, ptr %from.at, align 1
  %y = load i64, ptr %to.at, align 1
  %x.zero = icmp eq i64 %x, 0
  %y.zero = icmp eq i64 %y, 0
  %decided = or i1 %x.zero, %y.zero
  br i1 %decided, label %add, label %stop

stop:
  call void @cotangent.undecided()
  unreachable

add:
  %sum = or i64 %x, %y
  store i64 0, ptr %from.at, align 1
  store i64 %sum, ptr %to.at, align 1
  br label %step

step:
  %next = add i64 %k, 1
  br label %loop

last:
  br i1 %descend, label %lead.last, label %tail.last

lead.last:
  call void @cotangent.move.ends(ptr %to, ptr %from, i64 %lead, ptr %mask, i1 %floats, i1 true)
  ret void

tail.last:
  call void @cotangent.move.ends(ptr %to.tail, ptr %from.tail, i64 %tail, ptr %mask.tail, i1 %floats, i1 false)
  ret void
}

; Bytes that are no words, on their way back. Four that begin where a float would are one, if `floats` says so; of every two
; others one must be zero.
define void @cotangent.move.ends(ptr %to, ptr %from, i64 %bytes, ptr %mask, i1 %floats, i1 %descend) #0 {
entry:
  %to.bits = ptrtoint ptr %to to i64
  %from.bits = ptrtoint ptr %from to i64
  br label %loop

loop:
  %k = phi i64 [ 0, %entry ], [ %next, %step ]
  %more = icmp ult i64 %k, %bytes
  br i1 %more, label %body, label %exit

body:
  %here = call i64 @cotangent.turn(i64 %k, i64 %bytes, i1 %descend)
  br i1 %floats, label %where, label %one

where:
  ; The float that begins here, or that ends here on the way down.
  %up = sub i64 %here, 3
  %at = select i1 %descend, i64 %up, i64 %here
  %to.here = add i64 %to.bits, %at
  %from.here = add i64 %from.bits, %at
  %either.end = or i64 %to.here, %from.here
  %beside = and i64 %either.end, 3
  %aligned = icmp eq i64 %beside, 0
  %end = add i64 %k, 4
  %fits = icmp ule i64 %end, %bytes
  %whole = and i1 %aligned, %fits
  br i1 %whole, label %masks, label %one

masks:
  %masks.at = getelementptr i8, ptr %mask, i64 %at
  %four = load i32, ptr %masks.at, align 1
  %free = icmp eq i32 %four, 0
  br i1 %free, label %float, label %one

float:
  call void @cotangent.move.one.f32(ptr %to, ptr %from, i64 %at)
  br label %step

one:
  %mask.at = getelementptr i8, ptr %mask, i64 %here
  %byte = load i8, ptr %mask.at, align 1
  %from.at = getelementptr i8, ptr %from, i64 %here
  %to.at = getelementptr i8, ptr %to, i64 %here
  switch i8 %byte, label %step [
    i8 0, label %move
    i8 1, label %clear
  ]

clear:
  store i8 0, ptr %from.at, align 1
  br label %step

move:
  %x = load i8, ptr %from.at, align 1
  %y = load i8, ptr %to.at, align 1
  %x.zero = icmp eq i8 %x, 0
  %y.zero = icmp eq i8 %y, 0
  %decided = or i1 %x.zero, %y.zero
  br i1 %decided, label %add, label %stop

stop:
  call void @cotangent.undecided()
  unreachable

add:
  %sum = or i8 %x, %y
  store i8 0, ptr %from.at, align 1
  store i8 %sum, ptr %to.at, align 1
  br label %step

step:
  %by = phi i64 [ 4, %float ], [ 1, %one ], [ 1, %clear ], [ 1, %add ]
  %next = add i64 %k, %by
  br label %loop

exit:
  ret void
}

declare i64 @cotangent.turn(i64, i64, i1)
declare ptr @cotangent.alloc(ptr, i64)
declare void @cotangent.undecided()
declare void @cotangent.move.one.f64(ptr, ptr, i64)
declare void @cotangent.move.one.f32(ptr, ptr, i64)
declare i64 @cotangent.given.pointer(i64, i64)
declare i64 @cotangent.given.left(i64, i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

attributes #0 = { nounwind }
attributes #2 = { nounwind alwaysinline }
