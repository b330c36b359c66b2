//! Machine code that outlives the run: trained with a JIT, deployed without one.
//!
//!     cargo cotangent run --example saved -- save compiled.so
//!     cargo cotangent run --no-default-features --example saved -- load compiled.so
//!
//! The first run compiles as always, and writes what it compiled. The second program has no JIT and needs no LLVM.

use anyhow::{Result, bail};
use cotangent::{compiled_hits, differentiable, load_compiled, materializations};
use tch::{Device, Kind, Tensor};

#[differentiable(wrt(w))]
fn loss(x: &Tensor, w: &Tensor) -> Tensor {
    (x.matmul(w).tanh() - 0.5).square().mean(Kind::Float)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, file] = &arguments[..] else {
        bail!("usage: saved save|load FILE");
    };
    if how == "load" {
        println!("{} pieces of code were loaded", load_compiled(file)?);
    }
    let x = Tensor::arange(24, (Kind::Float, Device::Cpu)).reshape([8, 3]) / 24.0;
    let mut w = Tensor::zeros([3, 2], (Kind::Float, Device::Cpu));
    for _ in 0..100 {
        let (_, cotangents) = loss::value_and_grad(&x, &w);
        w -= cotangents.w * 0.5;
    }
    println!("loss {:.6}", loss(&x, &w).double_value(&[]));
    println!("{} pieces were compiled, {} found", materializations(), compiled_hits());
    if how == "save" {
        save(file)?;
    }
    Ok(())
}

#[cfg(feature = "jit")]
fn save(file: &str) -> Result<()> {
    println!("{} pieces of code were written", cotangent::save_compiled(file)?);
    Ok(())
}

#[cfg(not(feature = "jit"))]
fn save(_: &str) -> Result<()> {
    bail!("this program has no JIT: it compiles nothing that could be saved")
}
