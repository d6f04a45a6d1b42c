// Scaled dot-product attention: checks and layouts. KernelTable::attention and attention_backward
// do the arithmetic, or recorded ops where the kernels do not support the operands.
#include <braid/core/ops/attention.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/attention.hpp>
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/matmul.hpp>
#include <braid/core/ops/rearrange.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "attention.hpp"
#include "common.hpp"
#include "dropout.hpp"
#include "map.hpp"
#include "random_streams.hpp"

namespace braid {
namespace ops {
namespace {

/// The largest width that the CUDA kernels of a dtype support: their threads keep the rows in
/// registers.
std::int64_t widest_on_cuda(DType dtype) { return size_of(dtype) == 2 ? 256 : 128; }

using Setting = AttentionSetting;
using Heads = AttentionHeads;

}  // namespace

AttentionOperand attention_operand(const Tensor& t) {
  return {t.id()->data(), t.strides()[0], t.strides()[1], t.strides()[2]};
}
Tensor with_dense_rows(const Tensor& t) {
  return t.strides()[3] == 1 || t.shape()[3] <= 1 ? t : t.contiguous();
}

AttentionArgs attention_args(const Heads& h, const Tensor& mask, const Tensor& out,
                             const Tensor& lse, const Setting& s) {
  AttentionArgs args{};
  args.dtype = h.q.dtype();
  args.causal = s.causal;
  args.scale = s.scale;
  args.q = attention_operand(h.q);
  args.k = attention_operand(h.k);
  args.v = attention_operand(h.v);
  args.out = {out.id()->data(), out.strides()[0], out.strides()[2], out.strides()[1]};
  if (mask.defined())
    args.mask = {mask.id()->data(), mask.dtype() == DType::bool_,
                 mask.strides()[0], mask.strides()[1],
                 mask.strides()[2], mask.strides()[3]};
  args.lse = lse.id()->data();
  args.batch = h.q.shape()[0];
  args.heads = h.q.shape()[1];
  args.queries = h.q.shape()[2];
  args.keys = h.k.shape()[2];
  args.width = h.q.shape()[3];
  args.value_width = h.v.shape()[3];
  args.group = h.query_heads() / h.key_heads();
  args.seed = s.key.seed;
  args.stream = s.key.stream;
  args.threshold = s.dropout_p > 0 ? drop_threshold(s.dropout_p) : 0;
  args.first_head = s.key.dim == 1 ? s.key.first_row : s.key.first_row * args.heads;
  args.drop_scale = drop_scale(s.dropout_p);
  args.shift = shift_of("attention", s.key);
  return args;
}

namespace {

/// Divides the query heads of t [batch, query heads, rows, width] into groups of one key head each:
/// [batch, key heads, group * rows, width]. So one product has all rows that use a key head.
Tensor in_groups(const Tensor& t, const Heads& h) {
  if (h.query_heads() == h.key_heads()) return t;
  const Shape& s = t.shape();
  return t.reshape({s[0], h.key_heads(), s[1] / h.key_heads() * s[2], s[3]});
}
/// The inverse.
Tensor apart(const Tensor& t, const Heads& h) {
  if (h.query_heads() == h.key_heads()) return t;
  return t.reshape({t.shape()[0], h.query_heads(), h.q.shape()[2], t.shape()[3]});
}

/// Computes the probabilities before dropout with recorded ops. They are 0 for a query whose keys
/// are all masked.
Tensor probabilities(const Heads& h, const Tensor& mask, const Setting& s) {
  const auto number = [&](double x) { return filled({}, x, h.q.dtype(), h.q.device()); };
  const double none = -std::numeric_limits<double>::infinity();
  Tensor scores = apart(matmul(in_groups(h.q, h), h.k.transpose(-1, -2)), h) * s.scale;
  if (s.causal) {
    const FactoryOptions there{.device = h.q.device()};
    const Tensor last = arange(s.past, h.q.shape()[2] + s.past, 1, there).unsqueeze(1);
    scores = where(ge(last, arange(h.k.shape()[2], there)), scores, number(none));
  }
  if (mask.defined())
    scores = mask.dtype() == DType::bool_ ? where(mask, scores, number(none)) : scores + mask;
  if (!s.causal && !mask.defined()) return softmax(scores);
  if (scores.numel() == 0) return scores;
  const Tensor unseeing = eq(amax(scores.detach(), {-1}, true), none);
  return where(unseeing, number(0), softmax(where(unseeing, number(0), scores)));
}

/// Drops probabilities [batch, heads, queries, keys], or their gradients.
Tensor dropped(const Tensor& p, const Setting& s) {
  if (s.dropout_p == 0) return p;
  if (s.most_keys == 0) return dropout_by(p, s.dropout_p, s.key);
  const Tensor ones = filled({p.shape()[2], p.shape()[1], s.most_keys}, 1, p.dtype(), p.device());
  return p * dropout_by(ones, s.dropout_p, s.key).narrow(2, 0, p.shape()[3]).transpose(0, 1);
}

Tensor with_dtype(const Tensor& t, DType dtype) {
  return t.defined() && is_floating(t.dtype()) ? t.to(dtype) : t;
}
Heads with_dtype(const Heads& h, DType dtype) {
  return {h.q.to(dtype), h.k.to(dtype), h.v.to(dtype)};
}

}  // namespace

// 16-bit operands are computed in float32: q k^T may overflow float16 before it is scaled.

Tensor composed_attention(const Heads& given, const Tensor& mask, const Setting& s) {
  return rounded_once(given.q.dtype(), [&](DType wide) {
    const Heads h = with_dtype(given, wide);
    const Tensor p = dropped(probabilities(h, with_dtype(mask, wide), s), s);
    return apart(matmul(in_groups(p, h), h.v), h);
  });
}

Heads composed_attention_backward(const Heads& given, const Tensor& mask, const Tensor& dy,
                                  const Setting& s) {
  const DType wide = statistics_type(given.q.dtype());
  const Heads h = with_dtype(given, wide);
  const Tensor p = probabilities(h, with_dtype(mask, wide), s);
  const Tensor dys = in_groups(dy.to(wide), h), dp = apart(matmul(dys, h.v.transpose(-1, -2)), h),
               ds = in_groups(softmax_backward(p, dropped(dp, s), false) * s.scale, h);
  const Heads d{apart(matmul(ds, h.k), h), matmul(ds.transpose(-1, -2), in_groups(h.q, h)),
                matmul(in_groups(dropped(p, s), h).transpose(-1, -2), dys)};
  return with_dtype(d, given.q.dtype());
}

bool fits_kernels(const Heads& h) {
  return h.q.device().type() == DeviceType::cpu ||
         std::max(h.q.shape()[3], h.v.shape()[3]) <= widest_on_cuda(h.q.dtype());
}

namespace {

/// Writes the gradients of q, k and v into the tensors of `into`, in the layout of operands.
/// dy and out: [batch, queries, heads, width].
void fused_backward(const Heads& h, const Tensor& mask, const Tensor& out, const Tensor& lse,
                    const Tensor& dy, const Setting& s, const Heads& into) {
  const Tensor d = dy.strides()[3] == 1 || dy.shape()[3] <= 1 ? dy : dy.contiguous();
  AttentionBackwardArgs args{attention_args(h, mask, out, lse, s),
                             {},
                             attention_operand(into.q),
                             attention_operand(into.k),
                             attention_operand(into.v)};
  args.dout = {d.id()->data(), d.strides()[0], d.strides()[2], d.strides()[1]};
  launch("scaled_dot_product_attention", h.q.device(), &KernelTable::attention_backward, args);
}

/// The output, and the log-sum-exp of each row of scores. Requires that no operand is empty.
struct Forward {
  Tensor out, lse;
};
Forward fused(const Heads& h, const Tensor& mask, const Setting& s) {
  const Shape& q = h.q.shape();
  const DType t = statistics_type(h.q.dtype());
  const Forward f{make_tensor({q[0], q[2], q[1], h.v.shape()[3]}, h.q.dtype(), h.q.device()),
                  make_tensor({q[0], q[1], q[2]}, t, h.q.device())};
  launch("scaled_dot_product_attention", h.q.device(), &KernelTable::attention,
         attention_args(h, mask, f.out, f.lse, s));
  return f;
}

/// Returns true if the kernels support these operands. All others use recorded ops.
bool can_fuse(const Heads& h, const Tensor& mask) {
  if (h.q.numel() == 0 || h.k.numel() == 0 || h.v.numel() == 0) return false;
  if (needs_grad({mask})) return false;
  return fits_kernels(h);
}

/// Broadcasts the leading dims of t to `lead`, and returns [batch, heads, rows, width] for the
/// kernels: a view if possible. Heads are along the last dim of `lead`; a single one is the batch,
/// unless `grouped`.
Tensor as_heads(const Tensor& t, const Shape& lead, bool grouped) {
  Shape shape = lead;
  shape.push_back(t.shape()[t.dim() - 2]);
  shape.push_back(t.shape()[t.dim() - 1]);
  const Tensor wide = t.shape() == shape ? t : t.expand(shape);
  if (lead.rank() == 2) return wide;
  const int batch_dims = lead.rank() - (grouped || lead.rank() > 1 ? 1 : 0);
  std::int64_t batch = 1;
  for (int d = 0; d < batch_dims; ++d) batch *= lead[d];
  return wide.reshape({batch, batch_dims < lead.rank() ? lead.back() : 1, shape[lead.rank()],
                       shape[lead.rank() + 1]});
}

/// The dims of t but the last `n`.
Shape lead_of(const Tensor& t, int n = 2) {
  Shape s;
  for (int d = 0; d + n < t.dim(); ++d) s.push_back(t.shape()[d]);
  return s;
}

/// The leading dims of an attention: those of q and the result, and those of k and v.
struct Leads {
  Shape q, k;
};
Leads leads_of(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, bool grouped) {
  const int n = grouped ? 3 : 2;
  const Shape batch =
      broadcast_shapes(op, broadcast_shapes(op, lead_of(q, n), lead_of(k, n)), lead_of(v, n));
  Leads leads{batch, batch};
  if (grouped) {
    leads.q.push_back(q.size(-3));
    leads.k.push_back(std::lcm(k.size(-3), v.size(-3)));
  }
  return leads;
}

}  // namespace

void check_head_groups(const char* op, const Tensor& q, const Tensor& k, const Tensor& v) {
  if (q.dim() < 3 || k.dim() < 3 || v.dim() < 3)
    throw ShapeError(str(op, ": expected q, k and v of rank >= 3 with enable_gqa, got ", q.shape(),
                         ", ", k.shape(), " and ", v.shape()));
  const std::int64_t heads = q.size(-3);
  for (const Tensor* t : {&k, &v})
    if (const std::int64_t n = t->size(-3); n > 0 ? heads % n != 0 : heads != 0)
      throw ShapeError(str(op, ": expected heads of k and v that divide the ", heads,
                           " heads of q, got k ", k.shape(), " and v ", v.shape()));
}

Tensor with_heads(const Tensor& t, std::int64_t heads) {
  return t.size(-3) == heads ? t : repeat_interleave(t, heads / t.size(-3), -3);
}

namespace {

void check_mask(const char* op, const Tensor& q, const Tensor& mask, bool causal,
                const Shape& scores) {
  if (!mask.defined()) return;
  check_device(op, q, mask);
  if (causal)
    throw ArgumentError(
        str(op, ": expected no mask beside is_causal, got one of shape ", mask.shape()));
  if (mask.dtype() != DType::bool_ && mask.dtype() != q.dtype())
    throw DTypeError(str(op, ": expected a mask of bool or ", q.dtype(), ", got ", mask.dtype()));
  bool fits = mask.dim() <= scores.rank();
  for (int d = 1; fits && d <= mask.dim(); ++d) {
    const std::int64_t n = mask.shape()[mask.dim() - d];
    fits = n == 1 || n == scores[scores.rank() - d];
  }
  if (!fits)
    throw ShapeError(
        str(op, ": expected a mask that broadcasts to ", scores, ", got ", mask.shape()));
}

}  // namespace

void check_attention_scale(const char* op, std::optional<double> scale) {
  if (scale && !std::isfinite(*scale))
    throw ArgumentError(str(op, ": expected a finite scale, got ", *scale));
}
double attention_scale(std::optional<double> scale, std::int64_t width) {
  return scale.value_or(width > 0 ? 1 / std::sqrt(static_cast<double>(width)) : 1);
}

namespace {

Tensor attention_of_heads(const Heads& h, const Tensor& mask, const Setting& s) {
  if (!can_fuse(h, mask)) return composed_attention(h, mask, s);
  const Heads dense{with_dense_rows(h.q), with_dense_rows(h.k), with_dense_rows(h.v)};
  const Forward f = fused(dense, mask, s);
  if (!needs_grad({dense.q, dense.k, dense.v})) return f.out.transpose(1, 2);
  const auto backward = [sq = SavedTensor(dense.q), sk = SavedTensor(dense.k),
                         sv = SavedTensor(dense.v), so = SavedTensor::output(f.out),
                         mask = SavedTensor(mask), lse = f.lse,
                         s](const Tensor& dy, Needs) -> Grads {
    const Heads saved{sq.get(), sk.get(), sv.get()};
    if (needs_grad({saved.q, saved.k, saved.v, dy})) {
      const Heads d = composed_attention_backward(saved, mask.get(), dy.transpose(1, 2), s);
      return {d.q, d.k, d.v};
    }
    // in memory [batch, rows, heads, width]: so the projection that computed t gets its gradient
    // contiguous
    const auto like = [](const Tensor& t) {
      return make_tensor({t.shape()[0], t.shape()[2], t.shape()[1], t.shape()[3]}, t.dtype(),
                         t.device())
          .transpose(1, 2);
    };
    const Heads d{like(saved.q), like(saved.k), like(saved.v)};
    fused_backward(saved, mask.get(), so.get(), lse, dy, s, d);
    return {d.q, d.k, d.v};
  };
  return record("scaled_dot_product_attention", {dense.q, dense.k, dense.v}, f.out, backward)
      .transpose(1, 2);
}

/// Returns q, k and v as recorded views of qkv [batch, n, 3, heads, width].
Heads unpacked(const Tensor& qkv) {
  return {qkv.select(2, 0).transpose(1, 2), qkv.select(2, 1).transpose(1, 2),
          qkv.select(2, 2).transpose(1, 2)};
}
Heads unpacked_values(const Tensor& qkv) {
  const NoGrad guard;
  return unpacked(qkv);
}

}  // namespace
}  // namespace ops

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const Tensor& mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  using namespace ops;
  const char* op = "scaled_dot_product_attention";
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return scaled_dot_product_attention(low(q), low(k), low(v), low(mask), dropout_p, is_causal,
                                        scale, enable_gqa);
  }
  check_floating(op, q);
  for (const Tensor* t : {&k, &v}) {
    check_device(op, q, *t);
    check_dtype(op, q, *t);
    check_repeated(op, *t);
  }
  if (q.dim() < 2 || k.dim() < 2 || v.dim() < 2)
    throw ShapeError(str(op, ": expected q, k and v of rank >= 2, got ", q.shape(), ", ", k.shape(),
                         " and ", v.shape()));
  if (k.shape().back() != q.shape().back())
    throw ShapeError(str(op, ": expected k [.., ", q.shape().back(), "] for q ", q.shape(),
                         ", got ", k.shape()));
  if (v.shape()[v.dim() - 2] != k.shape()[k.dim() - 2])
    throw ShapeError(str(op, ": expected v [.., ", k.shape()[k.dim() - 2], ", width] for k ",
                         k.shape(), ", got ", v.shape()));
  if (enable_gqa) check_head_groups(op, q, k, v);
  const Leads leads = leads_of(op, q, k, v, enable_gqa);
  const std::int64_t queries = q.shape()[q.dim() - 2], keys = k.shape()[k.dim() - 2],
                     width = q.shape().back();
  Shape scores = leads.q;
  scores.push_back(queries);
  scores.push_back(keys);
  check_mask(op, q, mask, is_causal, scores);
  check_probability(op, "dropout_p", dropout_p);
  check_attention_scale(op, scale);
  const auto of_keys = [&](const Tensor& t) {
    return as_heads(enable_gqa ? with_heads(t, leads.k.back()) : t, leads.k, enable_gqa);
  };
  const Heads h{as_heads(q, leads.q, enable_gqa), of_keys(k), of_keys(v)};
  Tensor wide_mask = mask;
  if (mask.defined()) wide_mask = as_heads(mask.expand(scores), leads.q, enable_gqa);
  Setting s{is_causal, attention_scale(scale, width), dropout_p, {}};
  if (dropout_p > 0) {
    const int dim = enable_gqa && leads.q.rank() == 1 ? 1 : 0;  // that of dim 0 in h.q
    s.key = next_random_key_of_rows(h.q.shape()[dim]);
    s.key.dim = dim;
  }
  const Tensor out = attention_of_heads(h, wide_mask, s);
  if (leads.q.rank() == 2) return out;
  scores[scores.rank() - 1] = v.shape().back();
  return own_result(out.reshape(scores));
}

