#include <cmath>

#include <braid/core/error.hpp>
#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/nn/internal/fused.hpp>
#include <braid/nn/transformer.hpp>
#include <braid/nn/walks.hpp>

#include "layers/call.hpp"

namespace braid::nn {
namespace {

LinearOptions linear_options(const TransformerOptions& o) {
  return {.bias = o.bias, .device = o.device, .dtype = o.dtype};
}
LayerNormOptions norm_options(const TransformerOptions& o) {
  return {.eps = o.layer_norm_eps, .bias = o.bias, .device = o.device, .dtype = o.dtype};
}
MultiheadAttentionOptions attention_options(const TransformerOptions& o) {
  return {.dropout = o.dropout,
          .bias = o.bias,
          .batch_first = o.batch_first,
          .device = o.device,
          .dtype = o.dtype};
}

/// activation(linear1(x)) of an encoder or decoder layer.
template <class L> Tensor hidden(const L& layer, const Tensor& x) {
  const bool relu = layer.activation == TransformerActivation::relu;
  if (detail::observed(layer.linear1))
    return relu ? braid::relu(layer.linear1(x)) : gelu(layer.linear1(x));
  const auto fused = [&] {
    const Linear& l = layer.linear1;
    return relu ? linear_relu(x, l.weight, l.bias) : linear_gelu(x, l.weight, l.bias);
  };
  return detail::call(layer.linear1, fused, x);
}

/// residual + last(linear2(dropout(activation(linear1(x))))).
template <class L>
Tensor feed_forward(const L& layer, const Tensor& x, const Dropout& last, const Tensor& residual) {
  const Tensor h = layer.dropout(hidden(layer, x));
  const Linear& linear2 = layer.linear2;
  if ((!last.training || last.p == 0) && detail::may_fuse(linear2, last))
    return detail::call(
        linear2, [&] { return linear_add(h, linear2.weight, linear2.bias, residual); }, h);
  return residual + last(linear2(h));
}

/// A residual connection around a part of a layer. The norm is applied to the part's input
/// (norm_first) or to the sum.
template <class F>
Tensor residual(const Tensor& x, const LayerNorm& norm, bool norm_first, F part) {
  return norm_first ? x + part(norm(x)) : norm(x + part(x));
}
template <class L>
Tensor feed_forward_residual(const L& layer, const Tensor& x, const LayerNorm& norm,
                             const Dropout& last) {
  return layer.norm_first ? feed_forward(layer, norm(x), last, x)
                          : norm(feed_forward(layer, x, last, x));
}

template <class L> std::vector<L> copies(const char* name, const L& layer, std::int64_t n) {
  constexpr std::int64_t kMost = 10'000;
  if (n < 0) throw ArgumentError(str(name, ": expected num_layers >= 0, got ", n));
  if (n > kMost) throw ArgumentError(str(name, ": expected num_layers <= ", kMost, ", got ", n));
  std::vector<L> list;
  for (std::int64_t i = 0; i < n; ++i) list.push_back(clone(layer));
  return list;
}

}  // namespace

BRAID_FIELDS_DEFINED(TransformerEncoderLayer, self_attn, linear1, dropout, linear2, norm1, norm2,
                     dropout1, dropout2)
BRAID_FIELDS_DEFINED(TransformerDecoderLayer, self_attn, multihead_attn, linear1, dropout, linear2,
                     norm1, norm2, norm3, dropout1, dropout2, dropout3)
BRAID_FIELDS_DEFINED(TransformerEncoder, layers, norm)
BRAID_FIELDS_DEFINED(TransformerDecoder, layers, norm)

TransformerEncoderLayer::TransformerEncoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerOptions& o)
    : self_attn(d_model, nhead, attention_options(o)),
      linear1(d_model, o.dim_feedforward, linear_options(o)),
      dropout(o.dropout),
      linear2(o.dim_feedforward, d_model, linear_options(o)),
      norm1(d_model, norm_options(o)),
      norm2(d_model, norm_options(o)),
      dropout1(o.dropout),
      dropout2(o.dropout),
      activation(o.activation),
      norm_first(o.norm_first) {}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const AttentionCall& mask) const {
  const Tensor x = residual(src, norm1, norm_first,
                            [&](const Tensor& t) { return dropout1(self_attn(t, t, t, mask)); });
  return feed_forward_residual(*this, x, norm2, dropout2);
}
BRAID_LAYER_CALL(Tensor, TransformerEncoderLayer, (const Tensor& src, const AttentionCall& mask),
                 (src, mask))

