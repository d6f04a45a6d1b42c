#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <braid/nn/attention.hpp>
#include <braid/nn/dropout.hpp>
#include <braid/nn/linear.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/norm.hpp>

// Transformer layers (Vaswani et al. 2017, arXiv:1706.03762). Parameter names and defaults are
// PyTorch's, so state dicts can be exchanged in both directions. Sequences are [n, batch, d_model]
// unless batch_first. A mask hides a key where it is true (AttentionCall).
namespace braid::nn {

/// The activation of a feed-forward network.
enum class TransformerActivation : std::uint8_t { relu, gelu };

/// The options of TransformerEncoderLayer and TransformerDecoderLayer.
struct TransformerOptions {
  std::int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  TransformerActivation activation = TransformerActivation::relu;
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  ///< pre-norm: x + f(norm(x)) instead of norm(x + f(x))
  bool bias = true;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};

/// Self-attention, then a feed-forward network, each with dropout, a residual connection and a
/// layer norm. x [n, batch, d_model] → the same shape.
struct TransformerEncoderLayer : Module {
  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;
  TransformerActivation activation;
  bool norm_first;

  TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                          const TransformerOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& src, const AttentionCall& mask = {}))
  BRAID_FIELDS_DECLARED(self_attn, linear1, dropout, linear2, norm1, norm2, dropout1, dropout2)
};

/// Self-attention, attention to `memory`, then a feed-forward network, each with dropout, a
/// residual connection and a layer norm.
struct TransformerDecoderLayer : Module {
  MultiheadAttention self_attn, multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;
  TransformerActivation activation;
  bool norm_first;

  TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead,
                          const TransformerOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& tgt, const Tensor& memory,
                         const AttentionCall& tgt_mask = {}, const AttentionCall& memory_mask = {}))
  BRAID_FIELDS_DECLARED(self_attn, multihead_attn, linear1, dropout, linear2, norm1, norm2, norm3,
                        dropout1, dropout2, dropout3)
};

/// num_layers copies of a layer in sequence, with an optional norm at the end.
///
///     const nn::TransformerEncoder encoder(nn::TransformerEncoderLayer(64, 8), 2);
///     encoder(randn({100, 2, 64}), {.is_causal = true});  // [100, 2, 64]
struct TransformerEncoder : Module {
  std::vector<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;

  TransformerEncoder(const TransformerEncoderLayer& encoder_layer, std::int64_t num_layers,
                     std::optional<LayerNorm> norm = {});
  BRAID_FORWARD(Tensor, (const Tensor& src, const AttentionCall& mask = {}))
  BRAID_FIELDS_DECLARED(layers, norm)
};

/// The same for decoder layers.
struct TransformerDecoder : Module {
  std::vector<TransformerDecoderLayer> layers;
  std::optional<LayerNorm> norm;

  TransformerDecoder(const TransformerDecoderLayer& decoder_layer, std::int64_t num_layers,
                     std::optional<LayerNorm> norm = {});
  BRAID_FORWARD(Tensor, (const Tensor& tgt, const Tensor& memory,
                         const AttentionCall& tgt_mask = {}, const AttentionCall& memory_mask = {}))
  BRAID_FIELDS_DECLARED(layers, norm)
};

/// The options of PositionalEncoding.
struct PositionalEncodingOptions {
  double dropout = 0.1;
  std::int64_t max_len = 5000;
  bool batch_first = false;
  std::optional<Device> device = {};
};

/// Adds sinusoidal position codes, then applies dropout: x + pe, where pe[t, 2i] = sin(t /
/// 10000^(2i / d)) and pe[t, 2i + 1] is the cosine of the same angle. The buffer pe is [max_len, 1,
/// d_model], or [1, max_len, d_model] with batch_first. The constructor throws ArgumentError unless
/// d_model >= 1, max_len >= 0 and their product is below 2^61. A call throws ShapeError if the
/// sequence is longer than max_len or has another d_model.
struct PositionalEncoding : Module {
  Dropout dropout;
  Buffer pe;
  bool batch_first;

  explicit PositionalEncoding(std::int64_t d_model, const PositionalEncodingOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS_DECLARED(dropout, pe)
};

}  // namespace braid::nn