Tensor packed_attention(const Tensor& packed, const Tensor& mask, double dropout_p, bool is_causal,
                        std::optional<double> scale) {
  using namespace ops;
  const char* op = "packed_attention";
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return packed_attention(low(packed), low(mask), dropout_p, is_causal, scale);
  }
  check_floating(op, packed);
  if (packed.dim() != 5 || packed.shape()[2] != 3)
    throw ShapeError(str(op, ": expected qkv [batch, n, 3, heads, width], got ", packed.shape()));
  const Shape scores{packed.shape()[0], packed.shape()[3], packed.shape()[1], packed.shape()[1]};
  check_mask(op, packed, mask, is_causal, scores);
  check_probability(op, "dropout_p", dropout_p);
  check_attention_scale(op, scale);
  const Tensor qkv =
      packed.strides()[4] == 1 || packed.shape()[4] <= 1 ? packed : packed.contiguous();
  Setting s{is_causal, attention_scale(scale, qkv.shape()[4]), dropout_p, {}};
  if (dropout_p > 0) s.key = next_random_key_of_rows(scores[0]);
  const Tensor wide = mask.defined() ? mask.expand(scores) : mask;
  const Heads h = unpacked_values(qkv);
  if (!can_fuse(h, wide))
    return composed_attention(unpacked(qkv), wide, s).transpose(1, 2).contiguous();
  const Forward f = fused(h, wide, s);
  if (!needs_grad({qkv})) return f.out;
  return record(
      op, {qkv}, f.out,
      [saved = SavedTensor(qkv), so = SavedTensor::output(f.out), mask = SavedTensor(wide),
       lse = f.lse, s](const Tensor& dy) -> Grads {
        const Tensor x = saved.get();
        if (needs_grad({x, dy})) {
          const Heads d =
              composed_attention_backward(unpacked(x), mask.get(), dy.transpose(1, 2), s);
          return {stack({d.q.transpose(1, 2), d.k.transpose(1, 2), d.v.transpose(1, 2)}, 2)};
        }
        Tensor dx = make_tensor(x.shape(), x.dtype(), x.device());
        fused_backward(unpacked_values(x), mask.get(), so.get(), lse, dy, s, unpacked_values(dx));
        return {dx};
      });
}

}  // namespace braid
