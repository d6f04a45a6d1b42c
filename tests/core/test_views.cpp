// Tests of the arguments that views reject, including extreme ones. test_ops*.cpp tests values,
// layouts and gradients of the reshape family.
#include <algorithm>

#include "reference/views.hpp"
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

const Whole kHostile{kMin,
                     kMin + 1,
                     -(std::int64_t{1} << 32),
                     -7,
                     -4,
                     -3,
                     -1,
                     0,
                     1,
                     2,
                     3,
                     4,
                     7,
                     std::int64_t{1} << 31,
                     (std::int64_t{1} << 32) + 1,
                     kMax - 1,
                     kMax};

/// Checks that f() returns this array if the arguments are legal, and throws an E otherwise.
template <class E, class F>
std::string agrees(bool legal, const F& f, const std::function<Array()>& want) {
  try {
    const Tensor got = f();
    return legal ? exact(got, want()) : str("accepted, shape ", got.shape());
  } catch (const E& e) {
    return legal ? str("refused: ", e.what()) : "";
  }
}

bool is_dim(std::int64_t d, std::int64_t rank) { return d >= -rank && d < rank; }

}  // namespace

TEST_CASE("views: select takes what exists and refuses the rest", "[views][errors]") {
  const Tensor x = random_tensor({3, 4});
  const Array a = array_of(x);
  for (const std::int64_t d : kHostile)
    for (const std::int64_t i : kHostile) {
      INFO("dim " << d << " index " << i);
      const bool legal =
          is_dim(d, 2) &&
          is_dim(i, reference::at(a.shape, reference::wrap(is_dim(d, 2) ? d : 0, 2)));
      CHECK(agrees<IndexError>(
                legal, [&] { return x.select(d, i); },
                [&] { return reference::select(a, d, i); }) == "");
    }
  CHECK_THROWS_TEXT(IndexError, "select: ", x[-4]);
  CHECK_THROWS_TEXT(IndexError, "select: ", zeros({0})[0]);
  CHECK_THROWS_TEXT(IndexError, "select: ", tensor(1.0)[0]);
}

TEST_CASE("views: slice clamps its bounds as Python does", "[views][errors]") {
  const Tensor x = random_tensor({3, 4});
  const Array a = array_of(x);
  // the same meaning, without overflow in the reference
  const auto bounded = [](std::int64_t v) { return std::clamp<std::int64_t>(v, -100, 100); };
  for (const std::int64_t start : kHostile)
    for (const std::int64_t end : kHostile)
      for (const std::int64_t step : kHostile)
        for (const std::int64_t dim : {0, 1, -1, -2}) {
          const std::string problem = agrees<ArgumentError>(
              step >= 1, [&] { return x.slice(dim, start, end, step); },
              [&] {
                return reference::slice(a, dim, bounded(start), bounded(end), bounded(step));
              });
          if (!problem.empty())
            FAIL_CHECK("dim " << dim << " [" << start << ", " << end << ") step " << step << ": "
                              << problem);
        }
  for (const std::int64_t d : kHostile)
    if (!is_dim(d, 2)) CHECK_THROWS_TEXT(IndexError, "slice: ", x.slice(d, 0, 1));
}

TEST_CASE("views: narrow refuses what is not inside", "[views][errors]") {
  const Tensor x = random_tensor({3, 4});
  const Array a = array_of(x);
  for (const std::int64_t start : kHostile)
    for (const std::int64_t length : kHostile) {
      INFO("start " << start << " length " << length);
      const std::int64_t first = start < 0 && start >= -4 ? start + 4 : start;
      const bool legal = first >= 0 && first <= 4 && length >= 0 && length <= 4 - first;
      CHECK(agrees<ArgumentError>(
                legal, [&] { return x.narrow(1, start, length); },
                [&] { return reference::slice(a, 1, first, first + length); }) == "");
    }
}

