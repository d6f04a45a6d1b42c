// Tests of matrix products: sizes that are not multiples of tiles, every layout of both sides,
// batches, empty tensors, errors.
#include "reference/matmul.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

/// Checks that c is within (K + 2) u (|A| |B|)ᵢⱼ of the exact product, with u of the accumulator,
/// plus the rounding of the result.
std::string evaluate(const Tensor& c, const Array& a, const Array& b) {
  if (!is_floating(c.dtype())) return exact(c, reference::matmul(a, b));
  const double k = static_cast<double>(a.shape.back()),
               u = c.dtype() == DType::float64 ? 0x1p-53 : 0x1p-24;
  const Array bound = reference::map(reference::matmul(reference::abs(a), reference::abs(b)),
                                     [=](double s) { return (k + 2) * u * s; });
  return within_bound(c, reference::matmul(a, b), bound);
}

std::string check(const Tensor& a, const Tensor& b) {
  return evaluate(matmul(a, b), array_of(a), array_of(b));
}

const std::vector<DType> kTypes{DType::int32,    DType::int64,   DType::float16,
                                DType::bfloat16, DType::float32, DType::float64};

}  // namespace

TEST_CASE("matmul: sizes that break tilings", "[matmul]") {
  const std::vector<std::int64_t> edges{1,  2,  7,  8,  9,  15,  16,  17, 31,
                                        32, 33, 63, 64, 65, 127, 128, 129};
  Numbers numbers(21);
  const auto any = [&] {
    return edges[static_cast<std::size_t>(
        numbers.integer(0, static_cast<std::int64_t>(edges.size())))];
  };
  std::vector<std::array<std::int64_t, 3>> sizes{{1, 1, 1},     {30, 5, 2},   {1, 1000, 1},
                                                 {1000, 1, 3},  {3, 1, 1000}, {2, 1025, 3},
                                                 {129, 65, 33}, {64, 64, 64}, {4, 784, 10}};
  for (const std::int64_t e : edges) {
    sizes.push_back({e, 5, 3});
    sizes.push_back({3, e, 5});
    sizes.push_back({5, 3, e});
    sizes.push_back({e, e, e < 64 ? e : 17});
  }
  for (int i = 0; i < 20; ++i) sizes.push_back({any(), any(), any()});
  for (const auto& [m, k, n] : sizes)
    for (const DType t : {DType::float32, DType::float64}) {
      INFO(t << " " << m << " x " << k << " x " << n);
      CHECK(check(random_tensor({m, k}, t, {}, 1), random_tensor({k, n}, t, {}, 2)) == "");
    }
  for (const auto& [m, k, n] :
       std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {7, 33, 17}, {65, 31, 9}, {33, 129, 15}})
    for (const DType t : {DType::int32, DType::int64, DType::float16, DType::bfloat16}) {
      INFO(t << " " << m << " x " << k << " x " << n);
      CHECK(check(random_tensor({m, k}, t, {}, 1), random_tensor({k, n}, t, {}, 2)) == "");
    }
}

TEST_CASE("matmul: every layout of both sides", "[matmul]") {
  std::size_t number = 0;
  for (const auto& [m, k, n] :
       std::vector<std::array<std::int64_t, 3>>{{5, 7, 3}, {33, 17, 40}, {1, 9, 4}, {64, 48, 1}})
    for (const DType t : kTypes) {
      const Sizes sa{m, k}, sb{k, n};
      for (const Layout& la : layouts(sa))
        for (const Layout& lb : layouts(sb)) {
          if (la.offset > 3 || lb.offset > 3 || !mine(number++)) continue;
          Numbers numbers(4);
          const auto next = [&] { return numbers.of(t); };
          const std::string problem = check(strided(sa, la.strides, la.offset, t, here(), next),
                                            strided(sb, lb.strides, lb.offset, t, here(), next));
          if (!problem.empty())
            FAIL_CHECK(t << " " << Shape(sa) << " " << la.name << " by " << Shape(sb) << " "
                         << lb.name << ": " << problem);
        }
    }
}

