//! Filetests: each `tests/filetests/<folder>/*.gir` is a test of one stage.
//!
//! The first line is `; test <command> <options>`, then comes the input, then a line `; ----`, then the text that the
//! stage must give. `BLESS=1 cargo test --test filetests` rewrites the expected texts; review them as code.

mod commands;

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::{env, fs};

const SEPARATOR: &str = "; ----\n";

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let mut files = vec![];
    collect(&root, &mut files);
    files.sort();
    let trials = files.into_iter().map(|path| {
        let name = path
            .strip_prefix(&root)
            .expect("found below the root")
            .display()
            .to_string();
        Trial::test(name, move || check(&path))
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder of filetests") {
        let path = entry.expect("an entry of the folder").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "gir") {
            files.push(path);
        }
    }
}

fn check(path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let (input, want) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
    let (first, body) = input.split_once('\n').ok_or("an empty file")?;
    let command = first
        .strip_prefix("; test ")
        .ok_or("the first line is not `; test <command>`")?;
    let words: Vec<&str> = command.split_whitespace().collect();
    let got = commands::run(&words, body)?;
    let got = format!("{}\n", got.trim_end());
    if env::var_os("BLESS").is_some() {
        let input = input.trim_end();
        fs::write(path, format!("{input}\n{SEPARATOR}{got}"))?;
        return Ok(());
    }
    match got == want {
        true => Ok(()),
        false => Err(format!("the stage gives\n{got}\ninstead of\n{want}").into()),
    }
}
