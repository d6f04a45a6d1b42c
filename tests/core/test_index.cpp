// Tests of index_select, embedding and operator[](Tensor): sizes, repeated and negative indices,
// the order of sums in gradients, invalid indices.
#include "reference/index.hpp"
#include "reference/reduce.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

Tensor indices(const Sizes& shape, std::int64_t below, Device device = here(),
               bool negative = true) {
  Numbers numbers(static_cast<std::uint64_t>(below) + 3);
  return strided(shape, reference::row_major(shape), 0, DType::int64, device, [&] {
    return static_cast<double>(numbers.integer(negative ? -below : 0, below));
  });
}

/// Adds dy to the rows it came from, in index order; each sum is rounded to the dtype.
Array scattered(const Array& dy, const Array& index, const Sizes& table, DType t) {
  Array g(table);
  const std::int64_t width = reference::at(table, 1), rows = reference::at(table, 0);
  for (std::int64_t i = 0; i < index.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(index[i]) + (index[i] < 0 ? rows : 0);
    for (std::int64_t j = 0; j < width; ++j)
      g[row * width + j] =
          reference::round_to(g[row * width + j] + dy[i * width + j], format_of(t));
  }
  return g;
}

/// The number of elements that are not the sums of their rows, in any order, rounded once.
std::int64_t count_wrong(const Tensor& g, const Tensor& dy, const Tensor& index) {
  const Sizes table{g.size(0), g.size(1)};
  Array sizes = array_of(dy);
  for (std::int64_t i = 0; i < sizes.size(); ++i) sizes[i] = std::fabs(sizes[i]);
  sizes = scattered(sizes, array_of(index), table, DType::float64);
  const Array got = array_of(g),
              want = scattered(array_of(dy), array_of(index), table, DType::float64);
  const DType t = g.dtype();
  const double sums = t == DType::float64 ? 0x1p-53 : 0x1p-24,
               result = t == DType::bfloat16  ? 0x1p-8
                        : t == DType::float16 ? 0x1p-11
                                              : sums;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < got.size(); ++i)
    wrong += !(std::fabs(got[i] - want[i]) <= result * std::fabs(want[i]) + 64 * sums * sizes[i]);
  return wrong;
}

}  // namespace

TEST_CASE("index: embedding at every size, type and device", "[index]") {
  const std::vector<std::array<std::int64_t, 3>> sizes{{1, 1, 1},      {10, 7, 33},  {100, 64, 65},
                                                       {1000, 9, 129}, {5, 1025, 3}, {3, 17, 1000}};
  for (const Device device : test_devices())
    for (const DType t : all_dtypes())
      for (const auto& [rows, width, n] : sizes) {
        const Tensor table = random_tensor({rows, width}, t, device),
                     index = indices({n}, rows, device, false),
                     wrapping = indices({n}, rows, device);
        INFO(t << " on " << device << ", " << n << " of " << rows << " rows of " << width);
        CHECK_EXACT(embedding(table, index),
                    reference::embedding(array_of(table), array_of(index)));
        CHECK_EXACT(table[wrapping], reference::embedding(array_of(table), array_of(wrapping)));
        CHECK_EXACT(embedding(table.t().contiguous().t(), index),
                    reference::embedding(array_of(table), array_of(index)));
      }
}

TEST_CASE("index: index_select along every dim", "[index]") {
  const Tensor x = random_tensor({5, 6, 7});
  for (const std::int64_t dim : {0, 1, 2, -1, -2, -3}) {
    const Tensor index = indices({9}, 5, here(), false);
    INFO(dim);
    for (const Tensor& from : {x, x.permute({2, 0, 1})})
      for (const Tensor& which : {index, stack({index, index}, 1).select(1, 1)})
        CHECK_EXACT(index_select(from, dim, which),
                    reference::index_select(array_of(from), dim, whole(index)));
  }
  CHECK_EXACT(random_tensor({4})[tensor({3, 3, -4})],
              reference::index_select(array_of(random_tensor({4})), 0, {3, 3, -4}));
}

TEST_CASE("index: the gradient of repeated rows is a sum in a fixed order", "[index][gradients]") {
  const KeepThreads keep;
  for (const DType t : floating_dtypes())
    for (const auto& [rows, width, n] : std::vector<std::array<std::int64_t, 3>>{
             {3, 5, 64}, {50, 17, 1000}, {2, 33, 129}, {1000, 4, 10}}) {
      const Tensor table = random_tensor({rows, width}, t).requires_grad_(),
                   index = indices({n}, rows), dy = random_tensor({width, n}, t, {}, 9).t();
      // CUDA rounds 16-bit sums once
      const DType summed = on_cpu() || size_of(t) != 2 ? t : DType::float32;
      Array want = scattered(array_of(dy), array_of(index), {rows, width}, summed);
      for (double& x : want.data) x = reference::round_to(x, format_of(t));
      INFO(t << ", " << n << " of " << rows << " rows of " << width);
      for (const int threads : thread_counts({1, 3})) {
        set_num_threads(threads);
        const Tensor g = pulled(table[index], {table}, dy)[0];
        CHECK(g.shape() == table.shape());
        if (on_cpu() || n <= 256) {
          CHECK_EXACT(g, want);
        } else {  // not in the order of the index
          CHECK(count_wrong(g, dy, index) == 0);
          CHECK_SAME_BITS(g, pulled(table[index], {table}, dy)[0]);
        }
      }
    }
}