TEST_CASE("matmul: vectors and batches", "[matmul]") {
  const std::vector<std::pair<Sizes, Sizes>> shapes{{{9}, {9}},
                                                    {{9}, {9, 4}},
                                                    {{3, 9}, {9}},
                                                    {{2, 3, 4}, {2, 4, 5}},
                                                    {{2, 3, 4}, {4, 5}},
                                                    {{3, 4}, {2, 4, 5}},
                                                    {{2, 1, 3, 4}, {5, 4, 2}},
                                                    {{4}, {2, 3, 4, 5}},
                                                    {{2, 3, 4}, {4}},
                                                    {{1, 3, 4}, {7, 4, 2}},
                                                    {{3, 1, 2, 2}, {1, 4, 2, 2}},
                                                    {{65, 2, 3}, {65, 3, 2}}};
  for (const auto& [a, b] : shapes)
    for (const DType t : kTypes) {
      INFO(t << " " << Shape(a) << " by " << Shape(b));
      const Tensor x = random_tensor(a, t, {}, 1), y = random_tensor(b, t, {}, 2);
      CHECK(check(x, y) == "");
      if (a.size() > 2) CHECK(check(x.transpose(-1, -2).contiguous().transpose(-1, -2), y) == "");
      if (a.size() > 2) CHECK(check(x.transpose(0, 1).contiguous().transpose(0, 1), y) == "");
    }
  // Batches with stride 0.
  const Tensor x = random_tensor({1, 3, 4}).expand({5, 3, 4}), y = random_tensor({5, 4, 2});
  CHECK(check(x, y) == "");
  CHECK(check(x, y.slice(0, 0, 1).expand({5, 4, 2})) == "");
  // A long k, which a GPU takes in parts.
  for (const DType t : {DType::bfloat16, DType::float32})
    CHECK(check(random_tensor({2, 16, 3000}, t, {}, 1), random_tensor({2, 3000, 17}, t, {}, 2)) ==
          "");
}

TEST_CASE("matmul: empty ones", "[matmul]") {
  struct Case {
    Sizes a, b, shape;
  };
  const std::vector<Case> sizes{{{0, 3}, {3, 4}, {0, 4}},
                                {{2, 3}, {3, 0}, {2, 0}},
                                {{2, 0}, {0, 3}, {2, 3}},
                                {{130, 0}, {0, 140}, {130, 140}},  // more than a tile
                                {{0}, {0}, {}},
                                {{0}, {0, 2}, {2}},
                                {{0, 2, 3}, {0, 3, 2}, {0, 2, 2}},
                                {{0, 2, 3}, {3, 2}, {0, 2, 2}},
                                {{2, 2, 0}, {0, 3}, {2, 2, 3}}};
  for (const DType t : kTypes)
    for (const Case& c : sizes)
      CHECK_EXACT(matmul(on_device::zeros(Shape(c.a), {.dtype = t}),
                         on_device::zeros(Shape(c.b), {.dtype = t})),
                  Array(c.shape, 0.0));
  for (const std::int64_t rows : {2, 0}) {
    const Tensor a = zeros({rows, 2 - rows}, {.requires_grad = true}),
                 b = ones({2 - rows, 3}, {.requires_grad = true});
    matmul(a, b).sum().backward();
    CHECK(a.grad().shape() == a.shape());
    CHECK_EXACT(b.grad(), Array(sizes_of(b.shape()), 0.0));
  }
}

