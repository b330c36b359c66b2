//! Whole models: a GRU, a transformer with causal attention, a residual block, a variational autoencoder, a contrastive
//! loss, a Runge-Kutta step, optimal transport, a Gaussian process, messages on a graph.
//! Hard: many ops of many kinds in one region, with sizes taken from the arguments.
use cotangent::{Differentiable, differentiable};
use tch::{Device, Kind, Tensor};

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[derive(Differentiable)]
struct Gru {
    wi: Tensor,
    wh: Tensor,
    bi: Tensor,
    bh: Tensor,
}
flat_struct!(Gru { wi, wh, bi, bh });

impl Gru {
    fn step(&self, x: &Tensor, h: &Tensor) -> Tensor {
        let gi = x.matmul(&self.wi.tr()) + &self.bi;
        let gh = h.matmul(&self.wh.tr()) + &self.bh;
        let (gi, gh) = (gi.chunk(3, 1), gh.chunk(3, 1));
        let r = (&gi[0] + &gh[0]).sigmoid();
        let z = (&gi[1] + &gh[1]).sigmoid();
        let n = (&gi[2] + r * &gh[2]).tanh();
        (1.0 - &z) * n + z * h
    }
}

#[differentiable(wrt(x, gru))]
fn recurrent(x: &Tensor, gru: &Gru) -> Tensor {
    let (t, b, _) = x.size3().unwrap();
    let hidden = gru.wh.size()[1];
    let mut h = Tensor::zeros([b, hidden], (x.kind(), x.device()));
    let mut all = Vec::new();
    for i in 0..t {
        h = gru.step(&x.get(i), &h);
        all.push(h.shallow_clone());
    }
    Tensor::stack(&all, 0).mean(Kind::Double)
}

#[test]
fn gru_over_time() {
    let gru = Gru {
        wi: r64(1, &[12, 3]),
        wh: r64(2, &[12, 4]),
        bi: r64(3, &[12]),
        bh: r64(4, &[12]),
    };
    let x = r64(5, &[5, 2, 3]);
    check_scalar!(recurrent(&x, &gru) wrt x, gru);
}

#[derive(Differentiable)]
struct Block {
    qkv: Tensor,
    out: Tensor,
    up: Tensor,
    down: Tensor,
    g1: Tensor,
    g2: Tensor,
}
flat_struct!(Block {
    qkv,
    out,
    up,
    down,
    g1,
    g2
});

fn rms(x: &Tensor, g: &Tensor) -> Tensor {
    let scale = (x.square().mean_dim(Some([-1i64].as_slice()), true, Kind::Double) + 1e-6).rsqrt();
    x * scale * g
}

impl Block {
    fn forward(&self, x: &Tensor, heads: i64) -> Tensor {
        let (b, t, c) = x.size3().unwrap();
        let h = rms(x, &self.g1);
        let qkv = h
            .matmul(&self.qkv)
            .view([b, t, 3, heads, c / heads])
            .permute([2, 0, 3, 1, 4]);
        let parts = qkv.unbind(0);
        let [q, k, v] = [&parts[0], &parts[1], &parts[2]];
        let att = q.matmul(&k.transpose(-2, -1)) / ((c / heads) as f64).sqrt();
        let mask = Tensor::ones([t, t], (Kind::Bool, x.device())).tril(0).logical_not();
        let att = att.masked_fill(&mask, f64::NEG_INFINITY).softmax(-1, Kind::Double);
        let y = att
            .matmul(v)
            .transpose(1, 2)
            .contiguous()
            .view([b, t, c])
            .matmul(&self.out);
        let x = x + y;
        let h = rms(&x, &self.g2).matmul(&self.up);
        let gate = h.chunk(2, -1);
        x + (gate[0].silu() * &gate[1]).matmul(&self.down)
    }
}

