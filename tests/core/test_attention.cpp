// Attention beyond the table of ops: sizes that are not multiples of tiles, layouts, masks, and the
// agreement of both forms of the backward pass.
#include "reference/norm.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Array reference_of(const Tensor& q, const Tensor& k, const Tensor& v, const Array* mask,
                   bool causal) {
  return reference::attention(array_of(q), array_of(k), array_of(v), mask, causal,
                              1 / std::sqrt(static_cast<double>(q.size(-1))));
}

/// Computes the gradients of q, k, v: by the kernel or, with create_graph, by recorded ops.
std::vector<Tensor> gradients(const std::vector<Tensor>& qkv, const Tensor& mask, bool causal,
                              double p, bool create_graph) {
  const RandomScope forward(9, {0, 0, 2, qkv[0].size(0)});
  const Tensor y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask, p, causal);
  return pulled(y, qkv, random_tensor(sizes_of(y.shape()), y.dtype(), here(), 8), create_graph);
}

/// Attention with enable_gqa.
Tensor in_groups(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {},
                 double p = 0, bool causal = false) {
  return scaled_dot_product_attention(q, k, v, mask, p, causal, {}, true);
}

}  // namespace

TEST_CASE("attention: agrees with the reference where tiles break, in every type", "[attention]") {
  const KeepThreads keep;
  struct Sizes4 {
    std::int64_t queries, keys, width, value_width;
  };
  const std::vector<Sizes4> sizes{{1, 1, 1, 1},     {64, 64, 16, 16},  {65, 33, 17, 5},
                                  {63, 129, 8, 33}, {130, 70, 32, 32}, {33, 31, 70, 129}};
  for (const DType t : floating_dtypes())
    for (const Sizes4& s : sizes)
      for (const bool causal : {false, true}) {
        if (emulated() && (s.queries > 100 || s.width > 64) && t != DType::float32) continue;
        const Tensor q = random_tensor({2, 1, s.queries, s.width}, t, here(), 1),
                     k = random_tensor({2, 1, s.keys, s.width}, t, here(), 2),
                     v = random_tensor({2, 1, s.keys, s.value_width}, t, here(), 3);
        INFO(t << ", " << s.queries << " queries, " << s.keys << " keys, width " << s.width << ", "
               << s.value_width << (causal ? ", causal" : ""));
        set_num_threads(1);
        const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0, causal);
        CHECK_CLOSE(y, reference_of(q, k, v, nullptr, causal), tolerance(t));
        set_num_threads(thread_counts({1, 3}).back());
        CHECK_SAME_BITS(scaled_dot_product_attention(q, k, v, {}, 0, causal), y);
      }
}

TEST_CASE("attention: sums of integers are exact where all keys weigh the same", "[attention]") {
  constexpr std::int64_t queries = 65, keys = 128;
  const auto integer = [](std::int64_t i) { return static_cast<double>(i * 7919 % 5 - 2); };
  for (const DType t : floating_dtypes())
    for (const std::int64_t width : {17, 64}) {
      INFO(t << ", width " << width);
      // integers and parts of 128 of them, which have few bits: nothing is rounded
      const auto of_integers = [&](std::int64_t rows) {
        return arange(rows * width)
            .mul(7919)
            .remainder(5)
            .sub(2)
            .to(t)
            .to(here())
            .reshape({1, 1, rows, width});
      };
      const Tensor q = zeros({1, 1, queries, width}, {.device = here(), .dtype = t}),
                   k = random_tensor({1, 1, keys, width}, t, here(), 2), v = of_integers(keys),
                   dy = of_integers(queries);
      v.requires_grad_(true);
      const Tensor y = scaled_dot_product_attention(q, k, v), dv = pulled(y, {v}, dy, false)[0];
      const Array got = array_of(y), gradient = array_of(dv);
      for (std::int64_t c = 0; c < width; ++c) {
        double sum = 0, of_dy = 0;
        for (std::int64_t j = 0; j < keys; ++j) sum += integer(j * width + c);
        for (std::int64_t j = 0; j < queries; ++j) of_dy += integer(j * width + c);
        std::int64_t wrong = 0;
        for (std::int64_t j = 0; j < queries; ++j)
          wrong += got.data[static_cast<std::size_t>(j * width + c)] != sum / keys;
        // the backward computes the weights again, as exp(-log(128)): 1 / 128 once it is rounded
        for (std::int64_t j = 0; j < keys && size_of(t) == 2; ++j)
          wrong += gradient.data[static_cast<std::size_t>(j * width + c)] != of_dy / keys;
        CHECK(wrong == 0);
      }
    }
}