TEST_CASE("views: transpose, t and permute refuse wrong dims", "[views][errors]") {
  const Tensor x = random_tensor({3, 4, 2});
  for (const std::int64_t a : kHostile)
    for (const std::int64_t b : kHostile) {
      INFO(a << ", " << b);
      CHECK(agrees<IndexError>(
                is_dim(a, 3) && is_dim(b, 3), [&] { return x.transpose(a, b); },
                [&] { return reference::transpose(array_of(x), a, b); }) == "");
    }
  CHECK_THROWS_TEXT(ShapeError, "t: expected at most 2 dimensions, got [3, 4, 2]", x.t());
  CHECK(tensor(1.0).t().shape() == Shape{});
  for (const std::int64_t d : kHostile)
    if (d != 2 && d != -1) CHECK_THROWS_AS(x.permute({0, 1, d}), ArgumentError);
  CHECK(tensor(1.0).permute({}).shape() == Shape{});
}

TEST_CASE("views: reshape keeps the number of elements", "[views][errors]") {
  const Tensor x = random_tensor({3, 4});
  for (const std::int64_t a : kHostile)
    for (const std::int64_t b : kHostile) {
      const bool legal = (a >= 0 && b >= 0 && a <= 12 && b <= 12 && a * b == 12) ||
                         (a == -1 && b > 0 && b <= 12 && 12 % b == 0) ||
                         (b == -1 && a > 0 && a <= 12 && 12 % a == 0);
      INFO(a << ", " << b);
      CHECK(agrees<ShapeError>(
                legal, [&] { return x.reshape({a, b}); },
                [&] { return reference::reshape(array_of(x), {a, b}); }) == "");
      CHECK(agrees<ShapeError>(
                legal, [&] { return x.view({a, b}); },
                [&] { return reference::reshape(array_of(x), {a, b}); }) == "");
    }
  // Views of an empty tensor.
  const Tensor none = zeros({0, 3});
  CHECK(none.reshape({3, 0, 7}).shape() == Shape{3, 0, 7});
  CHECK(none.reshape({-1, 3}).shape() == Shape{0, 3});
  CHECK_THROWS_TEXT(ShapeError, "reshape: expected *12*got *[5, 3]", x.reshape({5, 3}));
  CHECK_THROWS_TEXT(ShapeError, "reshape: ", none.reshape({-1, 0}));  // any size would fit
  CHECK_THROWS_TEXT(ShapeError, "reshape: ", none.reshape({1}));
  // 2^32 * 2^32 wraps to 0, but is not 0.
  CHECK_THROWS_AS(none.reshape({std::int64_t{1} << 32, std::int64_t{1} << 32}), ShapeError);
}

TEST_CASE("views: view refuses where reshape copies", "[views][errors]") {
  const Tensor x = random_tensor({2, 3, 4});
  const Tensor t = x.transpose(1, 2);
  CHECK_THROWS_TEXT(LayoutError, "view: ", t.view({24}));
  CHECK_THROWS_TEXT(LayoutError, "view: ", t.view({2, 12}));
  // splitting a dim needs no copy, and the outer dims merge
  for (const Tensor& view :
       {t.view({2, 2, 2, 3}), t.reshape({2, 2, 2, 3}), x.slice(2, 0, 4, 2).view({6, 2})})
    CHECK(view.storage() == x.storage());
  CHECK_FALSE(t.reshape({24}).storage() == x.storage());
  CHECK_EXACT(x.slice(2, 0, 4, 2).view({6, 2}),
              reference::reshape(reference::slice(array_of(x), 2, 0, 4, 2), {6, 2}));
  CHECK_THROWS_TEXT(LayoutError, "view: ", x.slice(1, 0, 2).view({16}));
  // strides [12, 4, 1]: there is a gap between the rows
  CHECK_THROWS_TEXT(LayoutError, "view: ", x.slice(1, 0, 1).view({8}));
}

