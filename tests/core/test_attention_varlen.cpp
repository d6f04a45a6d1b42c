// Attention of sequences of several lengths: the bits of one call for each sequence.
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

using Lengths = std::vector<std::int64_t>;

std::int64_t sum_of(const Lengths& lengths) {
  std::int64_t sum = 0;
  for (const std::int64_t n : lengths) sum += n;
  return sum;
}
std::int64_t longest(const Lengths& lengths) {
  std::int64_t most = 0;
  for (const std::int64_t n : lengths) most = std::max(most, n);
  return most;
}
Tolerance four_times(DType t) { return {4 * tolerance(t).rtol, 4 * tolerance(t).atol}; }
Tensor int32s(const Whole& list) { return tensor(list).to(DType::int32).to(here()); }
Tensor starts_of(const Lengths& lengths) {
  Whole list{0};
  for (const std::int64_t n : lengths) list.push_back(list.back() + n);
  return int32s(list);
}

struct Sequences {
  Lengths q, k;
  std::int64_t heads = 2, key_heads = 2, width = 8, value_width = 8;
  [[nodiscard]] std::vector<Tensor> operands(DType t) const {
    return {random_tensor({sum_of(q), heads, width}, t, here(), 1).requires_grad_(),
            random_tensor({sum_of(k), key_heads, width}, t, here(), 2).requires_grad_(),
            random_tensor({sum_of(k), key_heads, value_width}, t, here(), 3).requires_grad_()};
  }
  [[nodiscard]] Tensor attend(const std::vector<Tensor>& x, bool causal, double p = 0) const {
    const RandomScope forward(9, {0, 0, 3, x[0].size(0)});
    return varlen_attn(x[0], x[1], x[2], starts_of(q), starts_of(k), longest(q), longest(k),
                       {.is_causal = causal, .dropout_p = p, .enable_gqa = key_heads != heads});
  }
  /// The same by a call for each sequence. Causal is a mask where the lengths differ.
  [[nodiscard]] Tensor one_by_one(const std::vector<Tensor>& x, bool causal) const {
    std::vector<Tensor> list;
    std::int64_t q_at = 0, k_at = 0;
    for (std::size_t b = 0; b < q.size(); ++b) {
      const auto part = [](T t, std::int64_t first, std::int64_t n) {
        return t.narrow(0, first, n).transpose(0, 1);
      };
      Tensor mask;
      if (causal && q[b] != k[b])
        mask = ge(arange(k[b] - q[b], k[b], 1, {.device = here()}).unsqueeze(1),
                  arange(k[b], {.device = here()}));
      list.push_back(scaled_dot_product_attention(part(x[0], q_at, q[b]), part(x[1], k_at, k[b]),
                                                  part(x[2], k_at, k[b]), mask, 0,
                                                  causal && !mask.defined(), {}, key_heads != heads)
                         .transpose(0, 1));
      q_at += q[b];
      k_at += k[b];
    }
    return cat(list);
  }
};

const std::vector<Sequences>& examples() {
  // tiles have 32 or 64 rows on CUDA
  const std::int64_t two_tiles = cut(127, 65), three_tiles = cut(129, 66), ragged = cut(70, 34);
  static const std::vector<Sequences> list{
      {{3, 0, 1, 5}, {3, 0, 1, 5}},
      {{64, 1, 0, 65, 63}, {64, 1, 0, 65, 63}},
      {{0, two_tiles, 2, 0}, {0, two_tiles, 2, 0}, 2, 1, 16, 24},
      {{5, 0, 3, 66, 0, 2}, {7, 4, 0, 31, 0, 65}, 4, 2, 5, 7},
      {{1, 63, ragged}, {three_tiles, 64, 3}, 3, 1, 17, 8},
      {{35, 66}, {66, 33}, 2, 2, 72, 130}};
  return list;
}

}  // namespace

