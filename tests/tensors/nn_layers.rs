//! Layers of `tch::nn` as parameters to differentiate: alone, in slices, and in a model that derives `Differentiable`.
//! Hard: their configuration is private, and their weights are variables of a store.
use cotangent::{Differentiable, differentiable};
use tch::nn::{self, Module, VarStore};
use tch::{Device, Kind, Tensor};

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[derive(Differentiable)]
struct Net {
    stem: nn::Conv2D,
    up: nn::ConvTranspose2D,
    layers: Vec<nn::Linear>,
}

impl Net {
    fn new(root: &nn::Path<'_>) -> Self {
        let strided = nn::ConvConfig {
            stride: 2,
            padding: 1,
            ..Default::default()
        };
        Net {
            stem: nn::conv2d(root / "stem", 1, 4, 3, strided),
            up: nn::conv_transpose2d(root / "up", 4, 2, 2, Default::default()),
            layers: vec![
                nn::linear(root / "first", 50, 6, Default::default()),
                nn::linear(
                    root / "second",
                    6,
                    5,
                    nn::LinearConfig {
                        bias: false,
                        ..Default::default()
                    },
                ),
            ],
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let h = x.apply(&self.stem).relu().apply(&self.up).flatten(1, -1);
        self.layers.iter().fold(h, |h, layer| h.apply(layer).tanh())
    }
}

#[differentiable(wrt(net))]
fn loss(net: &Net, x: &Tensor, labels: &Tensor) -> Tensor {
    net.forward(x).cross_entropy_for_logits(labels)
}

#[differentiable]
fn embedded(ids: &Tensor, table: &nn::Embedding, layers: &[nn::Linear]) -> Tensor {
    layers
        .iter()
        .fold(table.forward(ids), |h, l| l.forward(&h).sigmoid())
        .sum(Kind::Float)
}

/// The store's variables of a seeded model, the model, and its inputs.
fn model() -> (VarStore, Net, Tensor, Tensor) {
    let vs = VarStore::new(Device::Cpu);
    let net = seeded(1, || Net::new(&vs.root()));
    (vs, net, r32(1, &[3, 1, 8, 8]), ints(2, &[3], 5))
}

fn variables(vs: &VarStore, part: impl Fn(&Tensor) -> Tensor) -> Vec<Tensor> {
    let mut all: Vec<(String, Tensor)> = vs.variables().into_iter().collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.iter().map(|(_, v)| part(v)).collect()
}

#[test]
fn gradients_of_a_model_of_layers_land_in_its_store() {
    let run = |f: &dyn Fn(&Net, &Tensor, &Tensor) -> Tensor| {
        let (vs, net, x, labels) = model();
        let out = f(&net, &x, &labels);
        out.backward();
        let mut all = variables(&vs, Tensor::grad);
        all.push(out.detach());
        all
    };
    same_all("gradients and loss", &run(&loss::autograd), &run(&loss));
}

#[test]
fn cotangents_of_a_model_of_layers_are_layers() {
    let (vs, net, x, labels) = model();
    let (_, c) = loss::value_and_grad(&net, &x, &labels);
    let (_vs, native, x, labels) = model();
    loss(&native, &x, &labels).backward();
    drop(vs);
    let grads = |n: &Net, part: &dyn Fn(&Tensor) -> Tensor| -> Vec<Tensor> {
        let mut all = vec![part(&n.stem.ws), part(n.stem.bs.as_ref().unwrap())];
        all.extend([part(&n.up.ws), part(n.up.bs.as_ref().unwrap())]);
        all.extend([part(&n.layers[0].ws), part(&n.layers[1].ws)]);
        all
    };
    let got = grads(&c.net, &Tensor::shallow_clone);
    same_all("cotangents", &got, &grads(&native, &Tensor::grad));
    assert!(c.net.layers[1].bs.is_none(), "a layer without a bias");
}

#[test]
fn layers_are_parameters_by_themselves() {
    let vs = VarStore::new(Device::Cpu);
    let table = nn::embedding(vs.root() / "table", 7, 4, Default::default());
    let layers: Vec<nn::Linear> = (0..2)
        .map(|i| nn::linear(vs.root() / i, 4, 4, Default::default()))
        .collect();
    let ids = ints(3, &[5], 7);
    let c = embedded::grad(&ids, &table, &layers);
    embedded(&ids, &table, &layers).backward();
    let want = [
        table.ws.grad(),
        layers[0].ws.grad(),
        layers[1].bs.as_ref().unwrap().grad(),
    ];
    let bias = c.layers[1].bs.as_ref().unwrap().shallow_clone();
    same_all("cotangents", &[c.table.ws, c.layers[0].ws.shallow_clone(), bias], &want);
}