TEST_CASE("attention: the fused gradients are those of recorded ops", "[attention][gradients]") {
  struct Case {
    Sizes q, k, v;
    bool causal, masked;
    double p;
  };
  const std::vector<Case> sizes{{{1, 2, 70, 12}, {1, 2, 70, 12}, {1, 2, 70, 12}, true, false, 0},
                                {{2, 1, 65, 8}, {2, 1, 130, 8}, {2, 1, 130, 5}, false, false, 0},
                                {{2, 3, 40, 17}, {2, 3, 9, 17}, {2, 3, 9, 17}, true, false, 0.25},
                                {{1, 2, 9, 8}, {1, 2, 66, 8}, {1, 2, 66, 8}, false, true, 0.5},
                                {{2, 5, 4}, {2, 70, 4}, {2, 70, 3}, true, false, 0}};
  for (const Case& c : sizes)
    for (const DType t : {DType::float32, DType::float64}) {
      std::vector<Tensor> qkv{random_tensor(c.q, t, here(), 1), random_tensor(c.k, t, here(), 2),
                              random_tensor(c.v, t, here(), 3)};
      for (const Tensor& x : qkv) x.requires_grad_();
      Tensor mask;
      if (c.masked)
        mask =
            gt(random_tensor({c.q[c.q.size() - 2], c.k[c.k.size() - 2]}, DType::float32, here(), 6),
               0.0);
      const std::vector<Tensor> fused = gradients(qkv, mask, c.causal, c.p, false),
                                composed = gradients(qkv, mask, c.causal, c.p, true);
      for (std::size_t i = 0; i < 3; ++i) {
        INFO("q " << qkv[0].shape() << " k " << qkv[1].shape() << " " << t << ", gradient " << i);
        CHECK(allclose(fused[i], composed[i].detach(), t == DType::float64 ? 1e-11 : 1e-4,
                       t == DType::float64 ? 1e-12 : 5e-6));
      }
    }
}

TEST_CASE(
    "attention: operands in any layout, broadcast batches, ranks 2 to 5, masks of every shape",
    "[attention]") {
  const Tensor q = random_tensor({2, 3, 5, 4}, DType::float32, here(), 1),
               k = random_tensor({2, 3, 7, 4}, DType::float32, here(), 2),
               v = random_tensor({2, 3, 7, 6}, DType::float32, here(), 3);
  const auto attend = [](T a, T b, T c, T mask = {}) {
    return scaled_dot_product_attention(a, b, c, mask);
  };
  const Tensor want = attend(q, k, v);
  // no tensor is contiguous
  const auto other = [](T t) { return t.permute({3, 1, 2, 0}).contiguous().permute({3, 1, 2, 0}); };
  // the rows of all heads are adjacent
  const auto by_row = [](T t) { return t.transpose(1, 2).contiguous().transpose(1, 2); };
  CHECK_SAME_BITS(attend(other(q), other(k), other(v)), want);
  CHECK_SAME_BITS(attend(by_row(q), k, by_row(v)), want);
  CHECK_SAME_BITS(attend(q[1][2], k[1][2], v[1][2]), want[1][2]);
  CHECK_SAME_BITS(attend(q[1], k[1], v[1]), want[1]);
  CHECK_SAME_BITS(attend(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)), want.unsqueeze(0));
  CHECK_SAME_BITS(attend(q, k[0][0], v.narrow(0, 1, 1)),
                  attend(q, k[0][0].expand({2, 3, 7, 4}).contiguous(),
                         v.narrow(0, 1, 1).expand({2, 3, 7, 6}).contiguous()));
  for (const Shape& shape :
       {Shape{7}, Shape{5, 1}, Shape{5, 7}, Shape{3, 1, 7}, Shape{2, 1, 1, 7}, Shape{2, 3, 5, 7}}) {
    const Tensor number = random_tensor(sizes_of(shape), DType::float32, here(), 4),
                 sees = gt(number, -0.5), hides = where(sees, zeros({}), full({}, -kInf));
    INFO(shape);
    CHECK_SAME_BITS(attend(q, k, v, sees), attend(q, k, v, hides));
    CHECK_SAME_BITS(attend(q, k, v, number),
                    attend(q, k, v, number.expand({2, 3, 5, 7}).contiguous()));
  }
}

