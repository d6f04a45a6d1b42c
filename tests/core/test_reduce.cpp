// Tests of reductions: sizes, every set of dims, the error bound of sums, fixed order, empty
// tensors, NaN, errors.
#include <algorithm>

#include "reference/reduce.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

/// Checks that y is within (⌈log2 n⌉ + 2) u Σ|x| of the exact sum, plus the rounding of the result.
std::string check_sum(const Tensor& y, const Array& a, const Sizes& dims, bool keepdim,
                      bool take_mean) {
  const Array want =
      take_mean ? reference::mean(a, dims, keepdim) : reference::sum(a, dims, keepdim);
  if (!is_floating(y.dtype())) return exact(y, want);
  const Array sums = reference::sum(reference::abs(a), dims, keepdim);
  const double n = sums.size() > 0 ? static_cast<double>(a.size() / sums.size()) : 1;
  const double u = y.dtype() == DType::float64 ? 0x1p-53 : 0x1p-24;
  const double factor =
      (std::ceil(std::log2(std::max(n, 1.0))) + 2 + static_cast<double>(take_mean)) * u /
      (take_mean ? std::max(n, 1.0) : 1);
  return within_bound(y, want, reference::map(sums, [=](double s) { return s * factor; }));
}

/// Returns all nonempty subsets of the dims.
std::vector<Sizes> subsets(int rank) {
  std::vector<Sizes> list;
  for (int mask = 1; mask < 1 << rank; ++mask) {
    Sizes dims;
    for (int d = 0; d < rank; ++d)
      if ((mask >> d & 1) != 0) dims.push_back(d % 2 == 0 ? d : d - rank);
    list.push_back(dims);
  }
  return list;
}

}  // namespace

TEST_CASE("reduce: every set of dims of every layout", "[reduce]") {
  const Sizes shape{3, 4, 2, 5};
  for (const DType t :
       {DType::bool_, DType::int64, DType::bfloat16, DType::float32, DType::float64})
    for (const Layout& layout : layouts(shape)) {
      if (layout.offset > 3) continue;
      Numbers numbers(2);
      const Tensor x =
          strided(shape, layout.strides, layout.offset, t, here(), [&] { return numbers.of(t); });
      const Array a = array_of(x);
      for (const Sizes& dims : subsets(4)) {
        const std::string problem =
            check_sum(sum(x, Shape(dims)), a, dims, false, false) +
            check_sum(sum(x, Shape(dims), true), a, dims, true, false) +
            (is_floating(t) ? check_sum(mean(x, Shape(dims)), a, dims, false, true) : "") +
            (t != DType::bool_
                 ? exact(amax(x, Shape(dims)), reference::max(a, dims)) +
                       exact(amin(x, Shape(dims), true), reference::min(a, dims, true))
                 : "");
        if (!problem.empty())
          FAIL_CHECK(t << " " << layout.name << " over " << Shape(dims) << ": " << problem);
      }
    }
}

TEST_CASE(
    "reduce: sizes that break vector loops, over rows, columns and all, on any number of threads",
    "[reduce]") {
  const KeepThreads keep;
  for (const std::int64_t n :
       std::vector<std::int64_t>{1,  2,  7,  8,  9,   15,  16,  17,   31,   32,
                                 33, 63, 64, 65, 127, 128, 129, 1000, 1025, cut(70001, 9001)})
    for (const DType t :
         {DType::int32, DType::float16, DType::bfloat16, DType::float32, DType::float64})
      for (const bool tall : {false, true}) {
        const std::int64_t other = n > 2000 ? 3 : 5;
        const Tensor x = tall ? random_tensor({n, other}, t) : random_tensor({other, n}, t);
        const Array a = array_of(x);
        INFO(t << " " << x.shape());
        set_num_threads(1);
        const Tensor rows = sum(x, {1}), columns = sum(x, {0}), all = sum(x);
        CHECK(check_sum(rows, a, {1}, false, false) == "");
        CHECK(check_sum(columns, a, {0}, false, false) == "");
        CHECK(check_sum(all, a, {}, false, false) == "");
        CHECK_EXACT(amax(x, {1}), reference::max(a, {1}));
        CHECK_EXACT(amin(x, {0}), reference::min(a, {0}));
        CHECK_EXACT(max(x), reference::max(a));
        CHECK_EXACT(argmax(x, 0), reference::argmax(a, 0));
        CHECK_EXACT(argmin(x, 1), reference::argmin(a, 1));
        for (const int threads : thread_counts({2, 3, 5})) {
          set_num_threads(threads);
          CHECK_SAME_BITS(sum(x, {1}), rows);
          CHECK_SAME_BITS(sum(x, {0}), columns);
          CHECK_SAME_BITS(sum(x), all);
        }
      }
}

