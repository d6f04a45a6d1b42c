#include <braid/core/kernel_args/elementwise.hpp>

#include "kernels/kernel_support.hpp"
#include "reference/functions.hpp"
#include "support/sanitized.hpp"

using namespace kernel_test;
using braid::BinaryArgs;
using braid::BinaryOp;

namespace {

const std::vector<BinaryOp> kOps{BinaryOp::add,
                                 BinaryOp::sub,
                                 BinaryOp::mul,
                                 BinaryOp::div,
                                 BinaryOp::maximum,
                                 BinaryOp::minimum,
                                 BinaryOp::relu_backward,
                                 BinaryOp::eq,
                                 BinaryOp::ne,
                                 BinaryOp::lt,
                                 BinaryOp::le,
                                 BinaryOp::gt,
                                 BinaryOp::ge,
                                 BinaryOp::fmod,
                                 BinaryOp::remainder,
                                 BinaryOp::floor_divide};

bool divides(BinaryOp op) {
  return op == BinaryOp::div || (is_function(op) && op != BinaryOp::pow && op != BinaryOp::atan2);
}
bool has(BinaryOp op, DType t) {
  return t != DType::bool_ ||
         (op != BinaryOp::sub && !divides(op) && op != BinaryOp::relu_backward);
}

double wrap(DType t, double x) {
  if (t == DType::uint8)
    return static_cast<double>(static_cast<std::uint8_t>(static_cast<std::int64_t>(x)));
  if (t == DType::bool_) return x != 0;
  return x;
}

double expected_of(BinaryOp op, DType t, double a, double b, double alpha = 1) {
  switch (op) {
    case BinaryOp::add:
      return wrap(t, a + (braid::is_floating(t)
                              ? rounded(t == DType::float64 ? t : DType::float32, alpha * b)
                              : alpha * b));
    case BinaryOp::sub:
      return wrap(t, a - (braid::is_floating(t)
                              ? rounded(t == DType::float64 ? t : DType::float32, alpha * b)
                              : alpha * b));
    case BinaryOp::mul: return wrap(t, a * b);
    case BinaryOp::div: return braid::is_floating(t) ? a / b : std::trunc(a / b);
    case BinaryOp::maximum: return std::isnan(a) || std::isnan(b) ? kNaN : std::max(a, b);
    case BinaryOp::minimum: return std::isnan(a) || std::isnan(b) ? kNaN : std::min(a, b);
    case BinaryOp::relu_backward: return b <= 0 ? 0 : a;
    case BinaryOp::eq: return a == b;
    case BinaryOp::ne: return a != b;
    case BinaryOp::lt: return a < b;
    case BinaryOp::le: return a <= b;
    case BinaryOp::gt: return a > b;
    case BinaryOp::ge: return a >= b;
    case BinaryOp::fmod: return std::fmod(a, b);
    case BinaryOp::remainder: return reference::remainder(a, b);
    case BinaryOp::floor_divide: return reference::floor_divide(a, b);
    default: return kNaN;  // those with a tolerance are in the tests of the ops and of every kernel
  }
}

BinaryArgs args_of(BinaryOp op, DType t, Buffer& out, const void* a, const void* b,
                   const Loop& loop) {
  return BinaryArgs{.op = op,
                    .dtype = t,
                    .out = out.data(),
                    .a = a,
                    .b = b,
                    .scalar = 0,
                    .alpha = 1,
                    .loop = loop};
}

DType result_type(BinaryOp op, DType t) { return braid::is_comparison(op) ? DType::bool_ : t; }

void avoid_zero(Buffer& b) {
  for (std::int64_t i = 0; i < b.size(); ++i)
    if (b[i] == 0) b.put(i, 1);
}

// Runs the loop and compares every element with the reference; nothing else of the output changes.
void check_loop(BinaryOp op, DType t, const Loop& loop, std::int64_t shift) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " n " << loop.n << " rank "
             << loop.rank << " shift " << shift);
  Buffer a(t, extent(loop, 1), shift), b(t, extent(loop, 2), 2 * shift),
      out(result_type(op, t), extent(loop, 0), shift);
  a.pattern(1), b.pattern(2);
  if (divides(op)) avoid_zero(b);
  const auto before = out.bytes();
  kernels().binary(args_of(op, t, out, a.data(), b.data(), loop), stream());
  std::vector<bool> written(before.size());
  std::int64_t wrong = 0;
  const auto element = static_cast<std::int64_t>(braid::size_of(out.dtype()));
  for (std::int64_t i = 0; i < loop.n; ++i) {
    const std::int64_t at = offset(loop, 0, i);
    if (!close(out.dtype(), out[at],
               expected_of(op, t, a[offset(loop, 1, i)], b[offset(loop, 2, i)]), 0))
      ++wrong;
    for (std::int64_t k = 0; k < element; ++k)
      written[static_cast<std::size_t>(at * element + k)] = true;
  }
  CHECK(wrong == 0);
  const auto after = out.bytes();
  for (std::size_t i = 0; i < before.size(); ++i) wrong += !written[i] && before[i] != after[i];
  CHECK(wrong == 0);
  CHECK(out.guards_intact());
}

}  // namespace

