//! A kernel in Rust as a layer of a `tch` model: a network guesses the constants of springs, a simulation swings them, and the
//! loss is on what they do. LibTorch differentiates the network, Cotangent the simulation.
//!
//! `cargo cotangent run --release --example torch_kernel`

use cotangent::differentiable;
use tch::nn::{self, Module, OptimizerConfig};
use tch::{Device, Kind, Tensor};

/// Where springs are at each of `times` times, let go at one. Each has a stiffness and a damping.
#[differentiable]
fn swing(constants: &[f64], times: usize) -> Vec<f64> {
    let mut places = Vec::with_capacity(constants.len() / 2 * times);
    for spring in constants.chunks_exact(2) {
        let (mut place, mut speed) = (1.0, 0.0);
        for _ in 0..times {
            for _ in 0..10 {
                speed -= 0.02 * (spring[0] * place + spring[1] * speed);
                place += 0.02 * speed;
            }
            places.push(place);
        }
    }
    places
}

/// The springs' true constants at a temperature.
fn truth(temperature: f64) -> [f64; 2] {
    [2.0 + temperature.sin(), 0.5 + 0.2 * temperature]
}

fn main() {
    tch::manual_seed(1);
    let times = 20;
    let temperatures: Vec<f64> = (0..32).map(|i| i as f64 / 16.0).collect();
    let constants: Vec<f64> = temperatures.iter().flat_map(|t| truth(*t)).collect();
    let seen = Tensor::from_slice(&swing(&constants, times));
    let input = Tensor::from_slice(&temperatures).reshape([-1, 1]);

    let mut variables = nn::VarStore::new(Device::Cpu);
    let root = variables.root();
    let hidden = nn::linear(&root / "hidden", 1, 16, Default::default());
    let output = nn::linear(&root / "output", 16, 2, Default::default());
    variables.double();
    let guess = || output.forward(&hidden.forward(&input).tanh()).softplus();
    let loss = || (swing::autograd(&guess(), times) - &seen).square().mean(Kind::Double);

    let mut optimizer = nn::Adam::default().build(&variables, 0.02).expect("an optimizer");
    let first = loss().double_value(&[]);
    for step in 0..=400 {
        let loss = loss();
        if step % 100 == 0 {
            println!("step {step:>3}: loss {:.2e}", loss.double_value(&[]));
        }
        optimizer.backward_step(&loss);
    }
    let last = loss().double_value(&[]);
    println!("loss before {first:.2e}, after {last:.2e}");
    assert!(
        last < 1e-2 * first,
        "the network has learnt how springs depend on temperature"
    );
    let learnt = Vec::<f64>::try_from(guess().reshape([-1])).expect("numbers");
    println!("at temperature 1: {:.3?}, in truth {:.3?}", &learnt[32..34], truth(1.0));
}