TEST_CASE("reduce: long sums keep their digits", "[reduce]") {
  // A naive float32 sum of ones stops growing at 2^24; those of 16-bit dtypes stop at 256 and 2048.
  const std::int64_t n = cut(1 << 20, 1 << 16);
  const Tensor ones32 = ones({3, n});
  CHECK(sum(ones32).item<double>() == 3.0 * static_cast<double>(n));
  CHECK(list(sum(ones32, {0}))[77] == 3);
  const auto of = [](std::int64_t count, double value, DType t) {
    return full({count}, value, {.dtype = t});
  };
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1;
  check_whole({{sum(of(4096, 1, DType::bfloat16)), {4096}},
               {sum(of(4096, 1, DType::float16)), {4096}},
               {mean(of(100000, 2, DType::float16)), {2}},  // the sum overflows the dtype
               {sum(of(1000, 100000, DType::int32)), {100000000}},
               {sum(of(70000, 100000, DType::int32)), {7000000000}},
               {sum(of(1000, 255, DType::uint8)), {255000}},
               {sum(of(1000, 1, DType::bool_)), {1000}},
               {sum(tensor({kBig, std::int64_t{2}})), {kBig + 2}},
               {max(tensor({kBig, kBig - 1})), {kBig}},
               {argmax(tensor({kBig - 1, kBig}), 0), {1}}});
}

TEST_CASE("reduce: empty ones, and a single number", "[reduce][errors]") {
  CHECK_EXACT(sum(zeros({0})), Array(Sizes{}, 0.0));
  CHECK_EXACT(sum(zeros({3, 0}), {1}), Array({3}, 0.0));
  CHECK_EXACT(sum(zeros({3, 0}), {1}, true), Array({3, 1}, 0.0));
  CHECK(sum(zeros({0}, {.dtype = DType::int32})).dtype() == DType::int64);
  CHECK_EXACT(mean(zeros({0})), Array(Sizes{}, kNan));
  CHECK_EXACT(mean(zeros({2, 0}), {1}), Array({2}, kNan));
  // An empty result is valid for all of them; otherwise max and min throw (op_cases_reduce.cpp).
  check_shapes({{sum(zeros({3, 0}), {0}), {0}},
                {mean(zeros({2, 0}), {0}), {0}},
                {amax(zeros({2, 0}), {0}), {0}},
                {amin(zeros({2, 0}), {0}), {0}},
                {argmax(zeros({0, 3}), 1), {0}}});
  CHECK_THROWS_TEXT(IndexError, "sum: expected *-2*1*got 2", sum(zeros({2, 3}), {2}));
  CHECK_THROWS_TEXT(IndexError, "sum: ", sum(tensor(1.0), {1}));
  CHECK_THROWS_TEXT(ShapeError, "amax: expected *got *", amax(zeros({2, 0}), {1}));
  CHECK_THROWS_TEXT(ShapeError, "amin: expected *got *", amin(zeros({0, 3}), {0}));
  // The gradients have the shape of the input.
  const Tensor x = zeros({3, 0}, {.requires_grad = true}),
               y = zeros({0, 2}, {.requires_grad = true}), one = tensor(2.5);
  sum(x).backward();
  mean(y).backward();
  CHECK(x.grad().shape() == Shape{3, 0});
  CHECK(y.grad().shape() == Shape{0, 2});
  for (const Tensor& z : {sum(one), mean(one), max(one), min(one), sum(one, {0}), mean(one, {-1}),
                          amax(one, {0}), one.sum(), one.mean(), one.max()}) {
    CHECK(z.shape() == Shape{});
    CHECK(z.item<double>() == 2.5);
  }
  check_whole({{argmax(one, 0), {0}}, {argmin(one, -1), {0}}});
}

