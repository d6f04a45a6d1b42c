// cat, stack and split: sizes, types, empty parts, errors.
#include <braid/core/ops/join.hpp>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "reference/index.hpp"
#include "reference/views.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {

TEST_CASE("join: cat of parts of every size, along every dim, in every type", "[join]") {
  Numbers numbers(12);
  for (int round = 0; round < 150; ++round) {
    const std::int64_t rank = numbers.integer(1, 5), dim = numbers.integer(-rank, rank);
    Sizes shape;
    for (std::int64_t i = 0; i < rank; ++i)
      shape.push_back(numbers.integer(round % 10 == 0 ? 0 : 1, 18));
    const DType t = all_dtypes()[static_cast<std::size_t>(round % 8)];
    const Device device = test_devices()[static_cast<std::size_t>(round) % test_devices().size()];
    std::vector<Tensor> parts;
    std::vector<Array> arrays;
    for (std::int64_t i = numbers.integer(1, 6); i > 0; --i) {
      reference::at(shape, reference::wrap(dim, rank)) = numbers.integer(0, 20);
      const std::vector<Layout> all = layouts(shape);
      const Layout& layout =
          all[static_cast<std::size_t>(numbers.integer(0, static_cast<std::int64_t>(all.size())))];
      parts.push_back(
          strided(shape, layout.strides, layout.offset, t, device, [&] { return numbers.of(t); }));
      arrays.push_back(array_of(parts.back()));
    }
    INFO("round " << round << ", dim " << dim << " of " << parts[0].shape());
    const Tensor joined = cat(parts, dim);
    CHECK_EXACT(joined, reference::cat(arrays, dim));
    CHECK(joined.dtype() == t);
    CHECK(joined.is_contiguous());
    std::vector<std::int64_t> sizes;
    for (const Tensor& p : parts) sizes.push_back(p.size(dim));
    const std::vector<Tensor> again = split(joined, sizes, dim);
    REQUIRE(again.size() == parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK_SAME_BITS(again[i], parts[i]);
      CHECK(again[i].storage() == joined.storage());
    }
  }
}

TEST_CASE("join: one part is copied", "[join]") {
  const Tensor x = random_tensor({2, 3});
  const Tensor y = cat({x});
  CHECK_FALSE(y.storage() == x.storage());
  CHECK_SAME_BITS(y, x);
  CHECK_FALSE(stack({x}).storage() == x.storage());
}

TEST_CASE("join: stack puts a new dim anywhere", "[join]") {
  for (const std::int64_t dim : {0, 1, 2, -1, -2, -3}) {
    const Tensor a = random_tensor({3, 4}), b = random_tensor({4, 3}, DType::float32, {}, 2).t();
    INFO(dim);
    CHECK_EXACT(stack({a, b, a}, dim),
                reference::stack({array_of(a), array_of(b), array_of(a)}, dim));
  }
  CHECK(stack({tensor(1.0), tensor(2.0)}).to_vector<double>() == std::vector<double>{1, 2});
  CHECK(stack({zeros({0}), zeros({0})}).shape() == Shape{2, 0});
}

TEST_CASE("join: many parts, one of them several times", "[join][gradients]") {
  const Tensor x = random_tensor({2, 3}, DType::float64).requires_grad_(),
               w = random_tensor({120, 3}, DType::float64);
  std::vector<Tensor> parts(60, x);
  const Tensor y = cat(parts);
  CHECK(y.shape() == Shape{120, 3});
  (y * w).sum().backward();
  Array want({2, 3});
  for (std::int64_t i = 0; i < 360; ++i) want[i % 6] += array_of(w)[i];
  CHECK_CLOSE(x.grad(), want, tolerance(DType::float64));
  // Only what wants a gradient gets one.
  const Tensor a = random_tensor({1, 2}, DType::float64).requires_grad_(),
               b = random_tensor({2, 2}, DType::float64);
  cat({b, a, b}).sum().backward();
  CHECK_EXACT(a.grad(), Array({1, 2}, 1.0));
  CHECK_FALSE(b.grad().defined());
}

TEST_CASE("join: gradients of split parts that nobody used are zero", "[join][gradients]") {
  const Tensor x = random_tensor({5}, DType::float64).requires_grad_();
  const std::vector<Tensor> parts = split(x * 2.0, std::vector<std::int64_t>{1, 3, 1});
  parts[1].sum().backward();
  CHECK(x.grad().to_vector<double>() == std::vector<double>{0, 2, 2, 2, 0});
}

TEST_CASE("join: what does not fit is refused", "[join][errors]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_TEXT(ArgumentError, "cat: expected *got *", cat(std::vector<Tensor>{}));
  CHECK_THROWS_TEXT(ArgumentError, "stack: expected *got *", stack(std::vector<Tensor>{}));
  CHECK_THROWS_TEXT(ShapeError, "cat: expected *[2, 3]*got *[2, 4]", cat({x, zeros({2, 4})}));
  CHECK_THROWS_TEXT(ShapeError, "cat: ", cat({x, zeros({3, 3})}, 1));
  CHECK_THROWS_TEXT(ShapeError, "cat: ", cat({x, zeros({2, 3, 1})}));
  CHECK_THROWS_TEXT(ShapeError, "cat: ", cat({zeros({2, 3, 1}), x}));
  CHECK_THROWS_TEXT(ShapeError, "cat: ", cat({tensor(1.0), tensor(2.0)}));
  CHECK_THROWS_TEXT(ShapeError, "stack: expected *got *[2, 3] and [3, 3]",
                    stack({x, zeros({3, 3})}));
  CHECK_THROWS_TEXT(ShapeError, "stack: ", stack({x, zeros({3})}));
  CHECK_THROWS_TEXT(IndexError, "cat: expected *-2*1*got 2", cat({x, x}, 2));
  CHECK_THROWS_TEXT(IndexError, "cat: ", cat({x, x}, -3));
  CHECK_THROWS_TEXT(IndexError, "stack: expected *-3*2*got 3", stack({x, x}, 3));
  CHECK_THROWS_TEXT(IndexError, "stack: ", stack({x, x}, -4));
  for (const DType t : all_dtypes()) {
    if (t == DType::float32) continue;
    CHECK_THROWS_TEXT(DTypeError, str("cat: expected one dtype, got float32 and ", t),
                      cat({x, x.to(t)}));
    CHECK_THROWS_TEXT(DTypeError, str("stack: expected one dtype, got float32 and ", t),
                      stack({x, x.to(t)}));
  }
  CHECK_THROWS_TEXT(DeviceError, here("cat: expected *got cpu:0 and cpu:1"),
                    cat({x, x.to(there())}));
  CHECK_THROWS_TEXT(DeviceError, here("stack: expected *got cpu:0 and cpu:1"),
                    stack({x, x.to(there())}));
  CHECK_THROWS_AS(cat({x, Tensor()}), Error);
  CHECK_THROWS_AS(stack({on_device::zeros(Shape::filled(8, 1))}), ShapeError);
  // Sizes whose sum overflows.
  const Tensor huge = zeros({1, 0}, {.dtype = DType::uint8}).expand({std::int64_t{1} << 62, 0});
  CHECK_THROWS_AS(cat({huge, huge}), ShapeError);
}

}  // namespace braid::test::on_device
