#include <cmath>
#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/attention.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/dropout.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/core/random.hpp>
#include <braid/nn/attention.hpp>

#include "layers/call.hpp"

namespace braid::nn {
namespace {

constexpr const char* kName = "MultiheadAttention";
constexpr double kNone = -std::numeric_limits<double>::infinity();

Tensor number_like(const Tensor& t, double value) {
  return full({}, value, {.device = t.device(), .dtype = t.dtype()});
}
/// True where a mask is false, that is, where a key takes part.
Tensor shown(const Tensor& mask) { return eq(mask, 0.0); }

/// Returns x as [batch, n, embed], whatever the layout of the call.
Tensor batched(const Tensor& x, bool batch_first) {
  return x.dim() == 2 ? x.unsqueeze(0) : batch_first ? x : x.transpose(0, 1);
}

void check(const MultiheadAttention& m, const char* name, const Tensor& x, int rank) {
  if (x.dim() != rank || (rank != 2 && rank != 3) || x.shape().back() != m.embed_dim)
    throw ShapeError(str(kName, ": expected ", name, " of rank ", rank == 2 ? 2 : 3,
                         " that ends in ", m.embed_dim, ", got ", x.shape()));
}

/// Combines both masks and the causal mask into one mask for the scores [batch, heads, queries,
/// keys], in the form that scaled_dot_product_attention expects; undefined if there is none.
Tensor joined_masks(const AttentionCall& call, bool causal, const Tensor& like,
                    const Shape& scores) {
  Tensor mask;
  const auto also = [&](const Tensor& sees) {
    if (!mask.defined()) mask = sees;
    else if (mask.dtype() == DType::bool_)
      mask = where(sees, mask, full({}, 0, {.device = mask.device(), .dtype = DType::bool_}));
    else mask = where(sees, mask, number_like(mask, kNone));
  };
  if (call.attn_mask.defined()) {
    const Tensor& m = call.attn_mask;
    if (m.dtype() != DType::bool_ && m.dtype() != like.dtype() &&
        !braid::detail::autocasting(m.dtype(), like.dtype()))
      throw DTypeError(
          str(kName, ": expected attn_mask of bool or ", like.dtype(), ", got ", m.dtype()));
    const bool one = m.shape() == Shape{scores[2], scores[3]},
               each = m.shape() == Shape{scores[0] * scores[1], scores[2], scores[3]};
    if (!one && !each)
      throw ShapeError(str(kName, ": expected attn_mask ", Shape{scores[2], scores[3]}, " or ",
                           Shape{scores[0] * scores[1], scores[2], scores[3]}, ", got ",
                           m.shape()));
    const Tensor wide = each ? m.reshape(scores) : m;
    mask = wide.dtype() == DType::bool_ ? shown(wide) : wide;
  }
  if (call.key_padding_mask.defined()) {
    const Tensor& m = call.key_padding_mask;
    if (m.dtype() != DType::bool_)
      throw DTypeError(str(kName, ": expected key_padding_mask of bool, got ", m.dtype()));
    const Tensor rows = m.dim() == 1 ? m.unsqueeze(0) : m;
    if (rows.shape() != Shape{scores[0], scores[3]})
      throw ShapeError(str(kName, ": expected key_padding_mask ", Shape{scores[0], scores[3]},
                           ", got ", m.shape()));
    also(shown(rows).reshape({scores[0], 1, 1, scores[3]}));
  }
  if (causal) {
    const FactoryOptions there{.device = like.device()};
    also(ge(arange(scores[2], there).unsqueeze(1), arange(scores[3], there)));
  }
  return mask;
}

/// Applies rows [part * embed, (part + count) * embed) of the input projection. Returns [batch, n,
/// count, heads, width].
Tensor projected(const MultiheadAttention& m, const Tensor& x, std::int64_t part,
                 std::int64_t count) {
  const std::int64_t first = part * m.embed_dim, rows = count * m.embed_dim;
  const Tensor y =
      count == 3
          ? linear(x, m.in_proj_weight, m.in_proj_bias)
          : linear(x, m.in_proj_weight.narrow(0, first, rows),
                   m.in_proj_bias.defined() ? m.in_proj_bias.narrow(0, first, rows) : Tensor());
  return y.reshape({x.size(0), x.size(1), count, m.num_heads, m.embed_dim / m.num_heads});
}

struct Heads {
  Tensor q, k, v;  // [batch, heads, n, width]
};
Heads heads_of(const MultiheadAttention& m, const Tensor& query, const Tensor& key,
               const Tensor& value) {
  const auto part = [](const Tensor& t, std::int64_t i) { return t.select(2, i).transpose(1, 2); };
  const Tensor q = part(projected(m, query, 0, 1), 0);
  if (key.id() != value.id())
    return {q, part(projected(m, key, 1, 1), 0), part(projected(m, value, 2, 1), 0)};
  const Tensor kv = projected(m, key, 1, 2);
  return {q, part(kv, 0), part(kv, 1)};
}

/// The three operands of a call after checks, batch first.
struct Operands {
  Tensor query, key, value;
  bool itself;  // all three are the same tensor
  int rank;
};
Operands operands(const MultiheadAttention& m, const Tensor& query, const Tensor& key,
                  const Tensor& value) {
  const int rank = query.dim();
  check(m, "query", query, rank);
  check(m, "key", key, rank);
  check(m, "value", value, rank);
  const bool same = key.id() == value.id(), itself = same && query.id() == key.id();
  const Tensor q = batched(query, m.batch_first), k = itself ? q : batched(key, m.batch_first),
               v = same ? k : batched(value, m.batch_first);
  if (k.size(0) != q.size(0) || v.shape() != k.shape())
    throw ShapeError(str(kName, ": expected key and value of one shape and the query's batch, got ",
                         query.shape(), ", ", key.shape(), " and ", value.shape()));
  return {q, k, v, itself, rank};
}

/// Applies the output projection to [batch, n, heads, width] and returns the layout of the call.
Tensor projected_out(const MultiheadAttention& m, const Tensor& y, int rank) {
  const Tensor rows = y.reshape({y.size(0), y.size(1), m.embed_dim});
  if (rank == 2) return m.out_proj(rows.squeeze(0));
  return m.out_proj(m.batch_first ? rows : rows.transpose(0, 1));
}

}  // namespace

MultiheadAttention::MultiheadAttention(std::int64_t embed, std::int64_t heads,
                                       const MultiheadAttentionOptions& options)
    : embed_dim(embed),
      num_heads(heads),
      dropout(options.dropout),
      batch_first(options.batch_first),
      out_proj(embed < 0 ? 0 : embed, embed < 0 ? 0 : embed,
               {.bias = options.bias, .device = options.device, .dtype = options.dtype}) {
  if (embed < 1 || heads < 1 || embed % heads != 0)
    throw ArgumentError(str(kName, ": expected embed_dim >= 1 that num_heads >= 1 divides, got ",
                            embed, " and ", heads));
  if (!(dropout >= 0 && dropout <= 1))
    throw ArgumentError(str(kName, ": expected 0 <= dropout <= 1, got ", dropout));
  const FactoryOptions made{.device = options.device, .dtype = options.dtype};
  // Xavier: √(6 / (in + out)), in = embed, out = 3 embed
  const double bound = std::sqrt(6.0 / static_cast<double>(4 * embed));
  in_proj_weight = Parameter(uniform({3 * embed, embed}, -bound, bound, made));
  if (!options.bias) return;
  in_proj_bias = Parameter(zeros({3 * embed}, made));
  const NoGrad guard;
  out_proj.bias.zero_();
}

Tensor MultiheadAttention::forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                   const AttentionCall& call) const {
  const Operands o = operands(*this, query, key, value);
  const Shape scores{o.query.size(0), num_heads, o.query.size(1), o.key.size(1)};
  const bool masked = call.attn_mask.defined() || call.key_padding_mask.defined();
  const Tensor mask = joined_masks(call, masked && call.is_causal, o.query, scores);
  const double p = training ? dropout : 0;
  const bool causal = !masked && call.is_causal;
  if (o.itself)
    return projected_out(*this, packed_attention(projected(*this, o.query, 0, 3), mask, p, causal),
                         o.rank);
  const Heads h = heads_of(*this, o.query, o.key, o.value);
  return projected_out(
      *this, scaled_dot_product_attention(h.q, h.k, h.v, mask, p, causal).transpose(1, 2), o.rank);
}
BRAID_LAYER_CALL(Tensor, MultiheadAttention,
                 (const Tensor& query, const Tensor& key, const Tensor& value,
                  const AttentionCall& call),
                 (query, key, value, call))

