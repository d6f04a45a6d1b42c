// Tests of cumulative sums and products: sizes that are not multiples of tiles, any number of
// threads, accuracy, zeros in products.
#include "reference/scan.hpp"
#include "shorthand.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {

TEST_CASE(
    "scan: float32 and 16-bit sums are the exact ones, rounded once, on any number of threads",
    "[scan]") {
  const KeepThreads keep;
  for (const std::int64_t n :
       std::vector<std::int64_t>{1, 15, 16, 17, 127, 129, 4096, 4097, cut(70001, 5001)})
    for (const DType t : {DType::float16, DType::bfloat16, DType::float32})
      for (const bool columns : {false, true}) {
        const Tensor x = columns ? random_tensor({n, 3}, t) : random_tensor({2, n}, t);
        const std::int64_t dim = columns ? 0 : 1;
        INFO(t << " " << x.shape());
        set_num_threads(1);
        const Tensor y = cumsum(x, dim);
        // float64 sums have relative errors near 2^-40, which can change a rounding that is nearly
        // a tie.
        CHECK(within_bound(y, reference::cumsum(array_of(x), dim),
                           reference::cumsum(Array(sizes_of(x.shape()), 0x1p-40), dim)) == "");
        for (const int threads : thread_counts({2, 3, 5})) {
          set_num_threads(threads);
          CHECK_SAME_BITS(cumsum(x, dim), y);
        }
      }
}

TEST_CASE("scan: integers are exact and wrap around", "[scan]") {
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1;
  check_whole({{cumsum(tensor({kBig, std::int64_t{2}}), 0), {kBig, kBig + 2}},
               {cumsum(tensor({kMax, std::int64_t{1}}), 0), {kMax, kMin}},
               {prod(full({64}, 2, {.dtype = DType::int64})), {0}}});
  CHECK(whole(cumsum(full({1000}, 255, {.dtype = DType::uint8}), 0)).back() == 255000);
  CHECK(whole(cumprod(full({62}, 2, {.dtype = DType::int32}), 0)).back() == std::int64_t{1} << 62);
}

TEST_CASE("scan: NaN and infinities go on from where they stand", "[scan]") {
  for (const std::int64_t n : {5, 40, 1030}) {
    Array x({n}, 1.0);
    x[n / 2] = kInf;
    x[n - 2] = -kInf;
    const Array y = array_of(cumsum(tensor_of(x), 0));
    INFO(n);
    CHECK(y[n / 2 - 1] == static_cast<double>(n / 2));
    CHECK(y[n / 2] == kInf);
    CHECK(std::isnan(y[n - 1]));
    x[0] = kNan;
    CHECK(std::isnan(list(cumprod(tensor_of(x), 0)).back()));
    x = Array({n}, 0.0);
    x[n - 1] = kInf;
    CHECK(list(cumsum(tensor_of(x), 0)) == x.data);
  }
}

TEST_CASE("scan: gradients of products are right at zeros", "[scan][gradients]") {
  for (const List& numbers :
       std::vector<List>{{2, 0, 3, -1}, {0, 0, 3, 1}, {1, 2, 3, 0}, {0, 0, 0, 0}, {0, 5, 0, 2}}) {
    const Tensor x = tensor_of(Array({4}, numbers), DType::float64).requires_grad_();
    INFO(x);
    CHECK_GRAD([](const Tensor& t) { return cumprod(t, 0); }, x);
    CHECK_GRAD([](const Tensor& t) { return prod(t); }, x);
  }
  // 300 * 300 is no float16, the gradients are.
  const Tensor far =
      tensor_of(Array({4}, List{300, 300, 0.01, 0.01}), DType::float16).requires_grad_();
  const List dx = list(grad(prod(far), {far})[0].to(DType::float64));
  CHECK(dx[0] == Approx(0.03).epsilon(0.01));
  CHECK(dx[2] == Approx(900).epsilon(0.01));
  // Computed by hand: d(abc)/da = bc.
  CHECK(gradient_at([](T x) { return prod(x); }, {2, 0, 5}) == List{0, 10, 0});
}

TEST_CASE("scan: empty ones and scalars", "[scan]") {
  check_shapes({{cumsum(zeros({0}), 0), {0}},
                {cumprod(zeros({3, 0}), 0), {3, 0}},
                {prod(zeros({2, 0}), {0}), {0}}});
  check_lists({{cumsum(tensor(2.5), -1), {2.5}},
               {prod(zeros({0})), {1}},
               {prod(zeros({2, 0}), {1}), {1, 1}}});
  const Tensor x = zeros({3, 0}, {.requires_grad = true});
  prod(x).backward();
  CHECK(x.grad().shape() == Shape{3, 0});
}

}  // namespace braid::test::on_device
