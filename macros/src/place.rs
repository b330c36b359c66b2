//! Where an item stands. A macro sees only the item, and the compiler's own message about a module inside a function or
//! an `impl` block would not say what to do: so the source is looked at, as far as braces go.

use proc_macro2::Span;

/// What is around an item that cannot stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// The body of a function.
    Function,
    /// An `impl` block.
    Impl,
    /// A trait.
    Trait,
}

/// What is around a place in the source, where the source can be read and something is.
pub(crate) fn around(span: Span) -> Option<Around> {
    if !proc_macro::is_available() {
        return None;
    }
    let source = std::fs::read_to_string(span.unwrap().local_file()?).ok()?;
    let start = span.start();
    around_in(&source, start.line, start.column)
}

/// The same for a source text; lines count from one, columns from zero.
fn around_in(source: &str, line: usize, column: usize) -> Option<Around> {
    let offset = source
        .split_inclusive('\n')
        .take(line.checked_sub(1)?)
        .map(|l| l.chars().count())
        .sum::<usize>()
        + column;
    let text: Vec<char> = source.chars().collect();
    let mut braces: Vec<Option<Around>> = Vec::new();
    // What the next brace opens the body of.
    let mut next: Option<Around> = None;
    let mut at = 0;
    while at < offset.min(text.len()) {
        let after = skip(&text, at);
        if after > at {
            at = after;
            continue;
        }
        match text[at] {
            '{' => braces.push(next.take()),
            '}' => {
                braces.pop();
                next = None;
            }
            ';' => next = None,
            c if c.is_alphabetic() || c == '_' => {
                let end = at
                    + text[at..]
                        .iter()
                        .take_while(|c| c.is_alphanumeric() || **c == '_')
                        .count();
                let word: String = text[at..end].iter().collect();
                let opens = match word.as_str() {
                    // `fn(` is a type.
                    "fn" if text[end..].iter().find(|c| !c.is_whitespace()) != Some(&'(') => Some(Around::Function),
                    "impl" => Some(Around::Impl),
                    "trait" => Some(Around::Trait),
                    _ => None,
                };
                next = next.or(opens);
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    if braces.contains(&Some(Around::Function)) {
        Some(Around::Function)
    } else {
        braces.last().copied().flatten()
    }
}

/// The end of the comment, string or character that starts at `at`, if one does.
fn skip(text: &[char], at: usize) -> usize {
    let is = |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| text.get(at + i) == Some(&c));
    let find = |mut from: usize, what: &str| {
        while from < text.len() && !is(from, what) {
            from += 1;
        }
        (from + what.chars().count()).min(text.len())
    };
    if is(at, "//") {
        return find(at, "\n");
    }
    if is(at, "/*") {
        let (mut depth, mut at) = (1, at + 2);
        while depth > 0 && at < text.len() {
            let (open, close) = (is(at, "/*"), is(at, "*/"));
            depth = depth + usize::from(open) - usize::from(close);
            at += if open || close { 2 } else { 1 };
        }
        return at;
    }
    let in_word = at > 0 && (text[at - 1].is_alphanumeric() || text[at - 1] == '_');
    if text[at] == 'r' && !in_word {
        let hashes = text[at + 1..].iter().take_while(|c| **c == '#').count();
        if text.get(at + 1 + hashes) == Some(&'"') {
            return find(at + 2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    if text[at] == '"' {
        return quoted(text, at, '"');
    }
    // A character, not a lifetime.
    if text[at] == '\'' && (is(at + 1, "\\") || text.get(at + 2) == Some(&'\'')) {
        return quoted(text, at, '\'');
    }
    at
}

fn quoted(text: &[char], start: usize, quote: char) -> usize {
    let mut at = start + 1;
    while at < text.len() && text[at] != quote {
        at += if text[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is around the word `here`.
    fn found(source: &str) -> Option<Around> {
        let at = source.find("here").expect("the word is there");
        let line = source[..at].matches('\n').count() + 1;
        let column = source[..at].rsplit('\n').next().unwrap_or("").chars().count();
        around_in(source, line, column)
    }

    #[test]
    fn an_item_of_a_module_may_stand_there() {
        assert_eq!(found("fn here() {}"), None);
        assert_eq!(found("fn f() { g() }\nmod m {\n    fn here() {}\n}"), None);
        assert_eq!(found("const F: fn(i32) = g; mod m { here }"), None);
        assert_eq!(found("fn f(x: impl Fn()) { } here"), None);
    }

    #[test]
    fn bodies_are_seen() {
        assert_eq!(found("fn f() { if x { here } }"), Some(Around::Function));
        assert_eq!(found("fn f() -> fn() { here }"), Some(Around::Function));
        assert_eq!(found("impl A { fn f() {} here }"), Some(Around::Impl));
        assert_eq!(found("impl A { fn f() { here } }"), Some(Around::Function));
        assert_eq!(found("trait A { here }"), Some(Around::Trait));
        assert_eq!(found("fn f() { mod m { here } }"), Some(Around::Function));
    }

    #[test]
    fn braces_in_text_and_comments_do_not_count() {
        assert_eq!(
            found("fn f() { \"}\" ; '}'; /* } /* } */ */ // }\n here }"),
            Some(Around::Function)
        );
        assert_eq!(
            found("fn f<'a>(x: &'a str) { r#\"\"{\"#; '\\''; '{'; \"\\\"{\" } here"),
            None
        );
    }
}