TEST_CASE("views: flatten, squeeze and unsqueeze refuse wrong dims", "[views][errors]") {
  const Tensor x = random_tensor({3, 1, 2});
  for (const std::int64_t d : kHostile) {
    INFO(d);
    if (!is_dim(d, 3)) {
      CHECK_THROWS_TEXT(IndexError, "squeeze: ", x.squeeze(d));
      CHECK_THROWS_TEXT(IndexError, "flatten: ", x.flatten(d));
      CHECK_THROWS_TEXT(IndexError, "flatten: ", x.flatten(0, d));
    }
    if (!is_dim(d, 4)) CHECK_THROWS_TEXT(IndexError, "unsqueeze: ", x.unsqueeze(d));
  }
  CHECK(x.flatten(1, 1).shape() == Shape{3, 1, 2});
  CHECK_THROWS_TEXT(ShapeError, "expected at most 8 dimensions, got 9",
                    on_device::zeros(Shape::filled(8, 1)).unsqueeze(0));
  CHECK(tensor(1.0).unsqueeze(-1).shape() == Shape{1});
  CHECK(tensor(1.0).squeeze().shape() == Shape{});
}

TEST_CASE("views: expand repeats dims of size 1 only", "[views][errors]") {
  const Tensor x = random_tensor({3, 1});
  for (const std::int64_t a : kHostile)
    for (const std::int64_t b :
         {std::int64_t{-1}, std::int64_t{1}, std::int64_t{0}, std::int64_t{4}}) {
      INFO(a << ", " << b);
      CHECK(agrees<ShapeError>(
                a == 3 || a == -1, [&] { return x.expand({a, b}); },
                [&] { return reference::expand(array_of(x), {3, b == -1 ? 1 : b}); }) == "");
    }
  CHECK_THROWS_TEXT(ShapeError, "expand: ", x.expand({-2, 3, 1}));
  CHECK_THROWS_AS(x.expand({kMax, 3, 4}), ShapeError);
  CHECK_THROWS_AS(x.expand({std::int64_t{1} << 32, std::int64_t{1} << 31, 3, 1}), ShapeError);
  CHECK(x.expand({0, 3, 1}).numel() == 0);
}

TEST_CASE("views: split gives views of one storage; sizes whose sum wraps are refused",
          "[views][errors]") {
  const Tensor x = random_tensor({4, 2});
  CHECK(split(x, Whole{4}).size() == 1);
  CHECK(split(x, Whole{1, 3})[1].storage() == x.storage());
  CHECK_THROWS_TEXT(ShapeError, "split: ", split(x, Whole{kMax, kMax, 6}));  // wraps to 4
}

TEST_CASE("views: what lies channels last is viewed by reshape alone, and the text says so",
          "[views][errors]") {
  const Tensor y = conv2d(ones({2, 3, 4, 4}), ones({5, 3, 3, 3}));
  CHECK_THROWS_TEXT(LayoutError, "view: expected a tensor whose strides allow shape ",
                    y.view({2, -1}));
  CHECK_THROWS_TEXT(LayoutError, "; use reshape", y.view({-1}));
  CHECK(y.reshape({2, -1}).shape() == Shape{2, 20});
}

TEST_CASE("views: diagonals of a tensor without elements", "[views]") {
  const Tensor x = zeros({2, 3, 0});
  check_shapes({{x.diagonal(), {0, 2}},
                {x.diagonal(-1), {0, 1}},
                {x.diagonal(-2), {0, 0}},
                {x.diagonal(2), {0, 1}},
                {x.diagonal(5), {0, 0}},
                {x.diagonal(1, 0, 2), {3, 0}},
                {x.diagonal(-1, 1, 2), {2, 0}}});
  const Tensor w = zeros({2, 3, 0}).requires_grad_();
  w.diagonal(-1).sum().backward();
  CHECK(w.grad().shape() == Shape{2, 3, 0});
}

}  // namespace braid::test::on_device
