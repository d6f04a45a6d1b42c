// Layers and their gradients, written as a user would write them.
#include "library/entries.hpp"

namespace bench::gpu {
namespace {

using braid::Tensor;
using Operands = std::vector<Tensor>;

constexpr std::int64_t kGroups = 32;

Tensor layer(const Operands& t) { return braid::linear(t[0], t[1], t[2]); }
Tensor normalize(const Operands& t) { return braid::layer_norm(t[0], {t[0].size(-1)}, t[1], t[2]); }
Tensor normalize_rms(const Operands& t) {
  return braid::rms_norm(t[0], {t[0].size(-1)}, t[1], 1e-6);
}
Tensor normalize_groups(const Operands& t) { return braid::group_norm(t[0], kGroups, t[1], t[2]); }
Tensor normalize_batch(const Operands& t) {
  return braid::batch_norm(t[0], braid::RunningStatistics{}, t[1], t[2], true);
}
Tensor attend(const Operands& t) {
  return braid::scaled_dot_product_attention(t[0], t[1], t[2], {}, 0, true);
}

/// The scores of heads as a user writes them without the fused attention: q and k [batch, length,
/// heads, width].
Tensor scores(const Operands& t) {
  return braid::matmul(t[0].transpose(1, 2), t[1].permute({0, 2, 3, 1}));
}

/// Images as a network has them in memory: channels last.
Tensor channels_last(const Tensor& x) {
  return x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
}
template <int kPadding> Tensor convolve(const Operands& t) {
  return braid::conv2d(t[0], t[1], {}, {.padding = kPadding});
}
template <int kPadding> Tensor convolve_transposed(const Operands& t) {
  return braid::conv_transpose2d(t[0], t[1], t[2], {.padding = kPadding});
}
/// Arranges the images: the first operand, and the third of a gradient.
Sets arranged(const Sets& sets) {
  Sets there = sets;
  for (auto& t : there) {
    t[0] = channels_last(t[0]);
    if (t.size() > 2 && t[2].dim() == 4) t[2] = channels_last(t[2]);
  }
  return there;
}
template <int kPadding> Work convolution(const Sets& sets) {
  return forward(arranged(sets), convolve<kPadding>);
}
template <int kPadding> Work transposed_convolution(const Sets& sets) {
  return forward(arranged(sets), convolve_transposed<kPadding>);
}
/// dX (0) or dW (1) alone.
template <int kPadding, std::size_t kOf> Work convolution_gradient(const Sets& sets) {
  return gradients_of(arranged(sets), Gradients::one, convolve<kPadding>, kOf);
}

const Entry kLayers[] = {
    {"linear", 3, [](const Sets& s) { return forward(s, layer); }},
    {"linear_relu", 3,
     [](const Sets& s) {
       return forward(s, [](const auto& t) { return linear_relu(t[0], t[1], t[2]); });
     }},
    {"linear_gelu", 3,
     [](const Sets& s) {
       return forward(s, [](const auto& t) { return linear_gelu(t[0], t[1], t[2]); });
     }},
    {"linear_add", 4,
     [](const Sets& s) {
       return forward(s, [](const auto& t) { return linear_add(t[0], t[1], t[2], t[3]); });
     }},
    {"linear_backward", 4, [](const Sets& s) { return gradients_of(s, Gradients::first, layer); }},
    {"linear_gradients", 4, [](const Sets& s) { return gradients_of(s, Gradients::all, layer); }},
    {"captured_linear_backward", 4,
     [](const Sets& s) { return captured_gradients_of(s, Gradients::first, layer); }},
    {"captured_linear_gradients", 4,
     [](const Sets& s) { return captured_gradients_of(s, Gradients::all, layer); }},
    {"attention", 3, [](const Sets& s) { return forward(s, attend); }},
    {"attention_backward", 4,
     [](const Sets& s) { return gradients_of(s, Gradients::first, attend); }},
    {"attention_gradients", 4,
     [](const Sets& s) { return gradients_of(s, Gradients::all, attend); }},
    {"scores", 2, [](const Sets& s) { return forward(s, scores); }},
    {"layer_norm", 3, [](const Sets& s) { return forward(s, normalize); }},
    {"rms_norm", 2, [](const Sets& s) { return forward(s, normalize_rms); }},
    {"layer_norm_gradient", 4,
     [](const Sets& s) { return gradients_of(s, Gradients::first, normalize); }},
    {"layer_norm_gradients", 4,
     [](const Sets& s) { return gradients_of(s, Gradients::all, normalize); }},
    {"rms_norm_gradient", 3,
     [](const Sets& s) { return gradients_of(s, Gradients::first, normalize_rms); }},
    {"group_norm_gradient", 4,
     [](const Sets& s) { return gradients_of(s, Gradients::first, normalize_groups); }},
    {"batch_norm_gradient", 4,
     [](const Sets& s) { return gradients_of(s, Gradients::first, normalize_batch); }},
    {"conv1", 2, convolution<0>},
    {"conv3", 2, convolution<1>},
    {"conv1_dx", 3, convolution_gradient<0, 0>},
    {"conv1_dw", 3, convolution_gradient<0, 1>},
    {"conv3_dx", 3, convolution_gradient<1, 0>},
    {"conv3_dw", 3, convolution_gradient<1, 1>},
    {"conv1_transposed", 3, transposed_convolution<0>},
    {"conv3_transposed", 3, transposed_convolution<1>},
};

}  // namespace

std::span<const Entry> layer_entries() { return kLayers; }

}  // namespace bench::gpu
