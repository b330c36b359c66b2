//! Text forms of what later stages make of a graph: the graphs, then how they hang together. For readers.

use crate::differentiate::Joint;
use crate::ir::Value;
use crate::partition::{Origin, Split};
use std::fmt::{self, Display, Formatter};

impl Display for Joint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(&self.graph, f)?;
        writeln!(f, "; forward: {} instructions", self.forward)?;
        writeln!(f, "; seeds: {}", list(&self.seeds, Value::to_string))?;
        writeln!(f, "; cotangents: {}", list(&self.cotangents, Value::to_string))
    }
}

impl Display for Split {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.forward, self.backward.to_string().trim_end())?;
        for r in &self.residuals {
            let origin = match r.origin {
                Origin::Input(k) => format!("input {k}"),
                Origin::Output(k) => format!("output {k}"),
                Origin::Intermediate => "intermediate".into(),
            };
            writeln!(
                f,
                "; residual: {} of the forward is {} of the backward, {origin}",
                r.forward, r.backward
            )?;
        }
        let input = |k: &usize| self.backward.inputs[*k].value.to_string();
        let output = |k: &usize| self.backward.outputs[*k].to_string();
        writeln!(f, "; seeds: {}", list(&self.seeds, input))?;
        writeln!(f, "; cotangents: {}", list(&self.cotangents, output))
    }
}

fn list<T>(items: &[Option<T>], show: impl Fn(&T) -> String) -> String {
    let items: Vec<String> = items.iter().map(|v| v.as_ref().map_or("none".into(), &show)).collect();
    items.join(", ")
}
