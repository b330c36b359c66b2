//! x
#![allow(missing_docs, dead_code)]
#[path = "../tests/random/generate.rs"]
mod generate;
fn main() {
    let n: u32 = std::env::args().nth(1).unwrap().parse().unwrap();
    println!("{}{}", generate::HEADER, generate::sized(n));
}