TEST_CASE("attention: a query that sees nothing gives 0 and no gradient; NaN is not hidden",
          "[attention]") {
  const Tensor q = random_tensor({1, 3, 4}, DType::float32, here(), 1).requires_grad_(),
               k = random_tensor({1, 70, 4}, DType::float32, here(), 2).requires_grad_(),
               v = random_tensor({1, 70, 4}, DType::float32, here(), 3).requires_grad_();
  Array sees({3, 70}, 1);
  for (std::int64_t j = 0; j < 70; ++j) sees[70 + j] = 0;
  for (const bool create_graph : {false, true}) {
    const Tensor y = scaled_dot_product_attention(q, k, v, tensor_of(sees, DType::bool_, here()));
    CHECK(y[0][1].to_vector<double>() == List(4, 0));
    const std::vector<Tensor> g = grad(y.sum(), {q, k, v}, false, create_graph);
    CHECK(g[0][0][1].to_vector<double>() == List(4, 0));
    for (const Tensor& t : g)
      for (const double x : list(t)) CHECK(std::isfinite(x));
  }
  const Tensor bad = q.detach().clone();
  bad[0][2].fill_(kNan);
  const List y = list(scaled_dot_product_attention(bad, k.detach(), v.detach()));
  for (std::size_t i = 0; i < 12; ++i) CHECK(std::isnan(y[i]) == (i >= 8));
}

TEST_CASE("attention: 16-bit scores are not rounded where recorded ops compute them",
          "[attention]") {
  const auto make = [](double x) { return full({1, 1, 8, 64}, x, {.dtype = DType::float16}); };
  // 64 * 32 * 32 is more than float16 holds
  const Tensor q = make(32).requires_grad_(), k = make(32), v = make(3),
               mask = zeros({8, 8}, {.dtype = DType::float16}).requires_grad_();
  const Tensor y = scaled_dot_product_attention(q, k, v, mask);
  CHECK(y.dtype() == DType::float16);
  for (const double each : list(y)) CHECK(each == 3);
  y.sum().backward();
  for (const double each : list(q.grad())) CHECK(each == 0);
  for (const double each : list(mask.grad())) CHECK(each == 0);
  const Tensor g = grad(scaled_dot_product_attention(q, k, v).sum(), {q}, false, true)[0];
  for (const double each : list(g)) CHECK(each == 0);
}

TEST_CASE("attention: without keys or queries", "[attention]") {
  const Tensor q = ones({2, 3, 4}).requires_grad_(), none = ones({2, 0, 4}).requires_grad_();
  CHECK(scaled_dot_product_attention(none, q, q).shape() == Shape{2, 0, 4});
  const Tensor y = scaled_dot_product_attention(q, none, none);
  CHECK(y.detach().to_vector<double>() == List(24, 0));
  y.sum().backward();
  CHECK(q.grad().to_vector<double>() == List(24, 0));
}

TEST_CASE("attention: 16-bit gradients of wide heads", "[attention][gradients]") {
  struct Case {
    std::int64_t queries, keys, width, value_width;
    bool causal;
  };
  for (const Case& c : {Case{65, 63, 128, 128, false}, Case{17, 33, 136, 129, true},
                        Case{66, 97, 256, 256, false}, Case{1, 15, 256, 200, false}})
    for (const DType t : {DType::float16, DType::bfloat16}) {
      INFO(t << ", width " << c.width << ", " << c.queries << " queries");
      std::vector<Tensor> half{random_tensor({1, 2, c.queries, c.width}, t, here(), 1),
                               random_tensor({1, 2, c.keys, c.width}, t, here(), 2),
                               random_tensor({1, 2, c.keys, c.value_width}, t, here(), 3)},
          exact;
      for (const Tensor& x : half) exact.push_back(x.to(DType::float64).requires_grad_());
      for (const Tensor& x : half) x.requires_grad_();
      const std::vector<Tensor> got = gradients(half, {}, c.causal, 0, false),
                                want = gradients(exact, {}, c.causal, 0, true);
      for (std::size_t i = 0; i < 3; ++i) {
        const double
            largest = want[i].detach().abs().amax().item<double>(),
            error =
                (got[i].detach().to(DType::float64) - want[i].detach()).abs().amax().item<double>();
        INFO("gradient " << i << ": " << error / largest);
        CHECK(error <= (t == DType::float16 ? 0x1p-9 : 0x1p-6) * largest);
      }
    }
}

