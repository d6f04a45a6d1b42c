// index_select, embedding and operator[](Tensor): sizes, repeated and negative indices, gradients
// in order, wrong indices.
#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/join.hpp>

#include "reference/index.hpp"
#include "reference/reduce.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

Tensor indices(const Sizes& shape, std::int64_t below, Device device = here(),
               bool negative = true) {
  Numbers numbers(static_cast<std::uint64_t>(below) + 3);
  return strided(shape, reference::row_major(shape), 0, DType::int64, device, [&] {
    return static_cast<double>(numbers.integer(negative ? -below : 0, below));
  });
}

/// dy added to the rows it came from, in the order of the index, each sum in the type.
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

}  // namespace

TEST_CASE("index: embedding at every size, type and device", "[index]") {
  for (const Device device : test_devices())
    for (const DType t : all_dtypes())
      for (const auto& [rows, width, n] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                                   {10, 7, 33},
                                                                                   {100, 64, 65},
                                                                                   {1000, 9, 129},
                                                                                   {5, 1025, 3},
                                                                                   {3, 17, 1000}}) {
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
    std::vector<std::int64_t> list = index.to_vector<std::int64_t>();
    INFO(dim);
    CHECK_EXACT(index_select(x, dim, index), reference::index_select(array_of(x), dim, list));
    CHECK_EXACT(index_select(x.permute({2, 0, 1}), dim, index),
                reference::index_select(array_of(x.permute({2, 0, 1})), dim, list));
    const Tensor strided_index = stack({index, index}, 1).select(1, 1);
    CHECK_EXACT(index_select(x, dim, strided_index),
                reference::index_select(array_of(x), dim, list));
  }
  CHECK_EXACT(random_tensor({4})[tensor({3, 3, -4})],
              reference::index_select(array_of(random_tensor({4})), 0, {3, 3, -4}));
}

TEST_CASE("index: the gradient of repeated rows is a sum in the order of the index",
          "[index][gradients]") {
  const int before = num_threads();
  for (const DType t : floating_dtypes())
    for (const auto& [rows, width, n] : std::vector<std::array<std::int64_t, 3>>{
             {3, 5, 64}, {50, 17, 1000}, {2, 33, 129}, {1000, 4, 10}}) {
      const Tensor table = random_tensor({rows, width}, t).requires_grad_(),
                   index = indices({n}, rows), dy = random_tensor({width, n}, t, {}, 9).t();
      const Array want = scattered(array_of(dy), array_of(index), {rows, width}, t);
      INFO(t << ", " << n << " of " << rows << " rows of " << width);
      for (const int threads : thread_counts({1, 3})) {
        set_num_threads(threads);
        const Tensor g = grad(std::vector<Tensor>{table[index]}, std::vector<Tensor>{table},
                              std::vector<Tensor>{dy})[0];
        CHECK(g.shape() == table.shape());
        CHECK_EXACT(g, want);
      }
    }
  set_num_threads(before);
}

TEST_CASE("index: rows that were not asked for get a gradient of zero", "[index][gradients]") {
  const Tensor table = random_tensor({4, 2}).requires_grad_();
  embedding(table, tensor({{2, 2}, {0, 2}})).sum().backward();
  CHECK(table.grad().to_vector<double>() == std::vector<double>{1, 1, 0, 0, 3, 3, 0, 0});
  CHECK_FALSE(embedding(table.detach(), tensor({1})).requires_grad());
}

TEST_CASE("index: empty ones", "[index]") {
  const Tensor table = random_tensor({4, 3}).requires_grad_(),
               none = zeros({0}, {.dtype = DType::int64});
  CHECK(embedding(table, none).shape() == Shape{0, 3});
  CHECK(embedding(table, zeros({2, 0}, {.dtype = DType::int64})).shape() == Shape{2, 0, 3});
  CHECK(index_select(table, 1, none).shape() == Shape{4, 0});
  CHECK(index_select(zeros({2, 0}), 0, tensor({1, 0, 1})).shape() == Shape{3, 0});
  CHECK(embedding(zeros({3, 0}), tensor({1, 2})).shape() == Shape{2, 0});
  embedding(table, none).sum().backward();
  CHECK_EXACT(table.grad(), Array({4, 3}, 0.0));
}

TEST_CASE("index: an index out of range is refused, wherever it stands", "[index][errors]") {
  const Tensor table = random_tensor({4, 3});
  for (const std::int64_t wrong :
       {std::int64_t{4}, std::int64_t{-1}, std::int64_t{-5}, std::int64_t{1} << 31,
        (std::int64_t{1} << 32) + 1, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()})
    for (std::size_t place = 0; place < 20; place += 19) {
      std::vector<std::int64_t> v(20, 1);
      v[place] = wrong;
      INFO(wrong << " at " << place);
      CHECK_THROWS_TEXT(IndexError, str("embedding: expected indices in [0, 4), got ", wrong),
                        awaited(embedding(table, tensor(v))));
      CHECK_THROWS_TEXT(IndexError, "index_select: expected indices in [0, 4), got ",
                        awaited(index_select(table, 0, tensor(v))));
      CHECK_THROWS_AS(awaited(index_select(table, 1, tensor(v))), IndexError);
      if (wrong != -1)
        CHECK_THROWS_TEXT(IndexError, str("index: expected indices in [-4, 4), got ", wrong),
                          awaited(table[tensor(v)]));
    }
  CHECK_THROWS_AS(awaited(embedding(zeros({0, 3}), tensor({0}))), IndexError);
  CHECK(table[tensor({-1})].to_vector<float>() == table[3].to_vector<float>());
}

TEST_CASE("index: what does not fit is refused", "[index][errors]") {
  const Tensor table = zeros({4, 3}), index = tensor({1, 2});
  for (const DType t : {DType::int32, DType::uint8, DType::bool_, DType::float32, DType::float64}) {
    CHECK_THROWS_TEXT(DTypeError, str("embedding: expected *int64*got ", t),
                      embedding(table, index.to(t)));
    CHECK_THROWS_TEXT(DTypeError, "index_select: expected *int64*got ",
                      index_select(table, 0, index.to(t)));
    CHECK_THROWS_TEXT(DTypeError, "int64", table[index.to(t)]);
  }
  CHECK_THROWS_TEXT(ShapeError, "embedding: expected weight [rows, width], got [4]",
                    embedding(zeros({4}), index));
  CHECK_THROWS_TEXT(ShapeError, "embedding: ", embedding(zeros({4, 3, 2}), index));
  CHECK_THROWS_TEXT(ShapeError, "index_select: expected *rank 1*got *",
                    index_select(table, 0, tensor({{1, 2}})));
  CHECK_THROWS_TEXT(ShapeError, "index_select: ", index_select(table, 0, tensor(1)));
  CHECK_THROWS_TEXT(IndexError, "index_select: ", index_select(table, 2, index));
  CHECK_THROWS_TEXT(IndexError, "index_select: ", index_select(table, -3, index));
  CHECK_THROWS_TEXT(DeviceError, here("embedding: expected *got cpu:0 and cpu:1"),
                    embedding(table, index.to(there())));
  CHECK_THROWS_TEXT(DeviceError, here("index_select: expected *got cpu:0 and cpu:1"),
                    index_select(table, 0, index.to(there())));
  CHECK_THROWS_AS(tensor(1.0)[index], ArgumentError);
  // More dims than there may be.
  CHECK_THROWS_AS(on_device::zeros(Shape::filled(
                      5, 1))[on_device::zeros(Shape::filled(5, 1), {.dtype = DType::int64})],
                  ShapeError);
}

}  // namespace braid::test::on_device
