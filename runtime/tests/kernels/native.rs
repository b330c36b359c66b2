//! What the pass writes, by hand: derivatives that know memory only by the layouts both sides agreed on.

use cotangent_runtime::kernel::{Arena, Kernel};

#[repr(C)]
struct Object {
    start: *const u8,
    size: usize,
    shadow: *mut u8,
    align: usize,
}

/// The layout of `%arena`.
#[repr(C)]
struct Layout {
    next: *mut u8,
    end: *mut u8,
    newest: *mut *mut u8,
    objects: *const Object,
    objects_len: usize,
    owned: *mut u8,
}

/// Zeroed memory for so many words, in a chunk of its own.
unsafe fn take(arena: *mut Arena, words: usize) -> *mut f64 {
    // SAFETY: the layout is agreed on; a chunk begins with the address of the one before.
    unsafe {
        let arena = arena.cast::<Layout>();
        let chunk = libc::calloc(words + 1, 8).cast::<*mut u8>();
        chunk.write((*arena).newest.cast());
        (*arena).newest = chunk;
        ((*arena).next, (*arena).end) = (chunk.add(words + 1).cast(), chunk.add(words + 1).cast());
        chunk.add(1).cast()
    }
}

/// The shadow of memory that the caller listed.
unsafe fn shadow<T>(arena: *mut Arena, at: *const T) -> *mut T {
    // SAFETY: the layout is agreed on.
    unsafe {
        let arena = &*arena.cast::<Layout>();
        let objects = std::slice::from_raw_parts(arena.objects, arena.objects_len);
        assert!(objects.is_sorted_by_key(|object| object.start));
        let address = at as usize;
        let inside = |o: &&Object| (o.start as usize..o.start as usize + o.size).contains(&address);
        let object = objects.iter().find(inside).expect("listed");
        object.shadow.add(address - object.start as usize).cast()
    }
}

/// An argument's value, and its shadow.
unsafe fn argument<T>(args: *const *const (), i: usize, arena: *mut Arena) -> (*mut T, *mut T) {
    // SAFETY: the shadow of the list holds the addresses of the shadows.
    unsafe {
        (
            *args.add(i) as *mut T,
            shadow(arena, args.add(i)).cast::<*mut T>().read(),
        )
    }
}

/// The shadow of what the pointer at `link` leads to.
unsafe fn follow(link: *mut u8) -> *mut f64 {
    // SAFETY: a word of a shadow.
    unsafe { link.cast::<*mut f64>().read() }
}

/// Where a vector has the address of its buffer.
fn buffer_offset(v: &Vec<f64>) -> usize {
    // SAFETY: a vector has three words, all initialized.
    let words = unsafe { (&raw const *v).cast::<[usize; 3]>().read() };
    8 * words.iter().position(|w| *w == v.as_ptr() as usize).expect("a pointer")
}

/// `x · y`
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// Number of elements, shadows of both, shadow of the result, elements of both.
struct DotFrame {
    n: usize,
    shadows: [*mut f64; 2],
    out: *mut f64,
    values: *mut f64,
}

unsafe extern "C-unwind" fn dot_aug(args: *const *const (), out: *mut (), arena: *mut Arena) -> *mut () {
    // SAFETY: the arguments of `dot`.
    unsafe {
        let ((x, sx), (y, sy)) = (argument::<&[f64]>(args, 0, arena), argument::<&[f64]>(args, 1, arena));
        let (x, y) = (*x, *y);
        let out = out.cast::<f64>();
        let values = take(arena, 2 * x.len());
        for i in 0..x.len() {
            (*values.add(i), *values.add(x.len() + i)) = (x[i], y[i]);
        }
        let frame = take(arena, 5).cast::<DotFrame>();
        frame.write(DotFrame {
            n: x.len(),
            shadows: [follow(sx.cast()), follow(sy.cast())],
            out: shadow(arena, out),
            values,
        });
        *out = dot(x, y);
        frame.cast()
    }
}

unsafe extern "C-unwind" fn dot_rev(frame: *mut (), _: *mut Arena) {
    // SAFETY: the frame of `dot_aug`.
    unsafe {
        let DotFrame {
            n,
            shadows: [sx, sy],
            out,
            values,
        } = frame.cast::<DotFrame>().read();
        let seed = std::mem::replace(&mut *out, 0.0);
        for i in 0..n {
            *sx.add(i) += seed * *values.add(n + i);
            *sy.add(i) += seed * *values.add(i);
        }
    }
}

unsafe extern "C-unwind" fn dot_grad(args: *const *const (), out: *mut (), arena: *mut Arena) {
    // SAFETY: as the caller promises.
    unsafe { dot_rev(dot_aug(args, out, arena), arena) }
}

// SAFETY: the derivatives of `dot`.
pub(crate) static DOT: Kernel = unsafe { Kernel::new("dot", Some(dot_aug), Some(dot_rev), Some(dot_grad), None) };