TransformerDecoderLayer::TransformerDecoderLayer(std::int64_t d_model, std::int64_t nhead,
                                                 const TransformerOptions& o)
    : self_attn(d_model, nhead, attention_options(o)),
      multihead_attn(d_model, nhead, attention_options(o)),
      linear1(d_model, o.dim_feedforward, linear_options(o)),
      dropout(o.dropout),
      linear2(o.dim_feedforward, d_model, linear_options(o)),
      norm1(d_model, norm_options(o)),
      norm2(d_model, norm_options(o)),
      norm3(d_model, norm_options(o)),
      dropout1(o.dropout),
      dropout2(o.dropout),
      dropout3(o.dropout),
      activation(o.activation),
      norm_first(o.norm_first) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const AttentionCall& tgt_mask,
                                        const AttentionCall& memory_mask) const {
  Tensor x = residual(tgt, norm1, norm_first,
                      [&](const Tensor& t) { return dropout1(self_attn(t, t, t, tgt_mask)); });
  x = residual(x, norm2, norm_first, [&](const Tensor& t) {
    return dropout2(multihead_attn(t, memory, memory, memory_mask));
  });
  return feed_forward_residual(*this, x, norm3, dropout3);
}
BRAID_LAYER_CALL(Tensor, TransformerDecoderLayer,
                 (const Tensor& tgt, const Tensor& memory, const AttentionCall& tgt_mask,
                  const AttentionCall& memory_mask),
                 (tgt, memory, tgt_mask, memory_mask))

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer,
                                       std::int64_t num_layers, std::optional<LayerNorm> last)
    : layers(copies("TransformerEncoder", layer, num_layers)), norm(std::move(last)) {}
Tensor TransformerEncoder::forward(const Tensor& src, const AttentionCall& mask) const {
  Tensor x = src;
  for (const TransformerEncoderLayer& layer : layers) x = layer(x, mask);
  return norm ? (*norm)(x) : x;
}
BRAID_LAYER_CALL(Tensor, TransformerEncoder, (const Tensor& src, const AttentionCall& mask),
                 (src, mask))

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer,
                                       std::int64_t num_layers, std::optional<LayerNorm> last)
    : layers(copies("TransformerDecoder", layer, num_layers)), norm(std::move(last)) {}
Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const AttentionCall& tgt_mask,
                                   const AttentionCall& memory_mask) const {
  Tensor x = tgt;
  for (const TransformerDecoderLayer& layer : layers) x = layer(x, memory, tgt_mask, memory_mask);
  return norm ? (*norm)(x) : x;
}
BRAID_LAYER_CALL(Tensor, TransformerDecoder,
                 (const Tensor& tgt, const Tensor& memory, const AttentionCall& tgt_mask,
                  const AttentionCall& memory_mask),
                 (tgt, memory, tgt_mask, memory_mask))

PositionalEncoding::PositionalEncoding(std::int64_t d_model,
                                       const PositionalEncodingOptions& options)
    : dropout(options.dropout), batch_first(options.batch_first) {
  const std::int64_t length = options.max_len;
  if (d_model < 1 || length < 0 || length > std::numeric_limits<std::int64_t>::max() / 4 / d_model)
    throw ArgumentError(
        str("PositionalEncoding: expected d_model >= 1 and max_len >= 0 whose product "
            "is below 2^61, got ",
            d_model, " and ", length));
  const Tensor table = empty({length, d_model}, {.device = Device(), .dtype = DType::float32});
  auto* const numbers = table.data<float>();
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t i = 0; i < d_model; ++i) {
      const double angle =
          static_cast<double>(t) *
          std::pow(10000.0, -static_cast<double>(i / 2 * 2) / static_cast<double>(d_model));
      numbers[t * d_model + i] = static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  const Tensor made = empty({length, d_model}, {.device = options.device, .dtype = DType::float32});
  made.copy_(table);
  pe =
      Buffer(batch_first ? made.reshape({1, length, d_model}) : made.reshape({length, 1, d_model}));
}

Tensor PositionalEncoding::forward(const Tensor& x) const {
  const int axis = batch_first ? 1 : 0;
  if (x.dim() != 3 || x.shape().back() != pe.shape().back() || x.size(axis) > pe.size(axis))
    throw ShapeError(str("PositionalEncoding: expected x [", batch_first ? "batch, n" : "n, batch",
                         ", ", pe.shape().back(), "] with n <= ", pe.size(axis), ", got ",
                         x.shape()));
  return dropout(x + pe.narrow(axis, 0, x.size(axis)).to(x.dtype()));
}
BRAID_LAYER_CALL(Tensor, PositionalEncoding, (const Tensor& x), (x))

BRAID_FIELDS_DEFINED(PositionalEncoding, dropout, pe)

}  // namespace braid::nn
