//! Bodies under gravity: forces are the gradient of the energy, so only the energy is written down.
//!
//! `cargo cotangent run --release --example nbody`

use cotangent::differentiable;

/// Potential energy of point masses (positions `x y z x y z ..`, gravitational constant one).
#[differentiable(wrt(positions))]
fn potential(positions: &[f64], masses: &[f64]) -> f64 {
    let mut energy = 0.0;
    for i in 0..masses.len() {
        for j in 0..i {
            let squares = (0..3).map(|k| (positions[3 * i + k] - positions[3 * j + k]).powi(2));
            energy -= masses[i] * masses[j] / squares.sum::<f64>().sqrt();
        }
    }
    energy
}

/// The forces by hand, to compare.
fn forces_by_hand(positions: &[f64], masses: &[f64]) -> Vec<f64> {
    let mut forces = vec![0.0; positions.len()];
    for i in 0..masses.len() {
        for j in (0..masses.len()).filter(|j| *j != i) {
            let apart: [f64; 3] = std::array::from_fn(|k| positions[3 * j + k] - positions[3 * i + k]);
            let distance = apart.iter().map(|a| a * a).sum::<f64>().sqrt();
            for k in 0..3 {
                forces[3 * i + k] += masses[i] * masses[j] * apart[k] / distance.powi(3);
            }
        }
    }
    forces
}

struct Bodies {
    masses: Vec<f64>,
    positions: Vec<f64>,
    velocities: Vec<f64>,
}

impl Bodies {
    /// A sun with planets on circles.
    fn new(planets: usize) -> Bodies {
        let mut bodies = Bodies {
            masses: vec![1.0],
            positions: vec![0.0; 3],
            velocities: vec![0.0; 3],
        };
        for i in 1..=planets {
            let (radius, angle) = (i as f64, 2.4 * i as f64);
            let speed = radius.recip().sqrt();
            bodies.masses.push(1e-3 / i as f64);
            bodies
                .positions
                .extend([radius * angle.cos(), radius * angle.sin(), 0.01 * radius]);
            bodies
                .velocities
                .extend([-speed * angle.sin(), speed * angle.cos(), 0.0]);
        }
        bodies
    }

    fn energy(&self) -> f64 {
        let squares = self.velocities.chunks(3).map(|v| v.iter().map(|v| v * v).sum::<f64>());
        let kinetic: f64 = squares.zip(&self.masses).map(|(v, m)| 0.5 * m * v).sum();
        kinetic + potential(&self.positions, &self.masses)
    }

    /// Velocities over half a step, positions over a step, velocities over half a step.
    fn step(&mut self, dt: f64) {
        self.kick(dt / 2.0);
        for (x, v) in self.positions.iter_mut().zip(&self.velocities) {
            *x += dt * v;
        }
        self.kick(dt / 2.0);
    }

    fn kick(&mut self, dt: f64) {
        let slopes = potential::grad(&self.positions, &self.masses).positions;
        for (i, slope) in slopes.iter().enumerate() {
            self.velocities[i] -= dt * slope / self.masses[i / 3];
        }
    }
}

fn main() {
    let mut bodies = Bodies::new(7);
    let slopes = potential::grad(&bodies.positions, &bodies.masses).positions;
    let forces = forces_by_hand(&bodies.positions, &bodies.masses);
    let largest = |all: &mut dyn Iterator<Item = f64>| all.map(f64::abs).fold(0.0, f64::max);
    let error = largest(&mut slopes.iter().zip(&forces).map(|(s, f)| s + f)) / largest(&mut forces.iter().copied());
    println!("largest difference from the forces by hand, over the largest force: {error:.1e}");
    assert!(error < 1e-12, "forces are minus the gradient of the energy");

    let (before, steps) = (bodies.energy(), 5_000);
    for _ in 0..steps {
        bodies.step(2e-3);
    }
    let drift = (bodies.energy() / before - 1.0).abs();
    println!("relative drift of the energy over {steps} steps: {drift:.1e}");
    assert!(drift < 1e-6, "the energy is conserved");
}
