// Running sums and products: sizes that break tiles, any number of threads, digits, zeros in
// products.
#include <braid/core/ops/scan.hpp>

#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/create.hpp>

#include "reference/scan.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {

TEST_CASE(
    "scan: float32 and 16-bit sums are the exact ones, rounded once, on any number of threads",
    "[scan]") {
  const int before = num_threads();
  for (const std::int64_t n :
       std::vector<std::int64_t>{1, 15, 16, 17, 127, 129, 4096, 4097, cut(70001, 5001)})
    for (const DType t : {DType::float16, DType::bfloat16, DType::float32})
      for (const bool columns : {false, true}) {
        const Tensor x = columns ? random_tensor({n, 3}, t) : random_tensor({2, n}, t);
        const std::int64_t dim = columns ? 0 : 1;
        INFO(t << " " << x.shape());
        set_num_threads(1);
        const Tensor y = cumsum(x, dim);
        // Sums of float64 are off by parts in 2^40, which can move a rounding that is nearly a tie.
        CHECK(within_bound(y, reference::cumsum(array_of(x), dim),
                           reference::cumsum(Array(sizes_of(x.shape()), 0x1p-40), dim)) == "");
        for (const int threads : thread_counts({2, 3, 5})) {
          set_num_threads(threads);
          CHECK_SAME_BITS(cumsum(x, dim), y);
        }
      }
  set_num_threads(before);
}

TEST_CASE("scan: integers are exact and wrap around", "[scan]") {
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1,
                         kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(cumsum(tensor({kBig, std::int64_t{2}}), 0).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{kBig, kBig + 2});
  CHECK(cumsum(tensor({kMost, std::int64_t{1}}), 0).to_vector<std::int64_t>()[1] ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(cumsum(full({1000}, 255, {.dtype = DType::uint8}), 0).to_vector<std::int64_t>().back() ==
        255000);
  CHECK(cumprod(full({62}, 2, {.dtype = DType::int32}), 0).to_vector<std::int64_t>().back() ==
        std::int64_t{1} << 62);
  CHECK(prod(full({64}, 2, {.dtype = DType::int64})).item<std::int64_t>() == 0);
}

TEST_CASE("scan: NaN and infinities go on from where they stand", "[scan]") {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const std::int64_t n : {5, 40, 1030}) {
    Array x({n}, 1.0);
    x[n / 2] = inf;
    x[n - 2] = -inf;
    const Array y = array_of(cumsum(tensor_of(x), 0));
    INFO(n);
    CHECK(y[n / 2 - 1] == static_cast<double>(n / 2));
    CHECK(y[n / 2] == inf);
    CHECK(std::isnan(y[n - 1]));
    x[0] = nan;
    CHECK(std::isnan(cumprod(tensor_of(x), 0).to_vector<double>().back()));
    x = Array({n}, 0.0);
    x[n - 1] = inf;
    CHECK(cumsum(tensor_of(x), 0).to_vector<double>() == x.data);
  }
}

TEST_CASE("scan: gradients of products are right at zeros", "[scan][gradients]") {
  for (const std::vector<double>& numbers : std::vector<std::vector<double>>{
           {2, 0, 3, -1}, {0, 0, 3, 1}, {1, 2, 3, 0}, {0, 0, 0, 0}, {0, 5, 0, 2}}) {
    const Tensor x = tensor_of(Array({4}, numbers), DType::float64).requires_grad_();
    INFO(x);
    CHECK_GRAD([](const Tensor& t) { return cumprod(t, 0); }, x);
    CHECK_GRAD([](const Tensor& t) { return prod(t); }, x);
  }
  // By hand: d(abc)/da = bc.
  const Tensor x = tensor({2.0, 0.0, 5.0}).requires_grad_();
  CHECK(grad(prod(x), {x})[0].to_vector<double>() == std::vector<double>{0, 10, 0});
}

TEST_CASE("scan: empty ones and scalars", "[scan]") {
  CHECK(cumsum(zeros({0}), 0).shape() == Shape{0});
  CHECK(cumprod(zeros({3, 0}), 0).shape() == Shape{3, 0});
  CHECK(cumsum(tensor(2.5), -1).item<double>() == 2.5);
  CHECK(prod(zeros({0})).item<double>() == 1);
  CHECK(prod(zeros({2, 0}), {1}).to_vector<double>() == std::vector<double>{1, 1});
  CHECK(prod(zeros({2, 0}), {0}).shape() == Shape{0});
  const Tensor x = zeros({3, 0}, {.requires_grad = true});
  prod(x).backward();
  CHECK(x.grad().shape() == Shape{3, 0});
}

}  // namespace braid::test::on_device