TEST_CASE("binary: every op, dtype, size and alignment, exactly", "[kernels][binary]") {
  for (const DType t : kAll)
    for (const BinaryOp op : kOps) {
      if (!has(op, t)) continue;
      const bool all_sizes = t == DType::float32 && op == BinaryOp::add;
      for (const std::int64_t n : all_sizes ? kSizes : kSmallSizes)
        for (const std::int64_t shift : {0, 1}) check_loop(op, t, dense(n), shift);
    }
}

TEST_CASE("binary: broadcast and strided operands", "[kernels][binary]") {
  const std::vector<Loop> loops{
      strided({5, 33}, {{33, 1}, {33, 1}, {0, 1}}),  // a row for every row
      strided({5, 33}, {{33, 1}, {33, 1}, {1, 0}}),  // a number for every row
      strided({33, 5}, {{5, 1}, {5, 1}, {1, 33}}),   // transposed
      strided({7, 3}, {{3, 1}, {0, 1}, {1, 0}}),     // outer product, short rows
      // gaps in the output, permuted, one number
      strided({4, 3, 50}, {{200, 60, 1}, {50, 200, 1}, {0, 0, 0}}),
      strided({100}, {{2}, {3}, {1}}),                // steps
      strided({3, 40}, {{40, 1}, {41, 1}, {40, 1}}),  // rows with a gap
      strided({2, 2, 2, 2, 2, 2, 2, 2}, {{128, 64, 32, 16, 8, 4, 2, 1},
                                         {1, 2, 4, 8, 16, 32, 64, 128},
                                         {0, 64, 0, 16, 0, 4, 0, 1}}),
      strided({301, 211}, {{211, 1}, {1, 301}, {0, 1}}),  // more than one tile
      strided({301, 211}, {{211, 1}, {211, 1}, {1, 0}}),
      strided({40000}, {{1}, {1}, {0}}),
      strided({}, {{}, {}, {}}),
      strided({3, 0, 2}, {{0, 2, 1}, {0, 2, 1}, {0, 2, 1}}),
  };
  for (const Loop& loop : loops)
    for (const DType t : kAll)
      for (const BinaryOp op : {BinaryOp::sub, BinaryOp::add, BinaryOp::lt}) {
        if (!has(op, t)) continue;
        check_loop(op, t, loop, 0);
        check_loop(op, t, loop, 1);
      }
}

