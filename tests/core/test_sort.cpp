// Order: sizes that break tiles and networks, ties, NaN, both ways, on any number of threads.
#include <braid/core/ops/sort.hpp>

#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/create.hpp>

#include "reference/scan.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

/// Whole numbers of a small range, so that many are equal, with NaN, infinities and zeros of both
/// signs among floating-point ones.
Tensor with_ties(const Sizes& shape, DType t) {
  Numbers numbers(11);
  Array a(shape);
  for (double& x : a.data) {
    x = t == DType::bool_
            ? static_cast<double>(numbers.integer(0, 2))
            : static_cast<double>(numbers.integer(is_floating(t) || is_integral(t) ? 0 : -9, 9));
    if (!is_floating(t)) continue;
    const std::int64_t special = numbers.integer(0, 20);
    if (special == 0) x = std::nan("");
    if (special == 1) x = std::numeric_limits<double>::infinity();
    if (special == 2) x = -std::numeric_limits<double>::infinity();
    if (special == 3) x = -0.0;
    if (special > 10) x = -x;
  }
  return tensor_of(a, t);
}

}  // namespace

TEST_CASE("sort: stable in every type, both ways, at every size", "[sort]") {
  const int before = num_threads();
  for (const DType t : all_dtypes())
    for (const std::int64_t n : std::vector<std::int64_t>{1, 2, 31, 33, 255, 257, 1025})
      for (const bool descending : {false, true}) {
        const Tensor x = with_ties({3, n}, t);
        const Array a = array_of(x);
        INFO(t << ", " << n << (descending ? " descending" : ""));
        for (const int threads : thread_counts({1, 3})) {
          set_num_threads(threads);
          const ValuesIndices y = sort(x, -1, descending);
          CHECK_EXACT(y.values, reference::sorted(a, -1, descending, false));
          CHECK_EXACT(y.indices, reference::sorted(a, -1, descending, true));
        }
        for (const std::int64_t k : std::vector<std::int64_t>{0, 1, n / 5, n}) {
          const ValuesIndices first = topk(x, k, 1, descending);
          CHECK_EXACT(first.indices, reference::sorted(a, 1, descending, true, k));
          CHECK_EXACT(first.values, reference::sorted(a, 1, descending, false, k));
        }
      }
  set_num_threads(before);
}

TEST_CASE("sort: numbers that differ in the last bits, and wide integers", "[sort]") {
  constexpr std::int64_t kBig = std::int64_t{1} << 60;
  const Tensor wide =
      tensor({kBig + 1, kBig, -kBig - 1, -kBig, std::numeric_limits<std::int64_t>::min(),
              std::numeric_limits<std::int64_t>::max()});
  CHECK(argsort(wide, 0).to_vector<std::int64_t>() == std::vector<std::int64_t>{4, 2, 3, 1, 0, 5});
  CHECK(argsort(tensor({1.0, 1 + 0x1p-52, -1.0, -1 - 0x1p-52}, {.dtype = DType::float64}), 0, true)
            .to_vector<std::int64_t>() == std::vector<std::int64_t>{1, 0, 2, 3});
  CHECK(argsort(tensor({0x1p-149, -0x1p-149, 0.0, -0.0}), 0).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, 2, 3, 0});
}

TEST_CASE("sort: the gradient goes to the elements that were chosen, and only there",
          "[sort][gradients]") {
  const Tensor x = tensor({{3.0, 1.0, 3.0}, {2.0, 2.0, 5.0}}).requires_grad_();
  CHECK(grad(max_with_index(x, 1).values.sum(), {x})[0].to_vector<double>() ==
        std::vector<double>{1, 0, 0, 0, 0, 1});
  CHECK(grad(min_with_index(x, 1).values.sum(), {x})[0].to_vector<double>() ==
        std::vector<double>{0, 1, 0, 1, 0, 0});
  CHECK(grad(topk(x, 2).values.sum(), {x})[0].to_vector<double>() ==
        std::vector<double>{1, 0, 1, 1, 0, 1});
  CHECK_FALSE(sort(x).indices.requires_grad());
  CHECK(topk(x, 0).values.shape() == Shape{2, 0});
  CHECK(sort(zeros({0, 3}), 0).values.shape() == Shape{0, 3});
  CHECK(sort(tensor(1.5)).values.item<double>() == 1.5);
}

}  // namespace braid::test::on_device