TEST_CASE("varlen_attn: results and gradients are those of a call for each sequence",
          "[attention][varlen]") {
  const KeepThreads keep;
  // Under emulation an example has one dtype, not causal and causal, and the first example all. A
  // width above 128 has no kernel of float32 and float64.
  constexpr DType emulated_dtypes[][2] = {{DType::float16, DType::float32},
                                          {DType::float64, DType::bfloat16},
                                          {DType::float32, DType::float16},
                                          {DType::bfloat16, DType::float64},
                                          {DType::float16, DType::float32}};
  REQUIRE(std::size(emulated_dtypes) + 1 == examples().size());
  for (const DType t : floating_dtypes())
    for (std::size_t e = 0; e < examples().size(); ++e)
      for (const bool causal : {false, true}) {
        if (emulated() && e > 0 && emulated_dtypes[e - 1][causal ? 1 : 0] != t) continue;
        const Sequences& s = examples()[e];
        INFO(t << ", query heads " << s.heads << ", width " << s.width << ", " << s.q.size()
               << " sequences, " << sum_of(s.q) << " queries" << (causal ? ", causal" : ""));
        const std::vector<Tensor> x = s.operands(t);
        set_num_threads(thread_counts({1, 3}).back());
        const Tensor y = s.attend(x, causal), want = s.one_by_one(x, causal);
        // a mask scales the scores before the maximum is known
        const bool same = !(causal && s.q != s.k);
        if (same) CHECK_SAME_BITS(y.detach(), want.detach());
        else CHECK_CLOSE(y.detach(), want.detach(), tolerance(t));
        const Tensor dy = random_tensor(sizes_of(y.shape()), t, here(), 4);
        const std::vector<Tensor> g = pulled(y, x, dy), of_each = pulled(want, x, dy);
        set_num_threads(1);
        const std::vector<Tensor> again = pulled(s.attend(x, causal), x, dy);
        for (std::size_t i = 0; i < 3; ++i) {
          INFO("gradient " << i);
          CHECK_SAME_BITS(again[i], g[i]);
          if (same) CHECK_SAME_BITS(g[i] + 0.0, of_each[i] + 0.0);  // narrow adds zeros to -0
          else CHECK_CLOSE(g[i], of_each[i], four_times(t));
        }
      }
}

TEST_CASE("varlen_attn: the gradients of kernels are those of recorded ops, with dropout too",
          "[attention][varlen][gradients]") {
  for (std::size_t e = 0; e < examples().size(); ++e)
    for (const bool causal : {false, true})
      for (const double p : {0.0, 0.25}) {
        const Sequences& s = examples()[e];
        // Under emulation an example has dropout, or is causal, or both; the first has all. The
        // widest has no kernel of float64.
        const std::size_t kind = (causal ? 1 : 0) + (p > 0 ? 2 : 0);
        if (emulated() && e > 0 && (kind != e % 3 + 1 || s.value_width > 128)) continue;
        const std::vector<Tensor> x = s.operands(DType::float64);
        const Tensor dy =
            random_tensor({sum_of(s.q), s.heads, s.value_width}, DType::float64, here(), 4);
        const std::vector<Tensor> g = pulled(s.attend(x, causal, p), x, dy, false),
                                  recorded = pulled(s.attend(x, causal, p), x, dy, true);
        for (std::size_t i = 0; i < 3; ++i) {
          INFO("width " << s.width << ", dropout " << p << ", gradient " << i);
          CHECK(allclose(g[i], recorded[i].detach(), 1e-11, 1e-12));
        }
      }
}

TEST_CASE("varlen_attn: gradients of gradients are those of a call for each sequence",
          "[attention][varlen][gradients]") {
  const Sequences s{{3, 0, 4}, {5, 2, 4}, 4, 2, 3, 2};
  const std::vector<Tensor> x = s.operands(DType::float64);
  const Tensor dy = random_tensor({7, 4, 2}, DType::float64, here(), 4).requires_grad_();
  const auto second = [&](T y) {
    Tensor sum;
    for (const Tensor& g : pulled(y, x, dy, true))
      sum = sum.defined() ? sum + square(g).sum() : square(g).sum();
    return grad(sum, {x[0], x[1], x[2], dy});
  };
  const std::vector<Tensor> got = second(s.attend(x, false)), want = second(s.one_by_one(x, false));
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("gradient " << i);
    CHECK(allclose(got[i], want[i], 1e-11, 1e-12));
  }
}

