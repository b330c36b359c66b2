//! Filetests of the analyses: each `tests/analysis/<analysis>/*.ll` is a test of one.
//!
//! The first line is `; test <analysis> <roots>`, then comes the module, then a line `; ----`, then the text form that
//! the analysis must give. `BLESS=1 cargo test --test analysis` rewrites the expected texts; review them as code.

use cotangent_pass::kernel::Activity as Asked;
use cotangent_pass::kernel::analysis::activity::{Activity, Ask};
use cotangent_pass::kernel::analysis::content::Content;
use cotangent_pass::kernel::analysis::loops;
use cotangent_pass::kernel::analysis::unwritten::Unwritten;
use cotangent_pass::kernel::analysis::words::Words;
use cotangent_pass::llvm::{Analyses, Function, Linkage, Mod, OwnedModule};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::{env, fs};

const SEPARATOR: &str = "; ----\n";

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/analysis");
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
        } else if path.extension().is_some_and(|e| e == "ll") {
            files.push(path);
        }
    }
}

fn check(path: &Path) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let (input, want) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
    let first = input.lines().next().unwrap_or("");
    let command = first
        .strip_prefix("; test ")
        .ok_or("the first line is not `; test <analysis>`")?;
    let words: Vec<&str> = command.split_whitespace().collect();
    let (analysis, roots) = words.split_first().ok_or("no analysis is named")?;
    let module = OwnedModule::read(input.as_bytes())?;
    module.get().verify()?;
    let got = run(module.get(), analysis, roots)?;
    let got = format!("{}\n", got.trim_end());
    if env::var_os("BLESS").is_some() {
        let input = input.trim_end();
        fs::write(path, format!("{input}\n{SEPARATOR}{got}"))?;
        return Ok(());
    }
    match got == want {
        true => Ok(()),
        false => Err(format!("the analysis gives\n{got}\ninstead of\n{want}").into()),
    }
}

fn asked(name: &str) -> Result<Asked, Failed> {
    Ok(match name {
        "const" => Asked::Const,
        "dup" => Asked::Dup,
        "out" => Asked::Out,
        other => return Err(format!("unknown activity {other}").into()),
    })
}

fn run(m: Mod<'_>, analysis: &str, roots: &[&str]) -> Result<String, Failed> {
    let external = |f: &Function<'_>| f.linkage() == Linkage::LLVMExternalLinkage;
    let bodies: Vec<_> = m.functions().filter(|f| !f.is_declaration()).collect();
    // `f` alone, or `f(dup,const,out)->active`.
    let mut asks = vec![];
    for root in roots {
        let (name, rest) = root.split_once('(').unwrap_or((root, ")"));
        let (arguments, result) = rest.split_once(')').ok_or("a root without `)`")?;
        let function = bodies
            .iter()
            .find(|f| f.name() == name)
            .ok_or("a root that is not there")?;
        let arguments = arguments.split(',').filter(|a| !a.is_empty());
        asks.push(Ask {
            function: *function,
            arguments: arguments.map(asked).collect::<Result<_, _>>()?,
            result: result == "->active",
        });
    }
    let roots: Vec<_> = match asks.is_empty() {
        true => bodies.iter().copied().filter(external).collect(),
        false => asks.iter().map(|a| a.function).collect(),
    };
    let llvm = Analyses::new(m);
    let content = Content::new(m, &llvm, &roots, &|_| false);
    Ok(match analysis {
        "content" => {
            // They tell which pieces of pointers to follow.
            Words::new(&content);
            bodies.iter().map(|f| content.print(*f)).collect()
        }
        "activity" => {
            let words = Words::new(&content);
            let activity = Activity::new(m, &content, &words, &asks);
            bodies.iter().map(|f| activity.print(*f)).collect()
        }
        "loops" => bodies.iter().map(|f| loops::print(*f, &llvm)).collect(),
        "words" => {
            let w = Words::new(&content);
            bodies.iter().map(|f| w.print(*f)).collect()
        }
        "unwritten" => {
            let unwritten = Unwritten::new(m, &content, &roots);
            bodies.iter().map(|f| unwritten.print(&content, *f)).collect()
        }
        other => return Err(format!("unknown analysis {other}").into()),
    })
}