TEST_CASE("binary: a missing operand is the scalar, rounded to the dtype", "[kernels][binary]") {
  for (const DType t : {DType::uint8, DType::int32, DType::int64, DType::float16, DType::bfloat16,
                        DType::float32, DType::float64})
    for (const bool left : {false, true})
      for (const std::int64_t n : kSmallSizes) {
        Buffer x(t, n), out(t, n);
        x.pattern(3);
        Loop loop = dense(n);
        BinaryArgs args = args_of(BinaryOp::sub, t, out, left ? nullptr : x.data(),
                                  left ? x.data() : nullptr, loop);
        args.scalar = 3.3;
        const double s = rounded(t, 3.3);
        const auto check = [&] {
          kernels().binary(args, stream());
          std::int64_t wrong = 0;
          for (std::int64_t i = 0; i < n; ++i)
            wrong += !close(t, out[i],
                            expected_of(BinaryOp::sub, t, left ? s : x[i], left ? x[i] : s), 0);
          CHECK(wrong == 0);
        };
        check();
        args.loop.dense = false;  // what the strides of the missing operand say does not matter
        args.loop.stride[left ? 1 : 2][0] = 77;
        check();
        CHECK(out.guards_intact());
      }
}

TEST_CASE("binary: alpha scales b in add and sub", "[kernels][binary]") {
  for (const DType t : {DType::uint8, DType::int32, DType::int64, DType::float16, DType::bfloat16,
                        DType::float32, DType::float64})
    for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub})
      for (const std::int64_t n : kSmallSizes) {
        Buffer a(t, n), b(t, n), out(t, n);
        a.pattern(4), b.pattern(5);
        BinaryArgs args = args_of(op, t, out, a.data(), b.data(), dense(n));
        args.alpha = 3;
        kernels().binary(args, stream());
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < n; ++i)
          wrong += !close(t, out[i], expected_of(op, t, a[i], b[i], 3), 0);
        CHECK(wrong == 0);
      }
}

TEST_CASE("binary: out may be an operand", "[kernels][binary]") {
  for (const DType t : {DType::float32, DType::float64, DType::bfloat16, DType::int64})
    for (const std::int64_t n : {1, 17, 1025, 100003}) {
      Buffer a(t, n), b(t, n), out(t, n);
      a.pattern(6), b.pattern(7);
      kernels().binary(args_of(BinaryOp::mul, t, out, a.data(), b.data(), dense(n)), stream());
      Buffer in_place(t, n);
      std::memcpy(in_place.data(), a.data(), a.bytes().size());
      kernels().binary(args_of(BinaryOp::mul, t, in_place, in_place.data(), b.data(), dense(n)),
                       stream());
      CHECK(in_place.bytes() == out.bytes());
      kernels().binary(args_of(BinaryOp::mul, t, b, a.data(), b.data(), dense(n)), stream());
      CHECK(b.bytes() == out.bytes());
    }
}

TEST_CASE("binary: NaN, infinities, zeros and subnormals at any position", "[kernels][binary]") {
  const double specials[] = {kNaN, kInf, -kInf, 0.0, -0.0, 0x1p-149, -0x1p-130, 3.4e38, 1.0};
  for (const DType t : kFloats)
    for (const BinaryOp op : kOps)
      for (const std::int64_t n : {1, 16, 37}) {
        for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1})
          for (const double x : specials)
            for (const double y : specials) {
              Buffer a(t, n), b(t, n), out(result_type(op, t), n);
              a.pattern(8), b.pattern(9);
              a.put(at, x), b.put(at, y);
              kernels().binary(args_of(op, t, out, a.data(), b.data(), dense(n)), stream());
              const double expected = expected_of(op, t, a[at], b[at]);
              // max(0, -0) may be either
              const bool zero_order =
                  (op == BinaryOp::maximum || op == BinaryOp::minimum) && a[at] == 0 && b[at] == 0;
              if (!close(out.dtype(), out[at], expected, 0) && !(zero_order && out[at] == 0)) {
                INFO(braid::name_of(t) << " op " << static_cast<int>(op) << " " << a[at] << " "
                                       << b[at] << " got " << out[at]);
                CHECK(false);
              }
            }
      }
}

