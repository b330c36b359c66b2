; Words of the caller's memory that are pointers at one time and floats at another: the word tells, not the shadow, which
; may be a seed. See `reverse/given.rs`.

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; The shadow of a word if that is an address, else zero. Where there is none, the word is not looked at: it may be memory
; that nothing was written to yet. So these are branches, and stay such.
define i64 @cotangent.given.pointer(i64 %word, i64 %shadow) #0 {
entry:
  %none = icmp eq i64 %shadow, 0
  br i1 %none, label %other, label %look

look:
  %fixed = freeze i64 %word
  %above = sub i64 %fixed, 4096
  %address = icmp ult i64 %above, 281474976706560
  br i1 %address, label %pointer, label %other

pointer:
  ret i64 %shadow

other:
  ret i64 0
}

; What is left of a seed where a word with a shadow is written over another: the shadow if there is one, nothing where an
; address was.
define i64 @cotangent.given.left(i64 %before, i64 %seed, i64 %shadow) #0 {
entry:
  %none = icmp eq i64 %shadow, 0
  br i1 %none, label %other, label %pointer

pointer:
  ret i64 %shadow

other:
  %stale = call i64 @cotangent.given.pointer(i64 %before, i64 %seed)
  %clean = icmp eq i64 %stale, 0
  %left = select i1 %clean, i64 %seed, i64 0
  ret i64 %left
}

; Ends the shadow of a pointer of which some bytes are to be written over. The word that they are part of is looked at
; where it lies as a pointer does, and its shadow likewise.
define void @cotangent.given.ended(ptr %at, ptr %place, i64 %bytes) #0 {
entry:
  %address = ptrtoint ptr %at to i64
  %shadow.address = ptrtoint ptr %place to i64
  %beside = and i64 %address, 7
  %shadow.beside = and i64 %shadow.address, 7
  %alike = icmp eq i64 %beside, %shadow.beside
  br i1 %alike, label %look, label %done

look:
  %back = sub i64 0, %beside
  %word.at = getelementptr i8, ptr %at, i64 %back
  %shadow.at = getelementptr i8, ptr %place, i64 %back
  %shadow = load i64, ptr %shadow.at, align 8
  %none = icmp eq i64 %shadow, 0
  br i1 %none, label %done, label %known

known:
  %word = load i64, ptr %word.at, align 8
  %stale = call i64 @cotangent.given.pointer(i64 %word, i64 %shadow)
  %clean = icmp eq i64 %stale, 0
  br i1 %clean, label %done, label %end

end:
  call void @llvm.memset.p0.i64(ptr %place, i8 0, i64 %bytes, i1 false)
  ret void

done:
  ret void
}

; Is what a shadow holds around a place the shadow of a pointer? A float whose bits look like that is less than 1e-153, and
; a `float` in the lower half does not.
define i1 @cotangent.given.is.pointer(ptr %place) #0 {
entry:
  %address = ptrtoint ptr %place to i64
  %beside = and i64 %address, 7
  %back = sub i64 0, %beside
  %at = getelementptr i8, ptr %place, i64 %back
  %word = load i64, ptr %at, align 8
  %above = sub i64 %word, 4294967296
  %memory = icmp ult i64 %above, 281470681743360
  %tag = and i64 %word, -2305843009213693952
  %offset = and i64 %word, 2305843009213693951
  %none = icmp eq i64 %tag, -9223372036854775808
  %made = icmp eq i64 %tag, -6917529027641081856
  %either = or i1 %none, %made
  %near = icmp ult i64 %offset, 281474976710656
  %elsewhere = and i1 %either, %near
  %pointer = or i1 %memory, %elsewhere
  ret i1 %pointer
}

attributes #0 = { nounwind noinline optnone }
