//! Layers of long short-term memory with elementwise gates, over a sequence.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// One layer, one time: `weights` has four rows, then four rows of biases.
fn layer(weights: &[f64], hidden: &mut [f64], cell: &mut [f64], input: &[f64]) {
    let b = hidden.len();
    let gate = |row: usize, i: usize, x: f64| x * weights[row * b + i] + weights[(4 + row) * b + i];
    for i in 0..b {
        let forget = sigmoid(gate(0, i, input[i]));
        let enter = sigmoid(gate(1, i, hidden[i]));
        let leave = sigmoid(gate(2, i, input[i]));
        let change = gate(3, i, hidden[i]).tanh();
        cell[i] = cell[i] * forget + enter * change;
        hidden[i] = leave * cell[i].tanh();
    }
}

fn log_sum_exp(x: &[f64]) -> f64 {
    (x.iter().map(|x| x.exp()).sum::<f64>() + 2.0).ln()
}

/// `main` has the layers' weights, `extra` those of input and output, and the output's biases.
#[differentiable(wrt(main, extra))]
fn lstm(main: &[f64], extra: &[f64], state: &[f64], sequence: &[f64], b: usize) -> f64 {
    let layers = main.len() / (8 * b);
    let mut state = state.to_vec();
    let (mut input, mut guess) = (vec![0.0; b], vec![0.0; b]);
    let (mut total, mut count) = (0.0, 0);
    for pair in sequence.windows(2 * b).step_by(b) {
        let (now, next) = pair.split_at(b);
        for i in 0..b {
            input[i] = now[i] * extra[i];
        }
        for l in 0..layers {
            let (hidden, cell) = state[2 * l * b..2 * (l + 1) * b].split_at_mut(b);
            layer(&main[8 * l * b..8 * (l + 1) * b], hidden, cell, &input);
            input.copy_from_slice(hidden);
        }
        for i in 0..b {
            guess[i] = input[i] * extra[b + i] + extra[2 * b + i];
        }
        let sum = log_sum_exp(&guess);
        for i in 0..b {
            total += next[i] * (guess[i] - sum);
        }
        count += b;
    }
    -total / count as f64
}

/// What one unit of a layer did at one time: input, hidden and cell before, gates, the cell's hyperbolic tangent.
#[derive(Clone, Copy)]
struct Unit {
    input: f64,
    hidden: f64,
    cell: f64,
    forget: f64,
    enter: f64,
    leave: f64,
    change: f64,
    tanh: f64,
}

fn by_hand(main: &[f64], extra: &[f64], state: &[f64], sequence: &[f64], b: usize) -> Vec<Vec<f64>> {
    let (layers, times) = (main.len() / (8 * b), sequence.len() / b - 1);
    let mut state = state.to_vec();
    let mut units = Vec::with_capacity(times * layers * b);
    let mut outputs = Vec::with_capacity(times * b);
    let mut input = vec![0.0; b];
    for t in 0..times {
        for i in 0..b {
            input[i] = sequence[t * b + i] * extra[i];
        }
        for l in 0..layers {
            let w = &main[8 * l * b..8 * (l + 1) * b];
            for i in 0..b {
                let (hidden, cell) = (state[2 * l * b + i], state[(2 * l + 1) * b + i]);
                let forget = sigmoid(input[i] * w[i] + w[4 * b + i]);
                let enter = sigmoid(hidden * w[b + i] + w[5 * b + i]);
                let leave = sigmoid(input[i] * w[2 * b + i] + w[6 * b + i]);
                let change = (hidden * w[3 * b + i] + w[7 * b + i]).tanh();
                let next = cell * forget + enter * change;
                let tanh = next.tanh();
                units.push(Unit {
                    input: input[i],
                    hidden,
                    cell,
                    forget,
                    enter,
                    leave,
                    change,
                    tanh,
                });
                (state[2 * l * b + i], state[(2 * l + 1) * b + i]) = (leave * tanh, next);
                input[i] = leave * tanh;
            }
        }
        outputs.extend_from_slice(&input);
    }
    let (mut main_bar, mut extra_bar) = (vec![0.0; main.len()], vec![0.0; extra.len()]);
    let mut state_bar = vec![0.0; state.len()];
    let (mut guess, mut below) = (vec![0.0; b], vec![0.0; b]);
    let seed = -1.0 / (times * b) as f64;
    for t in (0..times).rev() {
        let (output, next) = (&outputs[t * b..(t + 1) * b], &sequence[(t + 1) * b..(t + 2) * b]);
        for i in 0..b {
            guess[i] = output[i] * extra[b + i] + extra[2 * b + i];
        }
        let (sum, all) = (log_sum_exp(&guess), next.iter().sum::<f64>());
        for i in 0..b {
            let bar = seed * (next[i] - all * (guess[i] - sum).exp());
            extra_bar[b + i] += bar * output[i];
            extra_bar[2 * b + i] += bar;
            below[i] = bar * extra[b + i];
        }
        for l in (0..layers).rev() {
            let w = &main[8 * l * b..8 * (l + 1) * b];
            let w_bar = &mut main_bar[8 * l * b..8 * (l + 1) * b];
            for i in 0..b {
                let u = units[(t * layers + l) * b + i];
                let hidden_bar = state_bar[2 * l * b + i] + below[i];
                let leave_bar = hidden_bar * u.tanh * u.leave * (1.0 - u.leave);
                let cell_bar = state_bar[(2 * l + 1) * b + i] + hidden_bar * u.leave * (1.0 - u.tanh * u.tanh);
                let forget_bar = cell_bar * u.cell * u.forget * (1.0 - u.forget);
                let enter_bar = cell_bar * u.change * u.enter * (1.0 - u.enter);
                let change_bar = cell_bar * u.enter * (1.0 - u.change * u.change);
                state_bar[(2 * l + 1) * b + i] = cell_bar * u.forget;
                for (row, (bar, from)) in [
                    (forget_bar, u.input),
                    (enter_bar, u.hidden),
                    (leave_bar, u.input),
                    (change_bar, u.hidden),
                ]
                .into_iter()
                .enumerate()
                {
                    w_bar[row * b + i] += bar * from;
                    w_bar[(4 + row) * b + i] += bar;
                }
                state_bar[2 * l * b + i] = enter_bar * w[b + i] + change_bar * w[3 * b + i];
                below[i] = forget_bar * w[i] + leave_bar * w[2 * b + i];
            }
        }
        for i in 0..b {
            extra_bar[i] += below[i] * sequence[t * b + i];
        }
    }
    vec![main_bar, extra_bar]
}

pub(crate) fn workload(size: Size) -> Workload {
    let (layers, times, b) = size.pick((2, 5, 3), (2, 4096, 14));
    let mut random = Random(8);
    let (main, extra) = (random.numbers(8 * layers * b), random.numbers(3 * b));
    let (state, sequence) = (random.numbers(2 * layers * b), random.numbers((times + 1) * b));
    let data = (main, extra, state, sequence);
    let (d1, d2) = (data.clone(), data.clone());
    Workload {
        primal: Box::new(move || lstm(&data.0, &data.1, &data.2, &data.3, b)),
        gradient: Box::new(move || {
            let lstm::Cotangents { main, extra } = lstm::grad(&d1.0, &d1.1, &d1.2, &d1.3, b);
            vec![main, extra]
        }),
        by_hand: Box::new(move || by_hand(&d2.0, &d2.1, &d2.2, &d2.3, b)),
    }
}
