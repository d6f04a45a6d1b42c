#include <array>
#include <span>

#include "reference/elementwise.hpp"
#include "shorthand.hpp"

namespace braid::test {

TEST_CASE("shape: sizes, comparison, changes", "[shape]") {
  Shape s{2, 3, 4};
  CHECK(s.rank() == 3);
  CHECK(s[1] == 3);
  CHECK(s.back() == 4);
  CHECK(s.numel() == 24);
  CHECK(s.span().size() == 3);
  CHECK(Shape{}.numel() == 1);
  CHECK(Shape{}.empty());
  CHECK(Shape{3, 0, 2}.numel() == 0);
  CHECK(s == Shape(Whole{2, 3, 4}));
  CHECK_FALSE(s == Shape{2, 3});
  CHECK_FALSE(s == Shape{2, 3, 5});
  CHECK(Shape::filled(3, 7) == Shape{7, 7, 7});
  s.insert(1, 9);
  CHECK(s == Shape{2, 9, 3, 4});
  s.insert(4, 5);
  CHECK(s == Shape{2, 9, 3, 4, 5});
  s.erase(0);
  CHECK(s == Shape{9, 3, 4, 5});
  s.erase(3);
  CHECK(s == Shape{9, 3, 4});
  s[0] = 1;
  s.push_back(6);
  CHECK(s == Shape{1, 3, 4, 6});
  CHECK(Whole(s.begin(), s.end()) == Whole{1, 3, 4, 6});
}

TEST_CASE("int lists: of any length, from braces, a number, vectors, spans and shapes", "[shape]") {
  const auto numbers = [](const IntList& list) { return Whole(list.begin(), list.end()); };
  CHECK(numbers({}) == Whole{});
  CHECK(numbers({1, -2}) == Whole{1, -2});
  CHECK(numbers(3) == Whole{3});
  CHECK(numbers(Whole{4, 5}) == Whole{4, 5});
  CHECK(numbers(std::span<const std::int64_t>(Whole{6, 7}).first(1)) == Whole{6});
  CHECK(numbers(std::array<std::int64_t, 2>{8, 9}) == Whole{8, 9});
  CHECK(numbers(Shape{2, 3}) == Whole{2, 3});
  CHECK(str(IntList{1, -2}, IntList{}, IntList{7}) == "[1, -2][][7]");
  CHECK(IntList{1, 2} == IntList(Shape{1, 2}));
  CHECK_FALSE(IntList{1, 2} == IntList{1});
  // 16 numbers are inline, 17 are not
  for (const std::size_t n : {std::size_t{15}, std::size_t{16}, std::size_t{17}}) {
    Whole many(n);
    for (std::size_t i = 0; i < n; ++i) many[i] = static_cast<std::int64_t>(i);
    IntList list = many, copy = list;
    CHECK(numbers(list) == many);
    copy[n - 1] = -1;
    CHECK(list[n - 1] == static_cast<std::int64_t>(n - 1));
    CHECK(copy[n - 1] == -1);
    const IntList moved = std::move(list);
    CHECK(numbers(moved) == many);
    list = {1};
    CHECK(numbers(list) == Whole{1});
  }
}

TEST_CASE("int lists: one number is one dim", "[shape]") {
  const Tensor x = arange(6, {.dtype = DType::float32}).reshape({2, 3});
  CHECK(list(sum(x, 1)) == list(sum(x, {1})));
  CHECK(list(x.mean(0)) == list(x.mean({0})));
  CHECK(list(logsumexp(x, -1, true)) == list(logsumexp(x, {-1}, true)));
  CHECK(list(flip(x, 1)) == List{2, 1, 0, 5, 4, 3});
  CHECK(list(roll(x, 1, 1)) == List{2, 0, 1, 5, 3, 4});
  CHECK(split(x, {1, 2}, 1)[1].shape() == Shape{2, 2});
  CHECK(list(sum(x, std::array<std::int64_t, 2>{0, 1})) == List{15});
}

TEST_CASE("int lists: longer than the rank, an error that names the op", "[shape][errors]") {
  const Tensor x = ones({2, 3});
  const Whole nine(9, 0), eighteen(18, 1);
  CHECK_THROWS_TEXT(ShapeError, "sum: expected each dim once, got [0, 0", sum(x, nine));
  CHECK_THROWS_TEXT(ShapeError, "flip: expected each dim once, got [0, 0", flip(x, nine));
  CHECK_THROWS_TEXT(ShapeError, "permute: expected 2 dims, got [0, 0", x.permute(nine));
  CHECK_THROWS_TEXT(ShapeError, "roll: expected a shift for each dim", roll(x, nine, {0}));
  CHECK_THROWS_TEXT(ShapeError, "movedim: expected lists of one length", movedim(x, nine, {0}));
  CHECK_THROWS_TEXT(ArgumentError, "tensordot: expected each dim of a once",
                    tensordot(x, x, nine, nine));
  CHECK_THROWS_TEXT(ShapeError, "expected at most 8 dimensions, got 9", repeat(x, Whole(9, 1)));
  CHECK_THROWS_TEXT(ShapeError, "pad: expected two numbers for each of at most 2 dims, got [1, 1",
                    pad(x, eighteen));
}

TEST_CASE("pad: six dims and eight", "[shape]") {
  for (const int rank : {6, 8})
    for (const PadMode mode : {PadMode::constant, PadMode::reflect, PadMode::replicate}) {
      INFO(rank << ", mode " << static_cast<int>(mode));
      const Shape shape = Shape::filled(rank, 2);
      const Tensor x = random_tensor(Sizes(shape.begin(), shape.end()), DType::float64)
                           .detach()
                           .requires_grad_();
      // One element before every dim, none after.
      Whole sizes;
      for (int d = 0; d < rank; ++d) sizes.insert(sizes.end(), {1, 0});
      const Tensor y = pad(x, sizes, mode, 5);
      CHECK(y.shape() == Shape::filled(rank, 3));
      Tensor inner = y, first = y.detach();
      for (int d = 0; d < rank; ++d) {
        inner = inner.narrow(d, 1, 2);
        first = first.select(0, 0);
      }
      CHECK(list(inner) == list(x));
      const List of_x = list(x);
      CHECK(first.item<double>() == (mode == PadMode::constant  ? 5
                                     : mode == PadMode::reflect ? of_x.back()
                                                                : of_x.front()));
      y.sum().backward();
      const double all = mode == PadMode::constant ? std::pow(2, rank) : std::pow(3, rank);
      CHECK(x.grad().sum().item<double>() == all);
    }
  CHECK_THROWS_TEXT(ShapeError, "pad: expected two numbers for each of at most 6 dims, got [1",
                    pad(ones(Shape::filled(6, 1)), Whole(14, 1)));
  CHECK_THROWS_TEXT(ShapeError, "pad: expected two numbers for each of at most 6 dims, got [1",
                    pad(ones(Shape::filled(6, 1)), Whole(11, 1)));
}

TEST_CASE("shape: prints as a list; dense strides", "[shape]") {
  CHECK(str(Shape{30, 5}, Shape{}, Shape{7}, Shape{1, -1, 0}) == "[30, 5][][7][1, -1, 0]");
  CHECK(contiguous_strides({2, 3, 4}) == Shape{12, 4, 1});
  CHECK(contiguous_strides({}) == Shape{});
  CHECK(contiguous_strides({5}) == Shape{1});
  CHECK(contiguous_strides({2, 1, 4}) == Shape{4, 4, 1});
}

TEST_CASE("shape: more dims than there may be are refused", "[shape][errors]") {
  static_assert(kMaxRank == 8);
  CHECK(Shape{1, 2, 3, 4, 5, 6, 7, 8}.rank() == 8);
  CHECK_THROWS_TEXT(ShapeError, "expected *8*got *9", Shape{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK_THROWS_TEXT(ShapeError, "got *100", Shape(std::vector<std::int64_t>(100, 1)));
  Shape full = Shape::filled(8, 1);
  CHECK_THROWS_TEXT(ShapeError, "got *9", full.push_back(1));
  CHECK_THROWS_TEXT(ShapeError, "got *9", full.insert(0, 1));
  CHECK(full == Shape::filled(8, 1));
}

TEST_CASE("shape: broadcasting follows NumPy's rule for every pair", "[shape]") {
  // Every pair of shapes of rank 0 to 3 with sizes 0 to 3, against a plain implementation.
  std::vector<Sizes> all{{}};
  for (std::int64_t a = 0; a < 4; ++a) {
    all.push_back({a});
    for (std::int64_t b = 0; b < 4; ++b) {
      all.push_back({a, b});
      for (std::int64_t c = 0; c < 4; ++c) all.push_back({a, b, c});
    }
  }
  int good = 0, bad = 0, wrong = 0;
  for (const Sizes& a : all)
    for (const Sizes& b : all) {
      Sizes want;
      bool possible = true;
      try {
        want = reference::broadcast(a, b);
      } catch (const std::logic_error&) {
        possible = false;
      }
      try {
        const Shape got = broadcast_shapes("add", Shape(a), Shape(b));
        wrong += !possible || sizes_of(got) != want;
        ++good;
      } catch (const ShapeError&) {
        wrong += possible;
        ++bad;
      }
    }
  CHECK(wrong == 0);
  CHECK(good > 1000);
  CHECK(bad > 1000);
}

TEST_CASE("shape: what does not broadcast is refused with both shapes", "[shape][errors]") {
  CHECK_THROWS_TEXT(ShapeError, "mul: expected *got *[2, 3] and [2, 4]",
                    broadcast_shapes("mul", {2, 3}, {2, 4}));
  CHECK_THROWS_TEXT(ShapeError, "sub: ", broadcast_shapes("sub", {3}, {4}));
  CHECK_THROWS_TEXT(ShapeError, "sub: ", broadcast_shapes("sub", {0}, {2}));
}

TEST_CASE("shape: the number of elements is checked, overflow included", "[shape][errors]") {
  constexpr std::int64_t k31 = std::int64_t{1} << 31, k32 = std::int64_t{1} << 32;
  CHECK(checked_numel("empty", {2, 3}, 4) == 6);
  CHECK(checked_numel("empty", {}, 8) == 1);
  CHECK(checked_numel("empty", {5, 0, 7}, 8) == 0);
  CHECK(checked_numel("empty", {kMax}, 1) == kMax);
  CHECK(checked_numel("empty", {k31 << 29}, 4) == k31 << 29);
  CHECK_THROWS_TEXT(ShapeError, "empty: *[2, -1]", checked_numel("empty", {2, -1}, 4));
  struct Wrong {
    Shape shape;
    std::size_t size;
  };
  for (const Wrong& w : std::vector<Wrong>{{{kMin}, 1},
                                           {{kMax}, 2},
                                           {{kMax, kMax}, 1},
                                           {{k31, k31, 2}, 1},
                                           {{k32 + 1, k31}, 8},
                                           {{k31 << 30}, 4},
                                           // wraps to 0 or to a small number
                                           {{k32, k32}, 1},
                                           {{k31 << 31, 2, 2, 2}, 1},
                                           // a negative size is invalid even next to a size of 0
                                           {{0, -1}, 1},
                                           {{-3, 0}, 1}})
    CHECK_THROWS_TEXT(ShapeError, "zeros: ", checked_numel("zeros", w.shape, w.size));
}

TEST_CASE("shape: dims count from the end if negative", "[shape][errors]") {
  CHECK(wrap_dim("sum", 0, 3) == 0);
  CHECK(wrap_dim("sum", 2, 3) == 2);
  CHECK(wrap_dim("sum", -1, 3) == 2);
  CHECK(wrap_dim("sum", -3, 3) == 0);
  CHECK(wrap_dim("sum", 0, 0) == 0);
  CHECK(wrap_dim("sum", -1, 0) == 0);
  CHECK_THROWS_TEXT(IndexError, "sum: *expected*-3*2*got *3", wrap_dim("sum", 3, 3));
  for (const std::int64_t d : {std::int64_t{-4}, kMin, kMax, (std::int64_t{1} << 32) + 1})
    CHECK_THROWS_TEXT(IndexError, str("sum: *got ", d), wrap_dim("sum", d, 3));
  for (const std::int64_t d : {1, -2})
    CHECK_THROWS_TEXT(IndexError, "sum: ", wrap_dim("sum", d, 0));
}

TEST_CASE("shape: lists of more views than memory holds are refused", "[shape][errors]") {
  const std::int64_t huge = std::int64_t{1} << 40;
  const Tensor none = zeros({0}), wide = zeros({1}).expand({huge});
  const std::string text = "expected at most 16777216 parts, got ";
  CHECK_THROWS_TEXT(ArgumentError, "chunk: " + text + str(kMax), chunk(none, kMax));
  CHECK_THROWS_TEXT(ArgumentError, "chunk: " + text + str(huge), chunk(wide, kMax));
  CHECK_THROWS_TEXT(ArgumentError, "split: " + text + str(huge), split(wide, 1));
  CHECK_THROWS_TEXT(ArgumentError, "unbind: " + text + str(huge), unbind(wide));
  CHECK(chunk(none, 3).size() == 3);
  CHECK(split(wide, huge / 2).size() == 2);
}

TEST_CASE("shape: a product above 2^63 - 1 is an error, and 0 where a size is", "[shape][errors]") {
  const std::int64_t huge = std::int64_t{1} << 40;
  CHECK_THROWS_TEXT(ShapeError, "shape: expected at most 2^63 - 1 elements, got [1099511627776",
                    Shape({huge, huge}).numel());
  CHECK(Shape({huge, huge, 0}).numel() == 0);
  CHECK_THROWS_TEXT(ArgumentError, "group_norm: expected at most 2^63 - 1 groups in all, got ",
                    group_norm(zeros({3, 0, 2}), kMax));
  CHECK_THROWS_TEXT(ArgumentError, "adaptive_avg_pool2d: expected size below 2^31, got 2147483648",
                    adaptive_avg_pool2d(ones({1, 2, 2}), Size2(std::int64_t{1} << 31, 1)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "interpolate: expected a scale_factor that makes sides below 2^31, got 1e+30",
                    interpolate(ones({1, 1, 2, 2}), {.scale_factor = 1e30}));
}

TEST_CASE("shape: interpolate copies between equal sizes, whatever the factor", "[shape]") {
  const Tensor x = random_tensor({1, 2, 2, 3});
  const Interpolation mode = Interpolation::bilinear;
  CHECK_SAME_BITS(interpolate(x, {.scale_factor = 1.3, .mode = mode}), x);
  CHECK_SAME_BITS(interpolate(x, {.scale_factor = Factor2(2, 1.3), .mode = mode}),
                  interpolate(x, {.size = Size2(4, 3), .mode = mode}));
}

TEST_CASE("shape: interpolate takes the factor, or with recompute the ratio of the sizes",
          "[shape]") {
  const Tensor x = random_tensor({1, 2, 5, 7});
  for (const auto mode : {Interpolation::nearest, Interpolation::bilinear}) {
    const Tensor by_size = interpolate(x, {.size = Size2(8, 11), .mode = mode});
    CHECK_SAME_BITS(
        interpolate(x, {.scale_factor = 1.7, .mode = mode, .recompute_scale_factor = true}),
        by_size);
    CHECK(!equal(interpolate(x, {.scale_factor = 1.7, .mode = mode}), by_size));
  }
}

TEST_CASE("shape: what would go through 2^33 times the same number for ever is refused",
          "[shape][errors]") {
  const std::int64_t n = std::int64_t{1} << 40;
  const Tensor x = ones({1}).expand({n}), b = eq(ones({1}), 1).expand({n}),
               i = zeros({1}, {.dtype = DType::int64}).expand({n}), zero = zeros({3}),
               key = ones({1, 1}).expand({n, 1}), query = ones({1, 1});
  const std::string text =
      ": expected at most 2147483648 elements of a view that repeats its memory, got shape [";
  const std::vector<std::pair<const char*, std::function<void()>>> calls{
      {"sum", [&] { (void)sum(x); }},
      {"mean", [&] { (void)mean(x); }},
      {"max", [&] { (void)max(x); }},
      {"argmax", [&] { (void)argmax(x, 0); }},
      {"any", [&] { (void)any(b); }},
      {"count_nonzero", [&] { (void)count_nonzero(b); }},
      {"var", [&] { (void)var(x); }},
      {"logsumexp", [&] { (void)logsumexp(x); }},
      {"masked_select", [&] { (void)masked_select(x, b); }},
      {"scatter", [&] { (void)scatter(zero, 0, i, 1); }},
      {"scatter_add", [&] { (void)scatter_add(zero, 0, i, x); }},
      {"index_add", [&] { (void)index_add(zero, 0, i, x); }},
      {"scaled_dot_product_attention",
       [&] { (void)scaled_dot_product_attention(query, key, key); }}};
  for (const auto& c : calls) CHECK_THROWS_TEXT(ArgumentError, c.first + text, c.second());
  CHECK(sum(zeros({1}).expand({1000})).item<double>() == 0);
  CHECK(lstm(zeros({n, 0, 2}), zeros({0, 3}), zeros({0, 3}), {ones({12, 2}), ones({12, 3}), {}, {}})
            .output.shape() == Shape{n, 0, 3});
  CHECK_THROWS_AS(pad(ones({4}), {n, 0}, PadMode::replicate), OutOfMemoryError);
}

}  // namespace braid::test
