//! What can be told about a type from its spelling.

use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{GenericArgument, Ident, Lifetime, Path, PathArguments, Type, parse_quote};

/// Types that have no derivative by their nature.
const CONSTANTS: [&str; 16] = [
    "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize", "bool", "char", "str",
    "String",
];
/// Types that have one.
const LEAVES: [&str; 3] = ["f32", "f64", "Tensor"];
/// Types that have one if their argument has.
const CONTAINERS: [&str; 3] = ["Vec", "Option", "Box"];

/// Whether a type is made of known constants only: integers, `bool`, text, and references, slices, arrays, vectors and
/// tuples of them.
pub(crate) fn is_constant(ty: &Type) -> bool {
    made_of(ty, &CONSTANTS)
}

/// Whether a type is made of known types only, constants or not.
pub(crate) fn is_known(ty: &Type) -> bool {
    let all: Vec<&str> = CONSTANTS.into_iter().chain(LEAVES).collect();
    made_of(ty, &all)
}

fn made_of(ty: &Type, names: &[&str]) -> bool {
    match ty {
        Type::Reference(reference) => made_of(&reference.elem, names),
        Type::Slice(slice) => made_of(&slice.elem, names),
        Type::Array(array) => made_of(&array.elem, names),
        Type::Paren(paren) => made_of(&paren.elem, names),
        Type::Group(group) => made_of(&group.elem, names),
        Type::Tuple(tuple) => tuple.elems.iter().all(|ty| made_of(ty, names)),
        Type::Path(path) => path.path.segments.last().is_some_and(|last| match &last.arguments {
            PathArguments::None => names.iter().any(|name| last.ident == name),
            PathArguments::AngleBracketed(arguments) => {
                CONTAINERS.iter().any(|name| last.ident == name)
                    && arguments
                        .args
                        .iter()
                        .all(|argument| matches!(argument, GenericArgument::Type(ty) if made_of(ty, names)))
            }
            PathArguments::Parenthesized(_) => false,
        }),
        _ => false,
    }
}

/// The type without its outermost references.
pub(crate) fn behind_references(ty: &Type) -> &Type {
    match ty {
        Type::Reference(reference) => behind_references(&reference.elem),
        Type::Paren(paren) => behind_references(&paren.elem),
        Type::Group(group) => behind_references(&group.elem),
        other => other,
    }
}

/// Whether writes through a value of that type reach the caller.
pub(crate) fn is_mutable(ty: &Type) -> bool {
    match ty {
        Type::Reference(reference) => reference.mutability.is_some(),
        Type::Paren(paren) => is_mutable(&paren.elem),
        Type::Group(group) => is_mutable(&group.elem),
        _ => false,
    }
}

/// Whether a function that is given such a value may write floats to memory that it reaches.
pub(crate) fn may_be_written(ty: &Type) -> bool {
    !is_constant(ty) && (!matches!(ty, Type::Reference(_)) || is_mutable(ty))
}

/// Whether nothing is returned.
pub(crate) fn is_unit(ty: &Type) -> bool {
    matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// The type with every lifetime `'static`: cotangents own their parts, so none of them matters.
pub(crate) fn without_lifetimes(ty: &Type) -> Type {
    struct Statics;
    impl VisitMut for Statics {
        fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
            lifetime.ident = Ident::new("static", lifetime.ident.span());
        }
        fn visit_type_reference_mut(&mut self, reference: &mut syn::TypeReference) {
            reference.lifetime = Some(Lifetime::new("'static", reference.and_token.span));
            visit_mut::visit_type_mut(self, &mut reference.elem);
        }
        fn visit_type_fn_ptr_mut(&mut self, _: &mut syn::TypeFnPtr) {}
    }
    let mut ty = ty.clone();
    Statics.visit_type_mut(&mut ty);
    ty
}

/// The first of `names` that a type mentions.
pub(crate) fn mentions<'a>(ty: &Type, names: &'a [Ident]) -> Option<&'a Ident> {
    struct Search<'a> {
        names: &'a [Ident],
        found: Option<&'a Ident>,
    }
    impl<'ast> Visit<'ast> for Search<'_> {
        fn visit_path(&mut self, path: &'ast Path) {
            if path.leading_colon.is_none()
                && let Some(first) = path.segments.first()
                && let Some(name) = self.names.iter().find(|name| **name == first.ident)
            {
                self.found = self.found.or(Some(name));
            }
            visit::visit_path(self, path);
        }
    }
    let mut search = Search { names, found: None };
    search.visit_type(ty);
    search.found
}

/// Whether a type has `impl Trait` in it.
pub(crate) fn has_impl_trait(ty: &Type) -> bool {
    struct Search(bool);
    impl<'ast> Visit<'ast> for Search {
        fn visit_type_impl_trait(&mut self, _: &'ast syn::TypeImplTrait) {
            self.0 = true;
        }
    }
    let mut search = Search(false);
    search.visit_type(ty);
    search.0
}

/// Rewrites paths for use two modules further in: `self::` and `super::` mean the modules they meant outside, and
/// `Self` is spelled out.
pub(crate) struct Inwards<'a> {
    /// What `Self` stands for.
    pub(crate) this: Option<&'a Type>,
}

impl VisitMut for Inwards<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let (Type::Path(path), Some(this)) = (&*ty, self.this)
            && path.qself.is_none()
            && path.path.is_ident("Self")
        {
            *ty = this.clone();
            return;
        }
        visit_mut::visit_type_mut(self, ty);
    }

    fn visit_path_mut(&mut self, path: &mut Path) {
        visit_mut::visit_path_mut(self, path);
        if path.leading_colon.is_some() || path.segments.len() < 2 {
            return;
        }
        let first = path.segments[0].ident.clone();
        if first == "self" {
            let rest = path.segments.iter().skip(1);
            *path = parse_quote!(super::super::#(#rest)::*);
        } else if first == "super" {
            let rest = path.segments.iter();
            *path = parse_quote!(super::super::#(#rest)::*);
        } else if first == "Self"
            && let Some(this) = self.this
            && let Type::Path(this) = this
            && this.qself.is_none()
        {
            let this = &this.path;
            let rest = path.segments.iter().skip(1);
            *path = parse_quote!(#this::#(#rest)::*);
        }
    }
}