#[differentiable(wrt(x, blocks, table))]
fn transformer(x: &Tensor, blocks: &[Block], table: &Tensor, labels: &Tensor, heads: i64) -> Tensor {
    let mut h = x.shallow_clone();
    for block in blocks {
        h = block.forward(&h, heads);
    }
    let logits = h.matmul(&table.tr());
    let (b, t, v) = logits.size3().unwrap();
    logits.view([b * t, v]).cross_entropy_for_logits(&labels.view(-1))
}

#[test]
fn a_transformer() {
    let block = |s: u64| Block {
        qkv: r64(s, &[8, 24]),
        out: r64(s + 1, &[8, 8]),
        up: r64(s + 2, &[8, 32]),
        down: r64(s + 3, &[16, 8]),
        g1: pos(s + 4, &[8]),
        g2: pos(s + 5, &[8]),
    };
    for depth in [1u64, 3] {
        let blocks: Vec<Block> = (0..depth).map(|i| block(10 * i + 1)).collect();
        let (x, table, labels) = (r64(50, &[2, 5, 8]), r64(51, &[7, 8]), ints(52, &[2, 5], 7));
        check_scalar!(transformer(&x, &blocks, &table, &labels, 2) wrt x, blocks, table);
    }
}

#[differentiable(wrt(x, w1, w2, g, b))]
fn residual(x: &Tensor, w1: &Tensor, w2: &Tensor, g: &Tensor, b: &Tensor) -> Tensor {
    let h = x.conv2d(w1, None::<&Tensor>, [1, 1], [1, 1], [1, 1], 1);
    let h = h.group_norm(2, Some(g), Some(b), 1e-5, true).relu();
    let h = h.conv2d(w2, None::<&Tensor>, [1, 1], [1, 1], [1, 1], 1);
    let y = (h + x).relu();
    let pooled = y.adaptive_avg_pool2d([1, 1]).flatten(1, -1);
    let m = y.max_pool2d([2, 2], [2, 2], [0, 0], [1, 1], false);
    pooled.sum(Kind::Double) + m.square().mean(Kind::Double)
}

#[test]
fn a_residual_block() {
    let (x, w1, w2) = (r64(1, &[2, 4, 6, 6]), r64(2, &[4, 4, 3, 3]), r64(3, &[4, 4, 3, 3]));
    let (g, b) = (pos(4, &[4]), r64(5, &[4]));
    check_scalar!(residual(&x, &w1, &w2, &g, &b) wrt x, w1, w2, g, b);
}

#[differentiable(wrt(x, enc, mu, ls, dec))]
fn vae(x: &Tensor, eps: &Tensor, enc: &Tensor, mu: &Tensor, ls: &Tensor, dec: &Tensor) -> Tensor {
    let h = x.matmul(enc).relu();
    let (m, s) = (h.matmul(mu), h.matmul(ls));
    let z = &m + eps * (&s * 0.5).exp();
    let logits = z.matmul(dec);
    let target = x.sigmoid().detach();
    let recon = logits.binary_cross_entropy_with_logits(&target, None::<&Tensor>, None::<&Tensor>, tch::Reduction::Sum);
    let kl = (1.0f64 + &s - m.pow_tensor_scalar(2) - s.exp()).sum(Kind::Double) * -0.5;
    (recon + kl) / x.size()[0] as f64
}

#[test]
fn a_variational_autoencoder() {
    let (x, eps) = (r64(1, &[4, 6]), r64(2, &[4, 2]));
    let (enc, mu, ls, dec) = (r64(3, &[6, 5]), r64(4, &[5, 2]), r64(5, &[5, 2]), r64(6, &[2, 6]));
    check_scalar!(vae(&x, &eps, &enc, &mu, &ls, &dec) wrt x, enc, mu, ls, dec);
}

fn normalize(x: &Tensor) -> Tensor {
    let n = x.norm_scalaropt_dim(2, [1i64].as_slice(), true);
    x / n.clamp_min(1e-12)
}

#[differentiable]
fn info_nce(a: &Tensor, b: &Tensor, temperature: &Tensor) -> Tensor {
    let n = a.size()[0];
    let logits = normalize(a).mm(&normalize(b).tr()) / temperature.exp();
    let labels = Tensor::arange(n, (Kind::Int64, Device::Cpu));
    let l1 = logits.cross_entropy_for_logits(&labels);
    let l2 = logits.tr().cross_entropy_for_logits(&labels);
    (l1 + l2) / 2.0
}