std::pair<Tensor, Tensor> MultiheadAttention::with_weights(const Tensor& query, const Tensor& key,
                                                           const Tensor& value,
                                                           const AttentionCall& call) const {
  const Operands o = operands(*this, query, key, value);
  const Heads h = heads_of(*this, o.query, o.key, o.value);
  const Tensor mask = joined_masks(call, call.is_causal, o.query,
                                   {o.query.size(0), num_heads, o.query.size(1), o.key.size(1)});
  // scaled before the product, which may overflow float16 otherwise
  Tensor scores = matmul(h.q * (1 / std::sqrt(static_cast<double>(embed_dim / num_heads))),
                         h.k.transpose(-1, -2));
  if (mask.defined())
    scores = mask.dtype() == DType::bool_ ? where(mask, scores, number_like(scores, kNone))
                                          : scores + mask;
  const Tensor p = braid::dropout(softmax(scores), dropout, training);
  const Tensor weights = mean(p, {1});
  return {projected_out(*this, matmul(p, h.v).transpose(1, 2), o.rank),
          o.rank == 2 ? weights.squeeze(0) : weights};
}

std::string MultiheadAttention::extra() const {
  return str("embed_dim=", embed_dim, ", num_heads=", num_heads, ", dropout=", dropout,
             ", batch_first=", batch_first ? "true" : "false");
}

BRAID_FIELDS_DEFINED(MultiheadAttention, in_proj_weight, in_proj_bias, out_proj)

}  // namespace braid::nn
