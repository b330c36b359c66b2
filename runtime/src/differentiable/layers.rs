//! Layers of `tch::nn` whose weights are public: their leaves are the weights and the bias. (Layers that normalise are not
//! among them: they keep a float, their epsilon, beside the weights, and an op takes it as a constant.)
//!
//! A cotangent is a layer, too, so that a model made of layers can derive `Differentiable`. Only its weights and its bias
//! mean something: what else a layer holds is private or constant, and is there as a new layer has it.

use super::{Differentiable, Leaves, Source};
use tch::nn::{self, Init};
use tch::{Device, Tensor};

/// A variable that draws no random numbers: it is replaced at once.
const INIT: Init = Init::Const(0.0);

/// For each type: its leaves, which are fields, and how to make a layer of it in a store.
macro_rules! layer {
    ($($type:ty: $($field:ident)+, |$store:ident| $make:expr;)*) => {$(
        impl Differentiable for $type {
            type Cotangent = Self;
            type Seed = Self;
            fn leaves(&self, leaves: &mut Leaves) {
                $(self.$field.leaves(leaves);)+
            }
            fn cotangent(&self, source: &mut Source) -> Self {
                let store = nn::VarStore::new(Device::Cpu);
                let $store = store.root();
                let mut made: Self = $make;
                $(made.$field = self.$field.cotangent(source);)+
                made
            }
            fn seed(&self, source: &mut Source) -> Option<Self> {
                Some(self.cotangent(source))
            }
        }
    )*};
}
layer! {
    nn::Linear: ws bs, |_store| nn::Linear { ws: Tensor::new(), bs: None };
    nn::Conv1D: ws bs, |store| nn::conv1d(store, 1, 1, 1, convolution());
    nn::Conv2D: ws bs, |store| nn::conv2d(store, 1, 1, 1, convolution());
    nn::Conv3D: ws bs, |store| nn::conv3d(store, 1, 1, 1, convolution());
    nn::ConvTranspose1D: ws bs, |store| nn::conv_transpose1d(store, 1, 1, 1, transposed());
    nn::ConvTranspose2D: ws bs, |store| nn::conv_transpose2d(store, 1, 1, 1, transposed());
    nn::ConvTranspose3D: ws bs, |store| nn::conv_transpose3d(store, 1, 1, 1, transposed());
    nn::Embedding: ws, |store| {
        nn::embedding(store, 1, 1, nn::EmbeddingConfig { ws_init: INIT, ..Default::default() })
    };
}

fn convolution() -> nn::ConvConfig {
    nn::ConvConfig {
        ws_init: INIT,
        bias: false,
        ..Default::default()
    }
}

fn transposed() -> nn::ConvTransposeConfig {
    nn::ConvTransposeConfig {
        ws_init: INIT,
        bias: false,
        ..Default::default()
    }
}
