// Tests of cat, stack and split: sizes, dtypes, empty parts, errors.
#include "reference/index.hpp"
#include "reference/views.hpp"
#include "shorthand.hpp"

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

TEST_CASE("join: stack puts a new dim anywhere", "[join]") {
  for (const std::int64_t dim : {0, 1, 2, -1, -2, -3}) {
    const Tensor a = random_tensor({3, 4}), b = random_tensor({4, 3}, DType::float32, {}, 2).t();
    INFO(dim);
    CHECK_EXACT(stack({a, b, a}, dim),
                reference::stack({array_of(a), array_of(b), array_of(a)}, dim));
  }
  CHECK(list(stack({tensor(1.0), tensor(2.0)})) == List{1, 2});
  CHECK(stack({zeros({0}), zeros({0})}).shape() == Shape{2, 0});
  // A single part is copied.
  const Tensor x = random_tensor({2, 3});
  CHECK_FALSE(cat({x}).storage() == x.storage());
  CHECK_FALSE(stack({x}).storage() == x.storage());
  CHECK_SAME_BITS(cat({x}), x);
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
  // Only parts that require a gradient receive one.
  const Tensor a = random_tensor({1, 2}, DType::float64).requires_grad_(),
               b = random_tensor({2, 2}, DType::float64);
  cat({b, a, b}).sum().backward();
  CHECK_EXACT(a.grad(), Array({1, 2}, 1.0));
  CHECK_FALSE(b.grad().defined());
}

TEST_CASE("join: cat leaves out tensors of shape [0], whatever the rank", "[join][gradients]") {
  const Tensor none = empty({0}, {.requires_grad = true}),
               x = random_tensor({2, 3}, DType::float32).requires_grad_();
  for (const std::int64_t dim : {0, 1}) {
    CHECK_SAME_BITS(cat({none, x}, dim), x);
    CHECK(cat({x, none, x}, dim).shape() == (dim == 0 ? Shape{4, 3} : Shape{2, 6}));
    cat({x, none}, dim).sum().backward();
  }
  CHECK(none.grad().shape() == Shape{0});
  CHECK_EXACT(x.grad(), Array({2, 3}, 2.0));
  CHECK(cat({none, none}).shape() == Shape{0});
  CHECK_THROWS_AS(cat({none, x, ones({3})}), ShapeError);
}

TEST_CASE("join: gradients of split parts that nobody used are zero", "[join][gradients]") {
  const auto middle = [](T x) { return split(x * 2.0, Whole{1, 3, 1})[1]; };
  CHECK(gradient_at(middle, {1, 2, 3, 4, 5}) == List{0, 2, 2, 2, 0});
}

TEST_CASE("join: more dims than there may be, and sizes whose sum overflows, are refused",
          "[join][errors]") {
  CHECK_THROWS_AS(stack({on_device::zeros(Shape::filled(8, 1))}), ShapeError);
  const Tensor huge = zeros({1, 0}, {.dtype = DType::uint8}).expand({std::int64_t{1} << 62, 0});
  CHECK_THROWS_AS(cat({huge, huge}), ShapeError);
}

TEST_CASE("join: cat and stack promote dtypes as PyTorch does", "[join][dtype]") {
  const Tensor i = tensor({1, 2}), f = tensor({0.5, 1.5}).requires_grad_(),
               h = ones({2}, {.dtype = DType::float16}), b = tensor({true, false});
  check_lists({{cat({i, f}), {1, 2, 0.5, 1.5}}, {stack({b, i}), {1, 0, 1, 2}}});
  CHECK(cat({i, f}).dtype() == DType::float32);
  CHECK(cat({b, i}).dtype() == DType::int64);
  CHECK(cat({i, h}).dtype() == DType::float16);
  CHECK(stack({h, f, b}).dtype() == DType::float32);
  CHECK(cat({b, b}).dtype() == DType::bool_);
  cat({i, f, h}).sum().backward();
  CHECK(list(f.grad()) == List{1, 1});
}

}  // namespace braid::test::on_device