TEST_CASE("attention: groups of heads give the bits of repeated keys", "[attention][gqa]") {
  struct Case {
    std::int64_t heads, k_heads, v_heads, queries, keys, width;
    bool causal;
    double p;
    Shape mask;
  };
  const std::vector<Case> cases{{6, 2, 2, 33, 31, 5, false, 0, {}},
                                {4, 1, 1, 70, 66, 8, true, 0, {}},
                                {4, 4, 4, 5, 7, 3, false, 0.5, {}},
                                {4, 2, 2, 66, 35, 8, true, 0.25, {}},
                                {6, 3, 3, 9, 65, 16, false, 0.5, {2, 6, 9, 65}},
                                {4, 2, 2, 5, 7, 4, false, 0, {4, 1, 7}},
                                {4, 2, 2, 5, 7, 4, false, 0, {2, 1, 5, 1}},
                                {8, 1, 4, 5, 7, 4, false, 0.25, {}},
                                {12, 6, 4, 5, 7, 4, true, 0, {}},
                                {4, 2, 2, 5, 7, 264, false, 0.25, {}}};
  std::size_t number = 0;
  for (const DType t : floating_dtypes())
    for (const Case& c : cases) {
      if (!mine(number++)) continue;
      // gradients of k and v are sums over the heads of a group, here in another order
      const Tolerance near{4 * tolerance(t).rtol, 4 * tolerance(t).atol};
      const auto laid_out = [&](std::int64_t heads, std::int64_t rows, std::uint64_t seed) {
        // the rows of all heads are adjacent, as one product of [batch, rows, width] gives them
        return random_tensor({2, rows, heads, c.width}, t, here(), seed)
            .transpose(1, 2)
            .requires_grad_();
      };
      const Tensor q = laid_out(c.heads, c.queries, 1), k = laid_out(c.k_heads, c.keys, 2),
                   v = laid_out(c.v_heads, c.keys, 3),
                   mask =
                       c.mask.rank() > 0 ? random_tensor(sizes_of(c.mask), t, here(), 4) : Tensor(),
                   wide_k = repeat_interleave(k, c.heads / c.k_heads, -3),
                   wide_v = repeat_interleave(v, c.heads / c.v_heads, -3);
      const auto run = [&](bool groups) {
        const RandomScope forward(9, {0, 0, 2, 2});
        return groups ? in_groups(q, k, v, mask, c.p, c.causal)
                      : scaled_dot_product_attention(q, wide_k, wide_v, mask, c.p, c.causal);
      };
      const auto run_one = [&](bool groups) {  // without a batch: the heads are along dim 0
        const RandomScope forward(9, {0, 0, 3, c.heads});
        return groups ? in_groups(q[1], k[1], v[1], {}, c.p, c.causal)
                      : scaled_dot_product_attention(q[1], wide_k[1], wide_v[1], {}, c.p, c.causal);
      };
      INFO(t << ", q " << q.shape() << ", k " << k.shape() << ", v " << v.shape());
      const Tensor y = run(true), want = run(false);
      // a width above those of the kernels on CUDA: products of other shapes
      const bool fused = here().type() == DeviceType::cpu || c.width <= 128;
      if (fused) {
        CHECK_SAME_BITS(y.detach(), want.detach());
        CHECK_SAME_BITS(run_one(true).detach(), run_one(false).detach());
      } else {
        CHECK_CLOSE(y.detach(), want.detach(), tolerance(t));
        CHECK_CLOSE(run_one(true).detach(), run_one(false).detach(), tolerance(t));
      }
      const Tensor dy = random_tensor(sizes_of(y.shape()), t, here(), 5);
      const std::vector<Tensor> g = pulled(y, {q, k, v}, dy, false),
                                of_wide = pulled(want, {q, k, v}, dy, false);
      if (fused) CHECK_SAME_BITS(g[0], of_wide[0]);
      for (std::size_t i = 0; i < 3; ++i) {
        INFO("gradient " << i);
        CHECK_CLOSE(g[i], of_wide[i], near);
      }
      if (t != DType::float64) continue;
      const std::vector<Tensor> recorded = pulled(run(true), {q, k, v}, dy, true);
      for (std::size_t i = 0; i < 3; ++i) CHECK_CLOSE(recorded[i].detach(), g[i], near);
    }
}