TEST_CASE("binary: integer division truncates, never traps, and refuses zero before it writes",
          "[kernels][binary]") {
  Buffer a(DType::int32, 4), b(DType::int32, 4), out(DType::int32, 4);
  const double x[] = {std::numeric_limits<std::int32_t>::min(), -7, 7, -8}, y[] = {-1, 2, -2, -8};
  for (int i = 0; i < 4; ++i) a.put(i, x[i]), b.put(i, y[i]);
  kernels().binary(args_of(BinaryOp::div, DType::int32, out, a.data(), b.data(), dense(4)),
                   stream());
  CHECK(out[0] == x[0]);
  CHECK(out[1] == -3);
  CHECK(out[2] == -3);
  CHECK(out[3] == 1);
  Buffer wide_a(DType::int64, 1), wide_b(DType::int64, 1), wide_out(DType::int64, 1);
  *static_cast<std::int64_t*>(wide_a.data()) = std::numeric_limits<std::int64_t>::min();
  wide_b.put(0, -1);
  kernels().binary(
      args_of(BinaryOp::div, DType::int64, wide_out, wide_a.data(), wide_b.data(), dense(1)),
      stream());
  CHECK(*static_cast<std::int64_t*>(wide_out.data()) == std::numeric_limits<std::int64_t>::min());

  for (const DType t : {DType::uint8, DType::int32, DType::int64})
    for (const std::int64_t n : {1, 33, 100003}) {
      Buffer p(t, n), q(t, n), r(t, n);
      p.pattern(10), q.pattern(11);
      avoid_zero(q);
      q.put(n - 1, 0);
      const auto before = r.bytes();
      CHECK_THROWS_AS(
          kernels().binary(args_of(BinaryOp::div, t, r, p.data(), q.data(), dense(n)), stream()),
          braid::ArgumentError);
      CHECK_THROWS_WITH(
          kernels().binary(args_of(BinaryOp::div, t, r, p.data(), q.data(), dense(n)), stream()),
          "div: expected integer divisors other than 0, got 0");
      BinaryArgs by_scalar = args_of(BinaryOp::div, t, r, p.data(), nullptr, dense(n));
      CHECK_THROWS_AS(kernels().binary(by_scalar, stream()), braid::ArgumentError);
      CHECK(r.bytes() == before);
    }
}

TEST_CASE("binary: what a dtype lacks is refused by name", "[kernels][binary]") {
  Buffer a(DType::bool_, 4), out(DType::bool_, 4);
  for (const BinaryOp op : {BinaryOp::sub, BinaryOp::div, BinaryOp::relu_backward}) {
    CHECK_THROWS_AS(
        kernels().binary(args_of(op, DType::bool_, out, a.data(), a.data(), dense(4)), stream()),
        braid::DTypeError);
    CHECK_THROWS_WITH(
        kernels().binary(args_of(op, DType::bool_, out, a.data(), a.data(), dense(4)), stream()),
        "binary: expected an operation that bool has (not sub, div, relu_backward), got bool");
  }
}

TEST_CASE("binary: outputs larger than the caches, written past them, are the same",
          "[kernels][binary]") {
#if BRAID_SANITIZED
  const std::int64_t n = (std::int64_t{1} << 23) + 5;
#else
  const std::int64_t n = (std::int64_t{1} << 25) + 5;  // 128 MiB of float
#endif
  std::vector<float> a(static_cast<std::size_t>(n)), out(static_cast<std::size_t>(n) + 3);
  for (std::int64_t i = 0; i < n; ++i)
    a[static_cast<std::size_t>(i)] = static_cast<float>(i % 1000);
  for (const int shift : {0, 1, 3}) {
    BinaryArgs args{.op = BinaryOp::add,
                    .dtype = DType::float32,
                    .out = out.data() + shift,
                    .a = a.data(),
                    .b = nullptr,
                    .scalar = 2,
                    .alpha = 1,
                    .loop = dense(n)};
    kernels().binary(args, stream());
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i)
      wrong += out[static_cast<std::size_t>(i + shift)] != a[static_cast<std::size_t>(i)] + 2;
    CHECK(wrong == 0);
  }
}
