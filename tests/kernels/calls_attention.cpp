#include <braid/core/internal/kernel_args/attention.hpp>

#include "kernels/calls.hpp"

namespace agreement {

namespace {

struct Heads {
  std::int64_t batch, heads, queries, keys, width, value_width;
  bool causal, by_row;  // by_row: for each position, the rows of all heads are adjacent
  int mask;             // 0: none, 1: bool, 2: added
  double p;
  // queries near `far` and keys near -far: every score is far below zero
  double far = 0;
  double scale = 0.5;  // from -1/2 to 1/2: the bounds are those of 1/2
  std::int64_t group = 1;
  [[nodiscard]] std::string text(const char* kernel) const {
    return braid::str(kernel, " ", batch, " x ", heads, ", ", queries, " queries, ", keys,
                      " keys, width ", width, " and ", value_width, causal ? ", causal" : "",
                      by_row ? ", by row" : "", ", mask ", mask, ", dropout ", p,
                      far > 0 ? ", far below 0" : "", ", scale ", scale, ", group ", group);
  }
  [[nodiscard]] std::int64_t key_heads() const { return heads / group; }
  [[nodiscard]] std::int64_t q() const { return batch * heads * queries * width; }
  [[nodiscard]] std::int64_t k() const { return batch * key_heads() * keys * width; }
  [[nodiscard]] Operand queries_at(std::uint64_t seed) const {
    return in(random(q(), seed, far - 1, far + 1));
  }
  [[nodiscard]] Operand keys_at(std::uint64_t seed) const {
    return in(random(k(), seed, -far - 1, 1 - far));
  }
  [[nodiscard]] std::int64_t v() const { return batch * key_heads() * keys * value_width; }
  [[nodiscard]] std::int64_t out() const { return batch * heads * queries * value_width; }
  [[nodiscard]] std::int64_t rows() const { return batch * heads * queries; }
  [[nodiscard]] Numbers mask_numbers() const {
    return mask == 0 ? Numbers{1} : mask == 2 ? random(queries * keys, 9, -1, 1) : shows();
  }
  [[nodiscard]] Numbers shows() const {
    Numbers list;
    for (std::int64_t i = 0; i < queries * keys; ++i) list.add(i / keys != 1 && i % 3 != 0);
    return list;
  }
  [[nodiscard]] braid::AttentionOperand operand(void* data, std::int64_t n, std::int64_t w,
                                                std::int64_t of) const {
    return by_row ? braid::AttentionOperand{data, n * of * w, w, of * w}
                  : braid::AttentionOperand{data, of * n * w, n * w, w};
  }
  [[nodiscard]] braid::AttentionOperand of_queries(void* data, std::int64_t w) const {
    return operand(data, queries, w, heads);
  }
  [[nodiscard]] braid::AttentionOperand of_keys(void* data, std::int64_t w) const {
    return operand(data, keys, w, key_heads());
  }
  /// Makes the arguments; `of` has the indices of q, k, v, out, lse, mask among the operands.
  [[nodiscard]] braid::AttentionArgs args(const Place& at, const std::size_t (&of)[6]) const {
    const braid::AttentionMask no_mask{}, given{at[of[5]], mask == 1, 0, 0, keys, 1};
    return {at.t,
            causal,
            scale,
            of_queries(at[of[0]], width),
            of_keys(at[of[1]], width),
            of_keys(at[of[2]], value_width),
            of_queries(at[of[3]], value_width),
            mask > 0 ? given : no_mask,
            at[of[4]],
            batch,
            heads,
            queries,
            keys,
            width,
            value_width,
            group,
            5,
            6,
            static_cast<std::uint64_t>(p * 0x1p32),
            2 * heads,
            1 / (1 - p)};
  }
  /// The relative error of a probability, in roundings: that of the score (|q|, |k| <= far + 1,
  /// scale 1/2, the mask, lse), of exp and of the sums over keys.
  [[nodiscard]] double roundings() const {
    const double w = static_cast<double>(width), largest = 0.5 * w * (far + 1) * (far + 1) + 4;
    return 2 * ((w + 4) * largest + 16 + static_cast<double>(keys));
  }
};
const std::vector<Heads> kHeads{
    {1, 1, 1, 1, 1, 1, false, false, 0, 0},
    {2, 2, 33, 31, 5, 7, false, true, 0, 0},
    {1, 2, 40, 70, 33, 16, true, false, 0, 0},
    {1, 1, 70, 9, 4, 40, true, false, 0, 0.25},
    {1, 2, 5, 65, 8, 8, false, false, 1, 0},
    {1, 1, 34, 34, 8, 8, false, true, 2, 0.5},
    {0, 2, 3, 4, 5, 5, false, false, 0, 0},
    {1, 2, 33, 70, 4, 8, false, false, 0, 0, 20},
    // beside the tiles of tensor cores: 64 queries by 64 or 32 keys, heads of 64 and 128
    {1, 2, 65, 129, 8, 16, true, true, 0, 0},
    {1, 1, 63, 65, 64, 72, false, false, 0, 0},
    {1, 1, 17, 64, 128, 8, true, false, 0, 0},
    {2, 1, 66, 33, 15, 65, true, true, 0, 0.25},
    {1, 2, 15, 127, 16, 8, false, true, 1, 0},
    // scales that do not keep the order of scores; the last one is 0 in float32
    {1, 1, 18, 70, 8, 8, true, false, 0, 0, 0, -0.5},
    {1, 1, 18, 70, 8, 8, true, false, 0, 0, 0, 0},
    {1, 1, 18, 70, 8, 8, false, false, 0, 0, 0, 1e-60},
    // query heads that share key heads; of the last but one, no query sees the last keys
    {2, 6, 33, 31, 5, 7, false, true, 0, 0, 0, 0.5, 3},
    {1, 4, 40, 70, 33, 16, true, false, 0, 0, 0, 0.5, 4},
    {2, 4, 70, 66, 8, 8, true, true, 0, 0.25, 0, 0.5, 2},
    {1, 4, 65, 33, 15, 65, false, false, 1, 0, 0, 0.5, 2},
    {1, 2, 9, 130, 8, 8, true, false, 0, 0, 0, 0.5, 2},
    {1, 3, 129, 65, 72, 80, false, true, 0, 0, 0, 0.5, 3}};
/// The calls of a dtype. On CUDA only 16-bit heads may be wider than 128.
std::vector<Heads> heads_of(DType t) {
  std::vector<Heads> list = kHeads;
  if (braid::size_of(t) == 2)
    list.insert(list.end(), {{1, 2, 18, 35, 130, 256, true, true, 0, 0},
                             {1, 1, 65, 31, 256, 16, false, false, 0, 0},
                             {1, 4, 35, 66, 136, 256, true, true, 0, 0, 0, 0.5, 2}});
  return list;
}
/// The unit roundoff of probabilities, and of gradients of scores, that a product reads.
double rounded_for_products(DType t) {
  return t == DType::float16 ? 0x1p-11 : t == DType::bfloat16 ? 0x1p-8 : 0;
}
Operand mask_of(const Heads& s) {
  return in(s.mask_numbers(), 0, s.mask == 1 ? always(DType::bool_) : nullptr);
}

/// All scores are equal and large, as whole tiles of keys on tensor cores: the results are means.
const Heads kEqual{1, 2, 17, 130, 8, 8, false, false, 0, 0};
Call equal_scores() {
  const Heads& s = kEqual;
  // 688² · 8 · log2(e) / 2 is far from a float32
  const Operand of_queries = in(Numbers(s.q(), 688)), of_keys = in(Numbers(s.k(), 688));
  Numbers v = random(s.v(), 5, -1.25, -0.75);
  for (std::int64_t i = 0; i < v.size(); ++i)
    if (i / 8 % s.keys < 64) v[i] += 2.5;
  return {"attention, equal large scores",
          {out(random(s.out(), 1)), out(random(s.rows(), 2), 0, statistics), of_queries, of_keys,
           in(v), mask_of(s)},
          [=](const Place& p) { p.table.attention(s.args(p, {2, 3, 4, 0, 1, 5}), p.stream); },
          [=](DType t, const Values& values) {
            Numbers y(values[0].size()), lse(values[1].size());
            for (std::int64_t i = 0; i < y.size(); ++i)  // |v| <= 2
              y[i] =
                  2 * (rounding(t) * static_cast<double>(s.keys + 16) + rounded_for_products(t)) +
                  last(t, values[0][i]);
            for (std::int64_t i = 0; i < lse.size(); ++i)
              lse[i] = rounding(t) * 10 * std::fabs(values[1][i]);
            return Values{y, lse};
          }};
}
}  // namespace

std::vector<Call> calls_of_attention(DType dtype) {
  std::vector<Call> list{equal_scores()};
  for (const Heads& s : heads_of(dtype))
    list.push_back(
        {s.text("attention"),
         {out(random(s.out(), 1)), out(random(s.rows(), 2), 0, statistics), s.queries_at(3),
          s.keys_at(4), in(random(s.v(), 5)), mask_of(s)},
         [=](const Place& p) { p.table.attention(s.args(p, {2, 3, 4, 0, 1, 5}), p.stream); },
         [=](DType t, const Values& v) {
           Numbers y(v[0].size()), lse(v[1].size());
           // |v| <= 2
           for (std::int64_t i = 0; i < y.size(); ++i)
             y[i] = (rounding(t) * s.roundings() + rounded_for_products(t)) * 2 / (1 - s.p) +
                    last(t, v[0][i]);
           for (std::int64_t i = 0; i < lse.size(); ++i)
             lse[i] = rounding(t) * (s.roundings() + 10 * std::fabs(v[1][i]));
           return Values{y, lse};
         }});
  return list;
}

std::vector<Call> calls_of_attention_backward(DType dtype) {
  std::vector<Call> list;
  for (const Heads& s : heads_of(dtype))
    list.push_back(
        {s.text("attention backward"),
         {out(random(s.q(), 1)), out(random(s.k(), 2)), out(random(s.v(), 3)), s.queries_at(4),
          s.keys_at(5), in(random(s.v(), 6)), in(random(s.out(), 7)),
          in(random(s.rows(), 8, 3, 4), 0, statistics), in(random(s.out(), 9)), mask_of(s)},
         [=](const Place& p) {
           p.table.attention_backward(
               {s.args(p, {3, 4, 5, 6, 7, 9}), s.of_queries(p[8], s.value_width),
                s.of_queries(p[0], s.width), s.of_keys(p[1], s.width),
                s.of_keys(p[2], s.value_width)},
               p.stream);
         },
         [=](DType t, const Values& v) {
           // p <= exp(score - lse) with lse >= 3; |dp| and |dot| <= 4 value_width.
           const double largest = std::exp(0.5 * static_cast<double>(s.width) + 1 - 3),
                        w = static_cast<double>(s.value_width), drop = 1 / (1 - s.p),
                        keys = static_cast<double>(s.keys),
                        queries = static_cast<double>(s.queries * s.group);  // of a key
           const double ds = largest * 8 * w * drop * 0.5,
                        of_p =
                            rounding(t) * (s.roundings() + w + queries) + rounded_for_products(t);
           const double sizes[] = {ds * keys, ds * queries, largest * drop * 2 * queries};
           Values bounds;
           for (std::size_t k = 0; k < 3; ++k) {
             Numbers& bound = bounds.emplace_back(v[k].size());
             for (std::int64_t i = 0; i < bound.size(); ++i)
               bound[i] = of_p * sizes[k] + last(t, v[k][i]);
           }
           return bounds;
         }});
  return list;
}

}  // namespace agreement