TEST_CASE("varlen_attn: what a neighbour holds does not matter", "[attention][varlen]") {
  const Sequences s{{33, 65, 1, 40}, {33, 70, 2, 40}, 2, 1, 16, 8};
  for (const DType t : floating_dtypes())
    for (const bool causal : {false, true}) {
      if (emulated() && (t == DType::float16 || t == DType::float64 || !causal)) continue;
      const auto with = [&](double number) {
        std::vector<Tensor> x = s.operands(t);
        Tensor dy = random_tensor({sum_of(s.q), 2, 8}, t, here(), 4);
        {
          const NoGrad guard;
          x[0].narrow(0, 33, 65).fill_(number);
          x[1].narrow(0, 33, 70).fill_(number);
          x[2].narrow(0, 33, 70).fill_(number);
          dy.narrow(0, 33, 65).fill_(number);
        }
        std::vector<Tensor> list = pulled(s.attend(x, causal), x, dy);
        list.push_back(s.attend(x, causal).detach());
        return list;
      };
      const std::vector<Tensor> finite = with(1), bad = with(kNan);
      for (std::size_t i = 0; i < finite.size(); ++i) {
        const std::int64_t of = i == 1 || i == 2 ? 70 : 65, rows = finite[i].size(0);
        INFO(t << ", result " << i);
        CHECK_SAME_BITS(bad[i].narrow(0, 0, 33), finite[i].narrow(0, 0, 33));
        CHECK_SAME_BITS(bad[i].narrow(0, 33 + of, rows - 33 - of),
                        finite[i].narrow(0, 33 + of, rows - 33 - of));
        CHECK(std::isnan(list(bad[i].select(0, 33))[0]));
      }
    }
}

TEST_CASE("varlen_attn: many short sequences, and none", "[attention][varlen]") {
  Sequences s;
  s.heads = s.key_heads = 1;
  for (std::int64_t b = 0; b < 600; ++b) s.q.push_back(b % 3), s.k.push_back(b % 2);
  s.width = s.value_width = 4;
  for (const DType t : {DType::float32, DType::bfloat16}) {
    if (emulated() && t == DType::bfloat16) continue;  // the kernel that fits starts has no dtype
    const std::vector<Tensor> x = s.operands(t);
    const Tensor y = s.attend(x, true);
    CHECK_CLOSE(y.detach(), s.one_by_one(x, true).detach(), tolerance(t));
  }
  const Tensor none = ones({0, 2, 4}, {.device = here()}).requires_grad_(),
               some = ones({3, 2, 4}, {.device = here()}).requires_grad_();
  const auto with = [](T a, T b, const Whole& q, const Whole& k) {
    const Tensor y = varlen_attn(a, b, b, int32s(q), int32s(k), a.size(0), b.size(0));
    y.sum().backward();
    CHECK(list(y) == List(static_cast<std::size_t>(y.numel()), 0));
    for (const Tensor& t : {a, b})
      CHECK(list(t.grad()) == List(static_cast<std::size_t>(t.numel()), 0));
  };
  with(none, none, {0}, {0});
  with(none, none, {0, 0}, {0, 0});
  with(some, none, {0, 1, 3}, {0, 0, 0});
  with(none, some, {0, 0, 0}, {0, 1, 3});
}

TEST_CASE("varlen_attn: max_k may be more than there are rows", "[attention][varlen]") {
  // with the largest max_k, 33 sequences of 2 heads would be above 2^31 tiles of 64 keys on CUDA
  const Sequences s{Lengths(33, 3), Lengths(33, 2)};
  for (const DType t : {DType::bfloat16, DType::float32}) {
    Tensor first;
    for (const std::int64_t max_k : {std::int64_t{2}, (std::int64_t{1} << 31) - 257}) {
      std::vector<Tensor> x = s.operands(t);
      const Tensor y = varlen_attn(x[0], x[1], x[2], starts_of(s.q), starts_of(s.k), 3, max_k);
      y.sum().backward();
      const Tensor all = cat({y.detach().flatten(), x[0].grad().flatten(), x[1].grad().flatten(),
                              x[2].grad().flatten()});
      if (first.defined()) CHECK_SAME_BITS(all, first);
      first = all;
    }
  }
}

TEST_CASE("varlen_attn: takes operands in any layout", "[attention][varlen]") {
  const Sequences s{{5, 3}, {5, 3}};
  const std::vector<Tensor> x = s.operands(DType::float32);
  std::vector<Tensor> other;
  for (const Tensor& t : x)
    other.push_back(t.detach().permute({2, 1, 0}).contiguous().permute({2, 1, 0}));
  CHECK_SAME_BITS(s.attend(other, true), s.attend(x, true).detach());
  const Tensor qkv = random_tensor({8, 3, 2, 8}, DType::float32, here(), 5);
  const std::vector<Tensor> packed{qkv.select(1, 0), qkv.select(1, 1), qkv.select(1, 2)};
  CHECK_SAME_BITS(s.attend(packed, true), s.one_by_one(packed, true));
  const Tensor wide = stack({starts_of(s.q), starts_of(s.q)}, 1);
  CHECK_SAME_BITS(
      varlen_attn(x[0], x[1], x[2], wide.select(1, 0), wide.select(1, 1), 5, 5).detach(),
      s.attend(x, false).detach());
}