TEST_CASE("attention: groups of heads broadcast batches, and gradients of gradients agree",
          "[attention][gqa][gradients]") {
  const Tensor q = random_tensor({2, 1, 4, 5, 3}, DType::float64, here(), 1).requires_grad_(),
               k = random_tensor({3, 2, 7, 3}, DType::float64, here(), 2).requires_grad_(),
               v = random_tensor({1, 2, 7, 2}, DType::float64, here(), 3).requires_grad_();
  const auto wide = [](T t) { return repeat_interleave(t, 2, -3); };
  const Tensor y = in_groups(q, k, v), want = scaled_dot_product_attention(q, wide(k), wide(v));
  CHECK(y.shape() == Shape{2, 3, 4, 5, 2});
  CHECK_SAME_BITS(y.detach(), want.detach());
  CHECK_SAME_BITS(in_groups(q[0], k, v).detach(), y[0].detach());
  CHECK_SAME_BITS(in_groups(q[0][0], k[1], v[0]).detach(), y[0][1].detach());
  const Tensor dy = random_tensor({2, 3, 4, 5, 2}, DType::float64, here(), 4).requires_grad_();
  const auto second = [&](T of) {
    Tensor sum;
    for (const Tensor& g : pulled(of, {q, k, v}, dy, true))
      sum = sum.defined() ? sum + square(g).sum() : square(g).sum();
    return grad(sum, {q, k, v, dy});
  };
  const std::vector<Tensor> got = second(y), expected = second(want);
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("gradient " << i);
    CHECK(allclose(got[i], expected[i], 1e-11, 1e-12));
  }
}

TEST_CASE("attention: groups of heads without elements", "[attention][gqa]") {
  const auto of = [](std::int64_t batch, std::int64_t heads, std::int64_t rows) {
    return ones({batch, heads, rows, 3}, {.device = here()}).requires_grad_();
  };
  const auto shape = [&](T q, T k) {
    const Tensor y = in_groups(q, k, k);
    y.sum().backward();
    for (const Tensor& t : {q, k}) {
      CHECK(t.grad().shape() == t.shape());
      CHECK(list(t.grad()) == List(static_cast<std::size_t>(t.numel()), 0));
    }
    CHECK(list(y) == List(static_cast<std::size_t>(y.numel()), 0));
    return y.shape();
  };
  CHECK(shape(of(0, 4, 5), of(0, 2, 7)) == Shape{0, 4, 5, 3});
  CHECK(shape(of(2, 0, 5), of(2, 2, 7)) == Shape{2, 0, 5, 3});
  CHECK(shape(of(2, 0, 5), of(2, 0, 7)) == Shape{2, 0, 5, 3});
  CHECK(shape(of(2, 4, 0), of(2, 2, 7)) == Shape{2, 4, 0, 3});
  CHECK(shape(of(2, 4, 5), of(2, 2, 0)) == Shape{2, 4, 5, 3});
}

TEST_CASE("attention: packed is the same as apart, gradients too", "[attention]") {
  const Tensor qkv = random_tensor({2, 9, 3, 2, 5}, DType::float64, here(), 1).requires_grad_(),
               dy = random_tensor({2, 9, 2, 5}, DType::float64, here(), 2);
  const auto packed = [](T x) { return packed_attention(x, {}, 0, true); };
  const auto apart = [](T x) {
    const auto part = [&](std::int64_t i) { return x.select(2, i).transpose(1, 2); };
    return scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, true).transpose(1, 2);
  };
  CHECK_SAME_BITS(packed(qkv).detach(), apart(qkv).detach());
  for (const bool create_graph : {false, true})
    CHECK(allclose(pulled(packed(qkv), {qkv}, dy, create_graph)[0].detach(),
                   pulled(apart(qkv), {qkv}, dy, create_graph)[0].detach(), 1e-12, 1e-13));
  // The product that computes qkv may have the sequence as its first dim.
  const Tensor first = qkv.detach().transpose(0, 1).contiguous().transpose(0, 1);
  CHECK_SAME_BITS(packed(first), packed(qkv).detach());
}

}  // namespace braid::test::on_device
