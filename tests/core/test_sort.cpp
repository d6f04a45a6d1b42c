// Tests of sorting: sizes that are not multiples of tiles, ties, NaN, both directions, threads.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "reference/scan.hpp"
#include "shorthand.hpp"
#include "support/child.hpp"
#include "support/sanitized.hpp"

namespace braid::test::on_device {
namespace {

/// Whole numbers in a small range, so that many are equal. Floating-point ones include NaN,
/// infinities and zeros of both signs.
Tensor with_ties(const Sizes& shape, DType t) {
  Numbers numbers(11);
  Array a(shape);
  for (double& x : a.data) {
    x = t == DType::bool_
            ? static_cast<double>(numbers.integer(0, 2))
            : static_cast<double>(numbers.integer(is_floating(t) || is_integral(t) ? 0 : -9, 9));
    if (!is_floating(t)) continue;
    const std::int64_t special = numbers.integer(0, 20);
    const double specials[] = {kNan, kInf, -kInf, -0.0};
    if (special < 4) x = specials[special];
    if (special > 10) x = -x;
  }
  return tensor_of(a, t);
}

}  // namespace

TEST_CASE("sort: stable in every type, both ways, at every size", "[sort]") {
  const KeepThreads keep;
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
}

TEST_CASE("sort: numbers that differ in the last bits, and wide integers", "[sort]") {
  constexpr std::int64_t kBig = std::int64_t{1} << 60;
  const Tensor close = tensor({1.0, 1 + 0x1p-52, -1.0, -1 - 0x1p-52}, {.dtype = DType::float64});
  check_whole(
      {{argsort(tensor({kBig + 1, kBig, -kBig - 1, -kBig, kMin, kMax}), 0), {4, 2, 3, 1, 0, 5}},
       {argsort(close, 0, true), {1, 0, 2, 3}},
       {argsort(tensor({0x1p-149, -0x1p-149, 0.0, -0.0}), 0), {1, 2, 3, 0}}});
}

TEST_CASE("sort: the gradient goes to the elements that were chosen, and only there",
          "[sort][gradients]") {
  const Tensor x = tensor({{3.0, 1.0, 3.0}, {2.0, 2.0, 5.0}}).requires_grad_();
  const auto chosen = [&](const ValuesIndices& y) { return grad(y.values.sum(), {x})[0]; };
  check_lists({{chosen(max(x, 1)), {1, 0, 0, 0, 0, 1}},
               {chosen(min(x, 1)), {0, 1, 0, 1, 0, 0}},
               {chosen(topk(x, 2)), {1, 0, 1, 1, 0, 1}},
               {sort(tensor(1.5)).values, {1.5}},
               {topk(tensor(1.5), 0).values, {1.5}}});
  CHECK_FALSE(sort(x).indices.requires_grad());
  check_shapes({{topk(x, 0).values, {2, 0}},
                {topk(tensor(1.5), 0).indices, {}},
                {sort(zeros({0, 3}), 0).values, {0, 3}}});
}

// A program with limited memory: the results fit, the kernel's workspace does not.
TEST_CASE("child: sort and nonzero without memory for their own work", "[.child][sort_memory]") {
  set_num_threads(1);
  const Device cpu("cpu");
  const Tensor x = randn({1 << 21}, {.device = cpu}), mask = gt(x, 0);
  std::size_t out = 0;
  for (const std::int64_t room : {4, 12, 20, 28, 36, 44, 52, 60, 76, 100, 300}) {
    std::int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit old{};
    REQUIRE(getrlimit(RLIMIT_AS, &old) == 0);
    const rlimit tight{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + (room << 20)),
                       old.rlim_max};
    REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
    for (const bool sorts : {true, false}) try {
        if (sorts) (void)sort(x);
        else (void)nonzero(mask);
      } catch (const OutOfMemoryError&) {
        ++out;
      }
    REQUIRE(setrlimit(RLIMIT_AS, &old) == 0);
    empty_cache(cpu);
  }
  CHECK(out > 0);
  CHECK(out < 22);
}

TEST_CASE("sort: memory that the kernel does not find is an OutOfMemoryError", "[sort][errors]") {
  // a sanitizer reserves more address space than the limit
  if (BRAID_SANITIZED == 0 && on_cpu()) CHECK_CHILD("BRAID_DEVICE=cpu", "[.child][sort_memory]");
}

}  // namespace braid::test::on_device