TEST_CASE("varlen_attn: lengths that do not fit are refused on the CPU and left out on CUDA",
          "[attention][varlen]") {
  struct Wrong {
    Whole q, k;
    std::int64_t max_q, max_k;
    Lengths q_rows, k_rows;  // of the sequences that CUDA makes of them
    std::int64_t q_first = 0, k_first = 0;
  };
  constexpr std::int64_t tokens = 70;
  const std::vector<Wrong> list{
      {{0, 66, 70}, {0, 66, 70}, 64, 66, {64, -2, 4}, {66, 4}},
      {{0, 66, 70}, {0, 66, 70}, 66, 40, {66, 4}, {40, -26, 4}},
      {{0, 80, 10, 70}, {0, 80, 10, 70}, 70, 70, {70, 0, 0}, {70, 0, 0}},
      {{0, 30, 10, 70}, {0, 30, 10, 70}, 70, 70, {30, 0, 40}, {30, 0, 40}},
      {{-5, 30, 60}, {-2000000000, 30, 2000000000}, 70, 70, {30, 30, -10}, {30, 40}},
      {{3, 33, 70}, {0, 33, 68}, 70, 70, {-3, 30, 37}, {33, 35, -2}}};
  std::size_t number = 0;
  for (const DType t : {DType::float32, DType::bfloat16})
    for (const Wrong& w : list) {
      // Under emulation: of float32 the even ones, of bfloat16 the odd ones.
      if (emulated() && number++ % 2 != (t == DType::float32 ? 0 : 1)) continue;
      std::vector<Tensor> x{random_tensor({tokens, 2, 8}, t, here(), 1).requires_grad_(),
                            random_tensor({tokens, 2, 8}, t, here(), 2).requires_grad_(),
                            random_tensor({tokens, 2, 8}, t, here(), 3).requires_grad_()};
      const auto call = [&] {
        return varlen_attn(x[0], x[1], x[2], int32s(w.q), int32s(w.k), w.max_q, w.max_k);
      };
      if (here().type() == DeviceType::cpu) {
        CHECK_THROWS_AS(call(), ArgumentError);
        continue;
      }
      // the rows of each sequence, and, as a length below 0, those of none
      const auto split_up = [&](const Lengths& rows) {
        std::vector<std::pair<std::int64_t, std::int64_t>> of;
        std::int64_t at = 0;
        for (const std::int64_t n : rows) {
          if (n >= 0) of.emplace_back(at, n);
          at += std::abs(n);
        }
        CHECK(at == tokens);
        return of;
      };
      const auto q = split_up(w.q_rows), k = split_up(w.k_rows);
      const Tensor y = call(), dy = random_tensor({tokens, 2, 8}, t, here(), 4);
      const std::vector<Tensor> g = pulled(y, x, dy), again = pulled(call(), x, dy, true);
      std::vector<Tensor> want{zeros_like(y.detach()), zeros_like(x[0]).detach(),
                               zeros_like(x[1]).detach(), zeros_like(x[2]).detach()};
      REQUIRE(q.size() == k.size());
      for (std::size_t b = 0; b < q.size(); ++b) {
        std::vector<Tensor> part{x[0].narrow(0, q[b].first, q[b].second),
                                 x[1].narrow(0, k[b].first, k[b].second),
                                 x[2].narrow(0, k[b].first, k[b].second)};
        const Tensor of = scaled_dot_product_attention(
            part[0].transpose(0, 1), part[1].transpose(0, 1), part[2].transpose(0, 1));
        want[0].narrow(0, q[b].first, q[b].second).copy_(of.transpose(0, 1).detach());
        const std::vector<Tensor> d =
            pulled(of.transpose(0, 1), part, dy.narrow(0, q[b].first, q[b].second));
        for (std::size_t i = 0; i < 3; ++i)
          want[i + 1].narrow(0, i == 0 ? q[b].first : k[b].first, part[i].size(0)).copy_(d[i]);
      }
      CHECK_SAME_BITS(y.detach(), want[0]);
      for (std::size_t i = 0; i < 3; ++i) {
        INFO(t << ", starts " << starts_of(w.q) << ", gradient " << i);
        CHECK_SAME_BITS(g[i], want[i + 1]);
        CHECK_CLOSE(again[i].detach(), want[i + 1], four_times(t));
      }
    }
}

}  // namespace braid::test::on_device
