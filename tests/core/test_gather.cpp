// Tests of gather and scatter: sums in index order, long lines, rejected calls that change nothing.
#include "reference/gather.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor indices(const Sizes& shape, std::int64_t below) {
  Numbers numbers(static_cast<std::uint64_t>(below) + 5);
  return strided(shape, reference::row_major(shape), 0, DType::int64, here(),
                 [&] { return static_cast<double>(numbers.integer(0, below)); });
}

}  // namespace

TEST_CASE(
    "gather: sums are taken in the order of the index, each rounded to the type, on any number of "
    "threads",
    "[gather]") {
  const KeepThreads keep;
  for (const DType t : floating_dtypes())
    for (const auto& [shape, places, dim] :
         std::vector<std::tuple<Sizes, Sizes, std::int64_t>>{{{7}, {1000}, 0},
                                                             {{300}, {5000}, 0},
                                                             {{3, 5}, {3, 129}, 1},
                                                             {{5, 33}, {129, 33}, 0},
                                                             {{40, 6, 3}, {40, 9, 3}, 1}}) {
      const Tensor x = random_tensor(shape, t),
                   index = indices(places, shape[static_cast<std::size_t>(dim)]),
                   src = random_tensor(places, t, {}, 9);
      Array want = array_of(x);
      const Array from = array_of(src), at = array_of(index);
      const Sizes strides = reference::row_major(shape);
      reference::for_each(places, [&, d = static_cast<int>(dim)](const Sizes& i) {
        Sizes to = i;
        reference::at(to, d) = static_cast<std::int64_t>(reference::value(at, i));
        double& sum = want[reference::offset(to, strides)];
        sum = reference::round_to(sum + reference::value(from, i), format_of(t));
      });
      INFO(t << ", " << index.shape() << " to " << x.shape());
      for (const int threads : thread_counts({1, 3})) {
        set_num_threads(threads);
        CHECK_EXACT(scatter_add(x, dim, index, src), want);
      }
    }
}

TEST_CASE("gather: lines of many elements", "[gather]") {
  const std::int64_t m = 20000, n = 3000;  // on CUDA these are sorted
  const Tensor index = indices({m}, n);
  const Array at = array_of(index);
  for (const DType t : {DType::int64, DType::float16, DType::float32}) {
    const Tensor x = random_tensor({n}, t), src = random_tensor({m}, t, {}, 9);
    const Array from = array_of(src);
    Array sums = array_of(x), last = sums, sizes({n}, 1.0);
    for (std::int64_t j = 0; j < m; ++j) {
      const auto to = static_cast<std::int64_t>(at[j]);
      sums[to] += from[j], sizes[to] += std::fabs(from[j]), last[to] = from[j];
    }
    CAPTURE(t);
    CHECK_EXACT(scatter(x, 0, index, src), last);
    const Tensor y = scatter_add(x, 0, index, src);
    CHECK_EXACT(index_add(x, 0, index, src), array_of(y));
    const Array got = array_of(y);
    // about 7 elements each, each sum rounded
    const double each = t == DType::int64 ? 0 : t == DType::float16 ? 0x1p-7 : 0x1p-20;
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) wrong += std::fabs(got[i] - sums[i]) > each * sizes[i];
    CHECK(wrong == 0);
  }
  // elements that repeat in memory, as the gradient of a sum does, alone and in rows
  const Tensor two = remainder(index.narrow(0, 0, 900), 2), each = ones({1, 1}).expand({900, 6});
  const Tensor rows = scatter_add(zeros({2, 6}), 0, two.reshape({900, 1}).expand({900, 6}), each);
  const Tensor counts = scatter_add(zeros({2}), 0, two, each.select(1, 0));
  CHECK_EXACT(rows, array_of(counts.reshape({2, 1}).expand({2, 6})));
  CHECK(counts.sum().item<float>() == 900);
  CHECK_EXACT(counts.select(0, 1), array_of(sum(two).to(DType::float32)));
}

TEST_CASE("gather: integers wrap around, bool is or", "[gather]") {
  const auto added = [](T x, const Whole& index, T src) {
    return scatter_add(x, 0, tensor(index), src);
  };
  const auto bytes = [](double v) { return full({2}, v, {.dtype = DType::uint8}); };
  check_whole({{added(bytes(200), {0, 0}, bytes(100)), {(200 + 100 + 100) % 256, 200}},
               {added(tensor({kMax}), {0}, tensor({1})), {kMin}},
               {added(tensor({true, false}), {1, 1}, tensor({true, true})), {1, 1}}});
}

TEST_CASE("gather: of equal indices the last one stays, and it alone gets the gradient",
          "[gather][gradients]") {
  const Tensor x = zeros({2}).requires_grad_(), src = tensor({1.0, 2.0, 3.0}).requires_grad_();
  const Tensor y = scatter(x, 0, tensor({1, 1, 0}), src);
  const std::vector<Tensor> g = pulled(y, {x, src}, tensor({10.0, 20.0}));
  check_lists({{y, {3, 2}}, {g[0], {0, 0}}, {g[1], {0, 20, 10}}});
}

TEST_CASE("gather: an index out of range is found wherever it stands, and nothing is changed",
          "[gather][errors]") {
  const Tensor x = random_tensor({3, 40}), src = random_tensor({3, 20}, DType::float32, {}, 4);
  const Array old = array_of(x);
  for (const std::int64_t wrong : {std::int64_t{40}, std::int64_t{-1}, std::int64_t{1} << 32, kMin})
    for (const std::size_t place : {0u, 19u, 59u}) {
      std::vector<std::int64_t> v(60, 1);
      v[place] = wrong;
      const Tensor index = tensor(v).reshape({3, 20});
      INFO(wrong << " at " << place);
      const std::string text = str(": expected indices in [0, 40), got ", wrong);
      CHECK_THROWS_TEXT(IndexError, "gather" + text, awaited(gather(x, 1, index)));
      CHECK_THROWS_TEXT(IndexError, "scatter" + text, awaited(scatter(x, 1, index, src)));
      CHECK_THROWS_TEXT(IndexError, "scatter_add" + text, awaited(scatter_add(x, 1, index, src)));
      CHECK_EXACT(x, old);
    }
}

}  // namespace braid::test::on_device