TEST_CASE("reduce: NaN propagates from every place, and the first of equal elements wins",
          "[reduce]") {
  for (const DType t : floating_dtypes())
    for (const std::int64_t n : {1, 7, 16, 33, 130})
      for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
        Array v({n}, 1.0);
        v[place] = kNan;
        const Tensor x = tensor_of(v, t);
        INFO(t << ", " << place << " of " << n);
        for (const Tensor& y : {max(x), min(x), sum(x), mean(x)})
          CHECK(std::isnan(y.item<double>()));
        CHECK(argmax(x, 0).item<std::int64_t>() == place);
        CHECK(argmin(x, 0).item<std::int64_t>() == place);
        const Tensor column = tensor_of(Array({n, 1}, v.data), t).expand({n, 3}).clone();
        CHECK(std::isnan(list(amax(column, {0}))[2]));
        CHECK(whole(argmax(column, 0)) == Whole(3, place));
        v[place] = kInf;
        CHECK(max(tensor_of(v, t)).item<double>() == kInf);
        CHECK(argmax(tensor_of(v, t), 0).item<std::int64_t>() == place);
        v[place] = -kInf;
        CHECK(min(tensor_of(v, t)).item<double>() == -kInf);
        CHECK(max(tensor_of(Array({n}, -kInf), t)).item<double>() == -kInf);
      }
  check_whole({{argmax(tensor({1.0, 3.0, 3.0, 2.0}), 0), {1}},
               {argmin(tensor({1.0, 0.0, 0.0, 2.0}), 0), {1}},
               {argmax(zeros({100, 40}), 1), Whole(100, 0)},
               {argmax(zeros({100, 40}), 0), Whole(40, 0)},
               {argmax(tensor({{kNan, kNan}}), 1), {0}}});
}

TEST_CASE("reduce: gradients beyond the table", "[reduce][gradients]") {
  const Tensor x = random_tensor({3, 4, 5}, DType::float64).requires_grad_();
  CHECK_CLOSE(grad(mean(x, {0, 2}).sum(), {x})[0], Array({3, 4, 5}, 1.0 / 15),
              tolerance(DType::float64));
  CHECK(pulled(sum(x, {1}), {x}, random_tensor({5, 3}, DType::float64).t())[0].shape() ==
        x.shape());
  // Ties within one of several groups share the gradient evenly.
  const Tensor t = tensor({{1.0, 1.0, 0.0}, {2.0, 3.0, 3.0}}).requires_grad_();
  CHECK(list(grad(amax(t, {1}).sum(), {t})[0]) == List{0.5, 0.5, 0, 0, 0.5, 0.5});
  // More elements than float16 can count.
  const Tensor many = ones({70000}, {.dtype = DType::float16, .requires_grad = true});
  for (const Tensor& y : {mean(many), amax(many)}) {
    const Tensor dx = grad(y, {many})[0].to(DType::float64);
    CHECK(min(dx).item<double>() == Approx(1.0 / 70000).epsilon(0.01));
    CHECK(max(dx).item<double>() == Approx(1.0 / 70000).epsilon(0.01));
  }
}

}  // namespace braid::test::on_device
