// Attention of sequences of several lengths. The kernels are those of scaled_dot_product_attention,
// and read the lengths on the device. Recorded ops, which gradients of gradients and wide heads
// need, take one sequence after the other.
#include <braid/core/ops/attention.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/attention.hpp>
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/ops/join.hpp>

#include "attention.hpp"
#include "common.hpp"
#include "dropout.hpp"

namespace braid {
namespace ops {
namespace {

constexpr const char* kOp = "varlen_attn";
/// The most rows of a sequence: the kernels' numbers of rows have 32 bits, after the last one too.
constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max() - 256;

/// The starts of the sequences, int32 [sequences + 1] and contiguous, and the largest lengths.
struct Sequences {
  Tensor q, k;
  std::int64_t max_q, max_k;
  [[nodiscard]] std::int64_t count() const { return q.shape()[0] - 1; }
};

/// Views t [tokens, heads, width] as one batch [1, heads, tokens, width].
Tensor as_batch(const Tensor& t) { return t.transpose(0, 1).unsqueeze(0); }
AttentionHeads as_batches(const Tensor& q, const Tensor& k, const Tensor& v) {
  return {as_batch(q), as_batch(k), as_batch(v)};
}

AttentionArgs varlen_args(const AttentionHeads& h, const Sequences& of, const Tensor& out,
                          const Tensor& lse, const AttentionSetting& s) {
  AttentionArgs args = attention_args(h, {}, out, lse, s);
  args.sequences = {static_cast<const std::int32_t*>(of.q.id()->data()),
                    static_cast<const std::int32_t*>(of.k.id()->data()), args.queries, args.keys};
  args.batch = of.count();
  for (AttentionOperand* operand : {&args.q, &args.k, &args.v, &args.out}) operand->batch = 0;
  args.queries = of.max_q;
  args.keys = of.max_k;
  args.first_head = s.key.first_row * args.heads;
  return args;
}

/// The output [1, queries, heads, value_width], and the log-sum-exps [heads, queries].
struct Forward {
  Tensor out, lse;
};
Forward fused(const AttentionHeads& h, const Sequences& of, const AttentionSetting& s) {
  const Shape& q = h.q.shape();
  const Device device = h.q.device();
  const Forward f{make_tensor({1, q[2], q[1], h.v.shape()[3]}, h.q.dtype(), device),
                  make_tensor({q[1], q[2]}, statistics_type(h.q.dtype()), device)};
  launch(kOp, device, &KernelTable::attention, varlen_args(h, of, f.out, f.lse, s));
  return f;
}

/// Writes the gradients into `into`, [1, heads, tokens, width]. dy: [1, queries, heads, width].
void fused_backward(const AttentionHeads& h, const Sequences& of, const Forward& f,
                    const Tensor& dy, const AttentionSetting& s, const AttentionHeads& into) {
  const Tensor d = with_dense_rows(dy);
  AttentionBackwardArgs args{varlen_args(h, of, f.out, f.lse, s),
                             {},
                             attention_operand(into.q),
                             attention_operand(into.k),
                             attention_operand(into.v)};
  args.dout = {d.id()->data(), 0, d.strides()[2], d.strides()[1]};
  for (AttentionOperand* operand : {&args.dq, &args.dk, &args.dv}) operand->batch = 0;
  launch(kOp, h.q.device(), &KernelTable::attention_backward, args);
}

/// The first rows of the sequences, and the number of all rows at the end. Waits for the device.
/// Those of a CUDA device are made to fit, as its kernels do.
std::vector<std::int64_t> read_starts(const Tensor& t, std::int64_t rows) {
  std::vector<std::int64_t> list = t.to_vector<std::int64_t>();
  std::int64_t before = 0;
  for (std::int64_t& start : list) before = start = std::max(before, std::min(start, rows));
  return list;
}

/// Calls f(rows of queries, rows of keys, setting) for each sequence, and for the rows between them
/// that are in no sequence. These have neither queries nor keys that see each other.
struct Range {
  std::int64_t first, size;
};
template <class F>
void for_each_sequence(const AttentionHeads& h, const Sequences& of, const AttentionSetting& s,
                       F f) {
  const std::int64_t queries = h.q.shape()[2], keys = h.k.shape()[2];
  const std::vector<std::int64_t> q = read_starts(of.q, queries), k = read_starts(of.k, keys);
  std::int64_t q_end = 0, k_end = 0;
  const auto call = [&](const Range& of_queries, const Range& of_keys) {
    AttentionSetting one = s;
    one.past = of_keys.size - of_queries.size;
    one.most_keys = std::max<std::int64_t>(of.max_k, 1);
    one.key.first_row = s.key.first_row + of_queries.first;
    f(of_queries, of_keys, one);
  };
  const auto skip_to = [&](std::int64_t next_q, std::int64_t next_k) {
    if (next_q > q_end) call({q_end, next_q - q_end}, {k_end, 0});
    if (next_k > k_end) call({next_q, 0}, {k_end, next_k - k_end});
  };
  for (std::size_t b = 0; b + 1 < q.size(); ++b) {
    skip_to(q[b], k[b]);
    const std::int64_t q_size = std::min(q[b + 1] - q[b], of.max_q),
                       k_size = std::min(k[b + 1] - k[b], of.max_k);
    if (q_size > 0 || k_size > 0) call({q[b], q_size}, {k[b], k_size});
    q_end = q[b] + q_size;
    k_end = k[b] + k_size;
  }
  skip_to(queries, keys);
}
AttentionHeads part_of(const AttentionHeads& h, const Range& queries, const Range& keys) {
  return {h.q.narrow(2, queries.first, queries.size), h.k.narrow(2, keys.first, keys.size),
          h.v.narrow(2, keys.first, keys.size)};
}

/// The output [1, queries, heads, value_width], by ops for each sequence.
Tensor composed(const AttentionHeads& h, const Sequences& of, const AttentionSetting& s) {
  std::vector<Tensor> list;
  for_each_sequence(h, of, s, [&](const Range& q, const Range& k, const AttentionSetting& one) {
    if (q.size > 0) list.push_back(composed_attention(part_of(h, q, k), {}, one).transpose(1, 2));
  });
  if (list.empty())
    return filled({1, h.q.shape()[2], h.q.shape()[1], h.v.shape()[3]}, 0, h.q.dtype(),
                  h.q.device());
  return cat(list, 1);
}
/// The gradients of q, k and v, [1, heads, tokens, width]. dy: [1, queries, heads, value_width].
AttentionHeads composed_backward(const AttentionHeads& h, const Sequences& of, const Tensor& dy,
                                 const AttentionSetting& s) {
  std::vector<Tensor> dq, dk, dv;
  for_each_sequence(h, of, s, [&](const Range& q, const Range& k, const AttentionSetting& one) {
    const AttentionHeads d = composed_attention_backward(
        part_of(h, q, k), {}, dy.narrow(1, q.first, q.size).transpose(1, 2), one);
    dq.push_back(d.q);
    dk.push_back(d.k);
    dv.push_back(d.v);
  });
  const auto joined = [](const std::vector<Tensor>& list, const Tensor& like) {
    return list.empty() ? filled(like.shape(), 0, like.dtype(), like.device()) : cat(list, 2);
  };
  return {joined(dq, h.q), joined(dk, h.k), joined(dv, h.v)};
}

/// q, k and v: [1, heads, tokens, width]. Returns [1, queries, heads, value_width].
Tensor attend(const AttentionHeads& given, const Sequences& of, const AttentionSetting& s) {
  const AttentionHeads h{with_dense_rows(given.q), with_dense_rows(given.k),
                         with_dense_rows(given.v)};
  const bool fuses = fits_kernels(h) && h.q.numel() > 0 && h.k.numel() > 0 && h.v.numel() > 0;
  Forward f;
  if (fuses) {
    f = fused(h, of, s);
  } else {
    const NoGrad guard;
    f.out = composed(h, of, s);
  }
  if (!needs_grad({h.q, h.k, h.v})) return f.out;
  return record(
      kOp, {h.q, h.k, h.v}, f.out,
      [sq = SavedTensor(h.q), sk = SavedTensor(h.k), sv = SavedTensor(h.v),
       so = SavedTensor::output(f.out), q_starts = SavedTensor(of.q), k_starts = SavedTensor(of.k),
       lse = f.lse, max_q = of.max_q, max_k = of.max_k, fuses, s](const Tensor& dy) -> Grads {
        const AttentionHeads saved{sq.get(), sk.get(), sv.get()};
        const Sequences sequences{q_starts.get(), k_starts.get(), max_q, max_k};
        if (!fuses || needs_grad({saved.q, saved.k, saved.v, dy})) {
          const AttentionHeads d = composed_backward(saved, sequences, dy, s);
          return {d.q, d.k, d.v};
        }
        // in memory [tokens, heads, width], as the operands usually are
        const auto like = [](const Tensor& t) {
          return make_tensor({1, t.shape()[2], t.shape()[1], t.shape()[3]}, t.dtype(), t.device())
              .transpose(1, 2);
        };
        const AttentionHeads d{like(saved.q), like(saved.k), like(saved.v)};
        fused_backward(saved, sequences, {so.get(), lse}, dy, s, d);
        return {d.q, d.k, d.v};
      });
}

void check_shapes(const Tensor& q, const Tensor& k, const Tensor& v, bool grouped) {
  if (q.dim() != 3 || k.dim() != 3 || v.dim() != 3)
    throw ShapeError(str(kOp, ": expected query, key and value [tokens, heads, width], got ",
                         q.shape(), ", ", k.shape(), " and ", v.shape()));
  const Shape &a = q.shape(), &b = k.shape(), &c = v.shape();
  if (b[2] != a[2])
    throw ShapeError(str(kOp, ": expected key [.., ", a[2], "] for query ", a, ", got ", b));
  if (c[0] != b[0])
    throw ShapeError(
        str(kOp, ": expected value [", b[0], ", heads, width] for key ", b, ", got ", c));
  if (!grouped && (b[1] != a[1] || c[1] != a[1]))
    throw ShapeError(str(kOp, ": expected key and value with the ", a[1],
                         " heads of query without enable_gqa, got ", b, " and ", c));
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (a[0] > most || b[0] > most)
    throw ShapeError(str(kOp, ": expected at most 2^31 - 1 tokens, got query ", a, " and key ", b));
}

/// Throws unless t [sequences + 1] is int32 and on the device of x, and unless `max` allows all
/// `rows` to be in a sequence; on the CPU also unless its numbers fit.
void check_starts(const char* name, const Tensor& t, const Tensor& x, const char* max_name,
                  std::int64_t max) {
  const std::int64_t rows = x.shape()[0];
  if (t.dtype() != DType::int32)
    throw DTypeError(str(kOp, ": expected ", name, " of int32, got ", t.dtype()));
  check_device(kOp, x, t);
  if (t.dim() != 1 || t.shape()[0] < 1)
    throw ShapeError(str(kOp, ": expected ", name, " [sequences + 1], got ", t.shape()));
  const std::int64_t sequences = t.shape()[0] - 1;
  if (max < 0 || max > kMostRows ||
      (sequences == 0 ? rows > 0 : rows > 0 && max < (rows - 1) / sequences + 1))
    throw ArgumentError(str(kOp, ": expected a ", max_name, " with which ", sequences,
                            " sequences can have the ", rows, " rows of ", x.shape(), ", got ",
                            max));
  if (x.device().type() != DeviceType::cpu) return;
  const auto* start = static_cast<const std::int32_t*>(t.id()->data());
  const std::int64_t step = t.strides()[0];
  for (std::int64_t b = 0; b < sequences; ++b) {
    const std::int64_t first = start[b * step], end = start[(b + 1) * step];
    if (end < first || end - first > max)
      throw ArgumentError(str(kOp, ": expected ", name, " that rises by 0 to ", max_name, " = ",
                              max, ", got ", first, " and ", end, " at ", b));
  }
  if (start[0] != 0 || start[sequences * step] != rows)
    throw ArgumentError(str(kOp, ": expected ", name, " from 0 to ", rows, ", got one from ",
                            start[0], " to ", start[sequences * step]));
}

}  // namespace
}  // namespace ops

Tensor varlen_attn(const Tensor& query, const Tensor& key, const Tensor& value,
                   const Tensor& cu_seq_q, const Tensor& cu_seq_k, std::int64_t max_q,
                   std::int64_t max_k, const VarlenAttnOptions& options) {
  using namespace ops;
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return varlen_attn(low(query), low(key), low(value), cu_seq_q, cu_seq_k, max_q, max_k, options);
  }
  check_floating(kOp, query);
  for (const Tensor* t : {&key, &value}) {
    check_device(kOp, query, *t);
    check_dtype(kOp, query, *t);
  }
  for (const Tensor* t : {&query, &key, &value}) check_repeated(kOp, *t);
  check_shapes(query, key, value, options.enable_gqa);
  check_starts("cu_seq_q", cu_seq_q, query, "max_q", max_q);
  check_starts("cu_seq_k", cu_seq_k, key, "max_k", max_k);
  if (cu_seq_k.shape() != cu_seq_q.shape())
    throw ShapeError(
        str(kOp, ": expected cu_seq_k ", cu_seq_q.shape(), " as cu_seq_q, got ", cu_seq_k.shape()));
  check_probability(kOp, "dropout_p", options.dropout_p);
  check_attention_scale(kOp, options.scale);
  AttentionHeads h = as_batches(query, key, value);
  if (options.enable_gqa) {
    check_head_groups(kOp, h.q, h.k, h.v);
    const std::int64_t heads = std::lcm(h.k.size(1), h.v.size(1));
    h.k = with_heads(h.k, heads);
    h.v = with_heads(h.v, heads);
  }
  AttentionSetting s{
      options.is_causal, attention_scale(options.scale, query.shape()[2]), options.dropout_p, {}};
  if (s.dropout_p > 0) s.key = next_random_key_of_rows(query.shape()[0]);
  const Sequences of{cu_seq_q.contiguous(), cu_seq_k.contiguous(),
                     std::min(max_q, query.shape()[0]), max_k};
  return attend(h, of, s).squeeze(0);
}

}  // namespace braid