#[test]
fn contrastive() {
    let (a, b, temperature) = (r64(1, &[6, 4]), r64(2, &[6, 4]), scalar(-0.3));
    check_scalar!(info_nce(&a, &b, &temperature) wrt a, b, temperature);
}

#[differentiable(wrt(y0, w))]
fn rk4(y0: &Tensor, w: &Tensor, steps: usize, dt: f64) -> Tensor {
    let f = |y: &Tensor| y.matmul(w).tanh();
    let mut y = y0.shallow_clone();
    for _ in 0..steps {
        let k1 = f(&y);
        let k2 = f(&(&y + &k1 * (dt / 2.0)));
        let k3 = f(&(&y + &k2 * (dt / 2.0)));
        let k4 = f(&(&y + &k3 * dt));
        y = y + (k1 + k2 * 2.0 + k3 * 2.0 + k4) * (dt / 6.0);
    }
    y.square().sum(Kind::Double)
}

#[test]
fn a_neural_ode() {
    let (y0, w) = (r64(1, &[3, 4]), r64(2, &[4, 4]));
    for steps in [1, 4, 9] {
        check_scalar!(rk4(&y0, &w, steps, 0.1) wrt y0, w);
    }
}

#[differentiable(wrt(cost))]
fn sinkhorn(cost: &Tensor, eps: f64, rounds: i32) -> Tensor {
    let n = cost.size()[0] as f64;
    let m = cost.size()[1] as f64;
    let k = -cost / eps;
    let mut f = Tensor::zeros([cost.size()[0], 1], (Kind::Double, cost.device()));
    let mut g = Tensor::zeros([1, cost.size()[1]], (Kind::Double, cost.device()));
    for _ in 0..rounds {
        f = -(&k + &g).logsumexp([1i64].as_slice(), true) - n.ln();
        g = -(&k + &f).logsumexp([0i64].as_slice(), true) - m.ln();
    }
    ((&k + f + g).exp() * cost).sum(Kind::Double)
}

#[test]
fn optimal_transport() {
    let cost = pos(1, &[4, 5]);
    check_scalar!(sinkhorn(&cost, 0.2, 6) wrt cost);
}

#[differentiable(wrt(l, y))]
fn gaussian(l: &Tensor, y: &Tensor) -> Tensor {
    let n = l.size()[0];
    let k = l.matmul(&l.tr()) + Tensor::eye(n, (Kind::Double, Device::Cpu)) * 0.5;
    let c = k.linalg_cholesky(false);
    let a = y.cholesky_solve(&c, false);
    let fit = (y * a).sum(Kind::Double) * 0.5;
    let det = c.diagonal(0, 0, 1).log().sum(Kind::Double);
    fit + det
}

#[test]
fn a_gaussian_process() {
    let (l, y) = (r64(1, &[5, 5]), r64(2, &[5, 1]));
    check_scalar!(gaussian(&l, &y) wrt l, y);
}

#[differentiable(wrt(x, w))]
fn graph_convolution(x: &Tensor, w: &Tensor, from: &Tensor, to: &Tensor) -> Tensor {
    let n = x.size()[0];
    let h = x.matmul(w);
    let messages = h.index_select(0, from);
    let degree = Tensor::zeros([n], (Kind::Double, x.device())).index_add(0, to, &to.ones_like().to_kind(Kind::Double));
    let sums = Tensor::zeros_like(&h).index_add(0, to, &messages);
    (sums / degree.clamp_min(1.0).unsqueeze(1)).relu().sum(Kind::Double)
}

#[test]
fn messages_on_a_graph() {
    let (x, w) = (r64(1, &[5, 3]), r64(2, &[3, 4]));
    let (from, to) = (ints(3, &[9], 5), ints(4, &[9], 5));
    check_scalar!(graph_convolution(&x, &w, &from, &to) wrt x, w);
}
