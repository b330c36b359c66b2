//! Prints the programs of a link: `raise OBJECT.o… LIBRARY.rlib…`.

use cotangent_pass::capture::Bitcode;
use cotangent_pass::raise::raise_requests;

fn main() -> Result<(), String> {
    let bitcode = Bitcode::collect(std::env::args_os().skip(1)).map_err(|e| e.to_string())?;
    let raised = raise_requests(&bitcode)?;
    for p in &raised.artifact.programs {
        println!("{p}");
    }
    println!("code to grow from: {} bytes", raised.artifact.code.len());
    for r in raised.refusals {
        println!("{}", r.message);
        r.at.iter().for_each(|l| println!("    at {l}"));
    }
    Ok(())
}
