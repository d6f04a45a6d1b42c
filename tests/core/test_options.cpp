// Tests of the second form of the factories, with LibTorch's options, and of tensor() from nested
// containers.
#include <array>
#include <span>

#include "shorthand.hpp"

namespace braid::test {

TEST_CASE("options: every factory takes a dtype, a device or TensorOptions", "[create][options]") {
  const auto built = dtype(kFloat64).device(there()).requires_grad(true);
  const std::vector<Tensor> list{zeros({2}, built),
                                 ones(2, built),
                                 empty({2}, built),
                                 full({2}, 3, built),
                                 arange(2, built),
                                 arange(0, 2, built),
                                 arange(0, 2, 1, built),
                                 linspace(0, 1, 2, built),
                                 logspace(0, 1, 2, 10, built),
                                 eye(2, built),
                                 eye(2, 3, built),
                                 tensor({1, 2}, built),
                                 zeros_like(ones(2), built),
                                 ones_like(ones(2), built),
                                 full_like(ones(2), 4, built),
                                 empty_like(ones(2), built),
                                 rand({2}, built),
                                 randn({2}, built),
                                 uniform({2}, 0, 1, built),
                                 normal(0, 1, {2}, built),
                                 rand_like(ones(2), built),
                                 randn_like(ones(2), built),
                                 tensor(std::vector<float>{1, 2}, built),
                                 tensor(std::array<int, 2>{1, 2}, built)};
  for (std::size_t i = 0; i < list.size(); ++i) {
    INFO("factory " << i);
    CHECK((list[i].dtype() == kFloat64 && list[i].device() == there() && list[i].requires_grad()));
  }
  CHECK((zeros({2}, kInt64).dtype() == kInt64 && zeros({2}, there()).device() == there()));
  CHECK((zeros({2}, kCPU).device() == Device() && zeros({2}, TensorOptions()).dtype() == kFloat));
  CHECK((randint(0, 5, {2}, kInt32).dtype() == kInt32 && randint(5, {2}).dtype() == kInt64));
  CHECK((randint(5, {2}, kFloat).dtype() == kFloat && randperm(3, kInt32).dtype() == kInt32));
  CHECK((zeros({2}, {}).dtype() == kFloat && zeros({2}, {.dtype = kBool}).dtype() == kBool));
  CHECK(zeros(3, requires_grad()).requires_grad());
  CHECK(zeros(3, device(there())).device() == there());
  CHECK((TensorOptions().dtype() == kFloat && !TensorOptions().has_dtype() &&
         !TensorOptions().has_device() && TensorOptions(kCPU).has_device()));
  CHECK(TensorOptions().device() == get_default_device());
}

TEST_CASE("options: logspace, eye, normal, bernoulli", "[create][options]") {
  CHECK(list(logspace(0, 2, 3)) == List{1, 10, 100});
  CHECK(list(logspace(0, 3, 4, 2)) == List{1, 2, 4, 8});
  CHECK(list(eye(2, 3)) == List{1, 0, 0, 0, 1, 0});
  CHECK(list(eye(3, 1)) == List{1, 0, 0});
  CHECK(eye(0, 2).shape() == Shape{0, 2});
  CHECK_THROWS_TEXT(ArgumentError, "logspace: expected steps >= 0, got -1",
                    (void)logspace(0, 1, -1));
  CHECK_THROWS_AS((void)logspace(0, 1, 2, 10, kInt64), DTypeError);
  CHECK_THROWS_TEXT(ArgumentError, "normal: expected std >= 0, got -1", (void)normal(0, -1, {2}));
  CHECK_THROWS_AS((void)normal(0, 1, {2}, kInt64), DTypeError);
  CHECK_THROWS_AS((void)bernoulli(ones({2}, kInt64)), DTypeError);
  CHECK(list(bernoulli(tensor({1.0, 0.0, 1.0}))) == List{1, 0, 1});
  CHECK(list(normal(5, 0, {2})) == List{5, 5});
}

TEST_CASE("options: tensors of nested containers", "[create][options]") {
  const std::vector<std::vector<float>> rows{{1, 2}, {3, 4}};
  const std::array<std::array<int, 2>, 2> array{{{1, 2}, {3, 4}}};
  const double numbers[] = {1, 2, 3};
  const Tensor a = tensor(rows), b = tensor(array), c = tensor(std::span(numbers)),
               d = tensor(std::vector<std::vector<bool>>{{true}, {false}}),
               e = tensor(std::vector<std::array<std::int64_t, 1>>{{kMax}}),
               f = tensor(std::vector<short>{1, 2}), g = tensor(rows, kFloat64);
  CHECK((a.dtype() == kFloat && a.shape() == Shape{2, 2} && list(a) == List{1, 2, 3, 4}));
  CHECK((b.dtype() == kInt32 && list(b) == List{1, 2, 3, 4}));
  CHECK((c.dtype() == kFloat64 && c.shape() == Shape{3}));
  CHECK((d.dtype() == kBool && d.shape() == Shape{2, 1}));
  CHECK((e.dtype() == kInt64 && whole(e) == Whole{kMax}));
  CHECK((f.dtype() == kInt64 && g.dtype() == kFloat64));
  CHECK(tensor(std::vector<std::vector<float>>{{}, {}}).shape() == Shape{2, 0});
  CHECK(tensor(std::vector<std::vector<float>>{}).shape() == Shape{0});
  CHECK(list(tensor({tensor({2.5}).item(), Scalar(1)})) == List{2.5, 1});
  CHECK_THROWS_TEXT(ShapeError, "tensor: expected 2 items at depth 1, got 1",
                    (void)tensor(std::vector<std::vector<float>>{{1, 2}, {3}}));
}

TEST_CASE("options: from_blob with options, strides and a deleter of the pointer",
          "[create][options]") {
  std::vector<float> memory{0, 1, 2, 3, 4, 5};
  void* deleted = nullptr;
  {
    const Tensor x = from_blob(memory.data(), {2, 3}, [&](void* p) { deleted = p; });
    CHECK((list(x) == List{0, 1, 2, 3, 4, 5} && deleted == nullptr));
  }
  CHECK(deleted == memory.data());
  void* const plain = memory.data();
  const Tensor t = from_blob(memory.data(), {3, 2}, {1, 3}, kFloat);
  CHECK(list(t) == List{0, 3, 1, 4, 2, 5});
  CHECK(list(from_blob(plain, {2}, TensorOptions())) == List{0, 1});
  CHECK(from_blob(plain, {3}, kFloat64).dtype() == kFloat64);
  CHECK(from_blob(memory.data(), {2}, requires_grad()).requires_grad());
  CHECK_THROWS_TEXT(DTypeError, "from_blob: expected the pointer's own type float32, got float64",
                    (void)from_blob(memory.data(), {2}, dtype(kFloat64)));
  CHECK_THROWS_TEXT(ShapeError, "from_blob: expected 2 strides, got [1]",
                    (void)from_blob(memory.data(), {3, 2}, {1}));
  CHECK_THROWS_TEXT(ShapeError, "from_blob: expected strides >= 0*",
                    (void)from_blob(memory.data(), {3, 2}, {-1, 1}));
  CHECK_THROWS_TEXT(ShapeError, "from_blob: expected strides >= 0*",
                    (void)from_blob(memory.data(), {3, 2}, {kMax, kMax}));
}

}  // namespace braid::test