/// Grows `v` by `k * v[0]`, sets `v[0]` to 7, and gives `[k * k]`.
pub(crate) fn grow(v: &mut Vec<f64>, k: f64) -> Vec<f64> {
    let first = std::mem::replace(&mut v[0], 7.0);
    v.push(k * first);
    vec![k * k]
}

struct GrowFrame {
    /// Shadows: old buffer, new buffer, result's buffer, `k`.
    old: *mut f64,
    new: *mut f64,
    result: *mut f64,
    k_shadow: *mut f64,
    n: usize,
    k: f64,
    first: f64,
}

unsafe extern "C-unwind" fn grow_aug(args: *const *const (), out: *mut (), arena: *mut Arena) -> *mut () {
    // SAFETY: the arguments of `grow`.
    unsafe {
        let (v, v_shadow) = argument::<&mut Vec<f64>>(args, 0, arena);
        let (k, k_shadow) = argument::<f64>(args, 1, arena);
        let v: &mut Vec<f64> = *v;
        let (n, k, first) = (v.len(), *k, v[0]);
        let link = follow(v_shadow.cast()).cast::<u8>().add(buffer_offset(v));
        let old = follow(link);
        let result = grow(v, k);
        let new = take(arena, v.capacity());
        link.cast::<*mut f64>().write(new);
        let made = take(arena, result.capacity());
        shadow(arena, out.cast::<u8>())
            .add(buffer_offset(&result))
            .cast::<*mut f64>()
            .write(made);
        out.cast::<Vec<f64>>().write(result);
        let frame = take(arena, 7).cast::<GrowFrame>();
        frame.write(GrowFrame {
            old,
            new,
            result: made,
            k_shadow,
            n,
            k,
            first,
        });
        frame.cast()
    }
}

unsafe extern "C-unwind" fn grow_rev(frame: *mut (), arena: *mut Arena) {
    // SAFETY: the frame of `grow_aug`.
    unsafe {
        // What a reverse takes is given back.
        take(arena, 3);
        let f = frame.cast::<GrowFrame>().read();
        *f.k_shadow += 2.0 * f.k * std::mem::replace(&mut *f.result, 0.0);
        let pushed = std::mem::replace(&mut *f.new.add(f.n), 0.0);
        *f.new = 0.0;
        for i in 0..f.n {
            *f.old.add(i) += std::mem::replace(&mut *f.new.add(i), 0.0);
        }
        *f.k_shadow += pushed * f.first;
        *f.old += pushed * f.k;
    }
}

// SAFETY: the derivatives of `grow`.
pub(crate) static GROW: Kernel = unsafe { Kernel::new("grow", Some(grow_aug), Some(grow_rev), None, None) };

/// Multiplies `x` by `k`, and gives what was at its start, if there is anything.
pub(crate) fn scale(x: &mut [f32], k: f32) -> Option<f32> {
    let first = x.first().copied();
    x.iter_mut().for_each(|x| *x *= k);
    first
}

unsafe extern "C-unwind" fn scale_jvp(args: *const *const (), out: *mut (), arena: *mut Arena) {
    // SAFETY: the arguments of `scale`.
    unsafe {
        let ((x, x_shadow), (k, k_dot)) = (argument::<&mut [f32]>(args, 0, arena), argument::<f32>(args, 1, arena));
        let (x, k, k_dot): (&mut [f32], f32, f32) = (*x, *k, *k_dot);
        // What has no bytes has no shadow.
        let x_dot = match x.len() {
            0 => &mut [],
            n => std::slice::from_raw_parts_mut(follow(x_shadow.cast()).cast::<f32>(), n),
        };
        let out = out.cast::<Option<f32>>();
        let first_dot = x_dot.first().copied();
        for (x, x_dot) in x.iter().zip(x_dot) {
            *x_dot = *x_dot * k + x * k_dot;
        }
        out.write(scale(x, k));
        if let (Some(first), Some(first_dot)) = (&*out, first_dot) {
            *shadow(arena, first) = first_dot;
        }
    }
}

// SAFETY: the derivative of `scale`.
pub(crate) static SCALE: Kernel = unsafe { Kernel::new("scale", None, None, None, Some(scale_jvp)) };

unsafe extern "C-unwind" fn failing_aug(args: *const *const (), _: *mut (), arena: *mut Arena) -> *mut () {
    // SAFETY: the argument is a vector, which is moved out.
    unsafe {
        take(arena, 100);
        let values = (*args).cast::<Vec<f64>>().read();
        panic!("no result for {} values", values.len())
    }
}

unsafe extern "C-unwind" fn failing_rev(_: *mut (), _: *mut Arena) {}

// SAFETY: the derivatives of a function that panics.
pub(crate) static FAILING: Kernel = unsafe { Kernel::new("failing", Some(failing_aug), Some(failing_rev), None, None) };