TEST_CASE("index: the row of padding gets no gradient, the others the same bits",
          "[index][gradients]") {
  constexpr std::int64_t padding = 7;
  for (const DType t : floating_dtypes())
    for (const std::int64_t n : {64, 1000}) {  // CUDA sorts a long index
      INFO(t << ", " << n);
      const Tensor table = random_tensor({20, 17}, t).requires_grad_(),
                   index = indices({n}, 20, here(), false), dy = random_tensor({n, 17}, t, {}, 9);
      const Tensor all = pulled(embedding(table, index), {table}, dy)[0],
                   others = pulled(embedding(table, index, padding), {table}, dy)[0];
      CHECK(ne(all[padding], 0).any().item<bool>());
      CHECK_EXACT(others[padding], Array({17}, 0.0));
      CHECK_SAME_BITS(all.index_fill(0, tensor({padding}), 0), others);
    }
}

TEST_CASE("index: rows that were not asked for get a gradient of zero, and empty ones",
          "[index][gradients]") {
  const Tensor table = random_tensor({4, 2}).requires_grad_(), other = table.detach().clone(),
               none = zeros({0}, {.dtype = DType::int64});
  embedding(table, tensor({{2, 2}, {0, 2}})).sum().backward();
  CHECK(list(table.grad()) == List{1, 1, 0, 0, 3, 3, 0, 0});
  CHECK_FALSE(embedding(other, tensor({1})).requires_grad());
  check_shapes({{embedding(table, none), {0, 2}},
                {embedding(table, zeros({2, 0}, {.dtype = DType::int64})), {2, 0, 2}},
                {index_select(table, 1, none), {4, 0}},
                {index_select(zeros({2, 0}), 0, tensor({1, 0, 1})), {3, 0}},
                {embedding(zeros({3, 0}), tensor({1, 2})), {2, 0}}});
  other.requires_grad_();
  embedding(other, none).sum().backward();
  CHECK_EXACT(other.grad(), Array({4, 2}, 0.0));
}

TEST_CASE("index: an index out of range is refused, wherever it stands", "[index][errors]") {
  const Tensor table = random_tensor({4, 3});
  for (const std::int64_t wrong : {std::int64_t{4}, std::int64_t{-1}, std::int64_t{-5},
                                   std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1, kMax, kMin})
    for (std::size_t place = 0; place < 20; place += 19) {
      std::vector<std::int64_t> v(20, 1);
      v[place] = wrong;
      INFO(wrong << " at " << place);
      CHECK_THROWS_TEXT(IndexError, str("embedding: expected indices in [0, 4), got ", wrong),
                        awaited(embedding(table, tensor(v))));
      if (wrong == -1) continue;  // valid for the others: the last row
      CHECK_THROWS_TEXT(IndexError, "index_select: expected indices in [-4, 4), got ",
                        awaited(index_select(table, 0, tensor(v))));
      CHECK_THROWS_AS(awaited(index_select(table, 1, tensor(v))), IndexError);
      CHECK_THROWS_TEXT(IndexError, str("index: expected indices in [-4, 4), got ", wrong),
                        awaited(table[tensor(v)]));
    }
  CHECK_THROWS_AS(awaited(embedding(zeros({0, 3}), tensor({0}))), IndexError);
  CHECK(table[tensor({-1})].to_vector<float>() == table[3].to_vector<float>());
}

TEST_CASE("index: a scalar, and more dims than there may be, are refused", "[index][errors]") {
  CHECK_THROWS_AS(tensor(1.0)[tensor({1, 2})], ArgumentError);
  const Shape five = Shape::filled(5, 1);
  CHECK_THROWS_AS(on_device::zeros(five)[on_device::zeros(five, {.dtype = DType::int64})],
                  ShapeError);
}

TEST_CASE("index: a scalar is a vector of one element", "[index][gradients]") {
  const Tensor x = tensor(5.0).requires_grad_(), at = tensor({0}), y = index_select(x, -1, at);
  CHECK((y.dim() == 0 && y.item<int>() == 5));
  y.backward();
  CHECK((x.grad().dim() == 0 && x.grad().item<int>() == 1));
  const Tensor filled = x.index_fill(0, at, 2), copied = x.index_copy(-1, at, tensor(3.0));
  CHECK((filled.dim() == 0 && filled.item<int>() == 2));
  CHECK((copied.dim() == 0 && copied.item<int>() == 3));
  CHECK(x.index_copy(0, at, tensor({7.0})).item<int>() == 7);
  CHECK(x.index_copy(0, at.slice(0, 0, 0), zeros({0})).item<int>() == 5);
  CHECK_THROWS_AS(x.index_copy(0, at, tensor({{7.0}})), ShapeError);
  CHECK(tensor(5.0).index_fill_(0, at, 2).item<int>() == 2);
  CHECK_THROWS_AS(x.index_fill(1, at, 2), IndexError);
  CHECK_THROWS_AS(x.index_copy(1, at, tensor(3.0)), IndexError);
  CHECK_THROWS_AS(index_select(x, 1, at), IndexError);
}

TEST_CASE("index: index_select counts negative indices from the end", "[index]") {
  const Tensor x = tensor({{0.0, 1.0, 2.0}, {3.0, 4.0, 5.0}}).requires_grad_(),
               last = tensor({-1, 0, -3});
  CHECK(list(index_select(x, 1, last)) == List{2, 0, 0, 5, 3, 3});
  CHECK(list(index_select(x, 0, tensor({-1}))) == List{3, 4, 5});
  index_select(x, 1, last).sum().backward();
  CHECK(list(x.grad()) == List{2, 0, 1, 2, 0, 1});
  CHECK_THROWS_TEXT(IndexError, "index_select: expected indices in [-3, 3), got -4",
                    awaited(index_select(x, 1, tensor({-4}))));
}

TEST_CASE("index: embedding says that its arguments are swapped", "[index][errors]") {
  CHECK_THROWS_TEXT(DTypeError,
                    "embedding: expected the weight, then an int64 index, got the index first",
                    embedding(tensor({0, 1}), ones({4, 3})));
}

}  // namespace braid::test::on_device