TEST_CASE("matmul: gradients at sizes beyond the table", "[matmul][gradients]") {
  // d(sum(W * (A B))) = (W Bᵀ, Aᵀ W).
  for (const auto& [m, k, n] :
       std::vector<std::array<std::int64_t, 3>>{{17, 9, 33}, {64, 31, 8}, {1, 65, 2}}) {
    const Tensor a = random_tensor({m, k}, DType::float64, {}, 1).requires_grad_(),
                 b = random_tensor({n, k}, DType::float64, {}, 2).requires_grad_(),
                 w = random_tensor({n, m}, DType::float64, {}, 3).t();
    const std::vector<Tensor> g = pulled(matmul(a, b.t()), {a, b}, w);
    const Array wa = reference::matmul(reference::transposed(array_of(w)), array_of(a));
    CHECK_CLOSE(g[0], reference::matmul(array_of(w), array_of(b)), tolerance(DType::float64));
    CHECK_CLOSE(g[1], wa, tolerance(DType::float64));
  }
}

TEST_CASE("matmul: the number of threads does not change a bit", "[matmul]") {
  const KeepThreads keep;
  for (const auto& [m, k, n] : std::vector<std::array<std::int64_t, 3>>{
           {65, 33, 129}, {200, 120, 90}, {3, 1000, 300}, {300, 1000, 3}})
    for (const DType t : {DType::float32, DType::float64, DType::bfloat16}) {
      // the smaller sizes show that a second run gives the same bits
      if (emulated() && m * k * n > 300000) continue;
      const Tensor a = random_tensor({m, k}, t), b = random_tensor({k, n}, t);
      set_num_threads(1);
      const Tensor one = matmul(a, b), one_t = matmul(b.t(), a.t());
      for (const int threads : thread_counts({2, 3, 5})) {
        set_num_threads(threads);
        INFO(t << " " << m << " x " << k << " x " << n << ", threads " << threads);
        CHECK_SAME_BITS(matmul(a, b), one);
        CHECK_SAME_BITS(matmul(b.t(), a.t()), one_t);
      }
    }
}

TEST_CASE("matmul: NaN and infinity go where they belong", "[matmul]") {
  for (const std::int64_t n : {3, 40, 130}) {
    Array a({n, n}, 1.0), b({n, n}, 1.0);
    a[n + 2] = kNan;       // row 1
    b[2 * n + 1] = -kInf;  // column 1
    b[0 * n + 2] = 0;
    const Tensor c = matmul(tensor_of(a), tensor_of(b));
    const Array got = array_of(c);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const double v = got[i * n + j];
        const bool ok = i == 1   ? std::isnan(v)
                        : j == 1 ? v == -kInf
                                 : v == static_cast<double>(n) - (j == 2 ? 1 : 0);
        if (!ok) FAIL_CHECK(n << ": [" << i << ", " << j << "] is " << v);
      }
  }
  // 0 * inf is NaN: zeros must not be skipped.
  CHECK(std::isnan(matmul(tensor({{0.0}}), tensor({{kInf}})).item<double>()));
}

TEST_CASE("matmul: what does not fit is refused", "[matmul][errors]") {
  CHECK_THROWS_TEXT(
      ShapeError,
      "matmul: inner dimensions differ: expected b.shape[0] == 3 (a is [2, 3]), got b [4, 5]",
      matmul(zeros({2, 3}), zeros({4, 5})));
  CHECK_THROWS_TEXT(ShapeError, "matmul: inner dimensions differ", matmul(zeros({3}), zeros({4})));
  CHECK_THROWS_TEXT(ShapeError, "matmul: inner dimensions differ",
                    matmul(zeros({7, 2, 3}), zeros({7, 4, 5})));
  CHECK_THROWS_TEXT(ShapeError, "matmul: *[2]*[3]", matmul(zeros({2, 3, 4}), zeros({3, 4, 5})));
  CHECK_THROWS_TEXT(
      DTypeError, "matmul: expected one dtype, got float16 and bfloat16",
      matmul(zeros({2, 3}, {.dtype = DType::float16}), zeros({3, 2}, {.dtype = DType::bfloat16})));
  // A product of two vectors that broadcast to a huge matrix.
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK_THROWS_AS(matmul(zeros({1, 1}).expand({huge, 1}), zeros({1, 1}).expand({1, huge})),
                  ShapeError);
}

}  // namespace braid::test::on_device
