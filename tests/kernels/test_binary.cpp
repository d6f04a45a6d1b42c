#include <algorithm>

#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/kernel_support.hpp"
#include "reference/binary.hpp"
#include "support/on_device.hpp"
#include "support/sanitized.hpp"

using namespace kernel_test;
using braid::BinaryOp;

namespace {

// The ops with a tolerance are tested with the ops and with every kernel.
bool is_exact(BinaryOp op) {
  return op != BinaryOp::tanh_backward && op != BinaryOp::sigmoid_backward && op != BinaryOp::pow &&
         !is_floating_function(op);
}
const std::vector<BinaryOp> kOps = [] {
  std::vector<BinaryOp> list;
  for (const BinaryOp op : {
#define BRAID_BINARY(name) BinaryOp::name,
#define BRAID_BINARY_FUNCTION(name) BinaryOp::name,
#define BRAID_BINARY_FLOATING(name, c) BinaryOp::name,
#define BRAID_BINARY_DIVISION(name) BinaryOp::name,
#define BRAID_BINARY_INTEGER(name) BinaryOp::name,
#define BRAID_BINARY_COMPARISON(name) BinaryOp::name,
#include <braid/core/internal/binary.def>
       })
    if (is_exact(op)) list.push_back(op);
  return list;
}();

bool has(BinaryOp op, DType t) {
  if (is_integer_function(op)) return braid::is_integral(t);
  return t != DType::bool_ ||
         (op != BinaryOp::sub && !is_division(op) && op != BinaryOp::relu_backward);
}

double wrap(DType t, double x) {
  if (t == DType::uint8)
    return static_cast<double>(static_cast<std::uint8_t>(static_cast<std::int64_t>(x)));
  if (t == DType::bool_) return x != 0;
  return x;
}

double expected_of(BinaryOp op, DType t, double a, double b, double alpha) {
  // alpha and the product are rounded to the computation's dtype
  const DType computed = t == DType::float64 ? t : DType::float32;
  const double scaled =
      braid::is_floating(t) ? rounded(computed, rounded(computed, alpha) * b) : alpha * b;
  const int bits = static_cast<int>(braid::size_of(t)) * 8;
  const bool sign = t != DType::uint8;
  switch (op) {
    case BinaryOp::add: return wrap(t, a + scaled);
    case BinaryOp::sub: return wrap(t, a - scaled);
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
    case BinaryOp::bitwise_and: return reference::bitwise_and(a, b);
    case BinaryOp::bitwise_or: return reference::bitwise_or(a, b);
    case BinaryOp::bitwise_xor: return reference::bitwise_xor(a, b);
    case BinaryOp::bitwise_left_shift: return reference::shifted_left(a, b, bits, sign);
    case BinaryOp::bitwise_right_shift: return reference::shifted_right(a, b, bits);
    default: return kNaN;
  }
}

DType result_type(BinaryOp op, DType t) { return braid::is_comparison(op) ? DType::bool_ : t; }

/// A null operand is replaced by the scalar.
void run(BinaryOp op, Buffer& out, const Buffer* a, const Buffer* b, const Loop& loop,
         double alpha = 1, double scalar = 3) {
  const DType t = (a != nullptr ? a : b)->dtype();
  const void *const left = a != nullptr ? a->data() : nullptr, *const right = b != nullptr
                                                                                  ? b->data()
                                                                                  : nullptr;
  kernels().binary({op, t, out.data(), left, right, scalar, alpha, loop}, stream());
}

enum class Missing { none, a, b };

// Runs the loop and compares every element with the reference. Nothing else of the output may
// change.
void check_loop(BinaryOp op, DType t, const Loop& loop, std::int64_t shift, double alpha = 1,
                Missing missing = Missing::none) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " n " << loop.n << " rank "
             << loop.rank << " shift " << shift << " alpha " << alpha << " missing "
             << static_cast<int>(missing));
  constexpr double scalar = 3.3;
  Buffer a(t, missing == Missing::a ? 0 : extent(loop, 1), shift),
      b(t, missing == Missing::b ? 0 : extent(loop, 2), 2 * shift),
      out(result_type(op, t), extent(loop, 0), shift);
  a.pattern(1), b.pattern(2), out.pattern(3);
  for (std::int64_t i = 0; is_division(op) && i < b.size(); ++i)
    if (b[i] == 0) b.put(i, 1);
  const auto before = out.bytes();
  run(op, out, missing == Missing::a ? nullptr : &a, missing == Missing::b ? nullptr : &b, loop,
      alpha, scalar);
  std::int64_t wrong = 0;
  // a number beside 16-bit elements stays a float, and the result is rounded twice
  const DType computed = braid::size_of(t) == 2 ? DType::float32 : t;
  const double number = rounded(braid::keeps_scalar(op) ? computed : t, scalar);
  for (std::int64_t i = 0; i < loop.n; ++i) {
    const double x = missing == Missing::a ? number : a[offset(loop, 1, i)],
                 y = missing == Missing::b ? number : b[offset(loop, 2, i)],
                 expected = rounded(computed, expected_of(op, t, x, y, alpha));
    wrong += !close(out.dtype(), out[offset(loop, 0, i)], expected, 0);
  }
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

}  // namespace

TEST_CASE("binary: every op, dtype, size and alignment, exactly", "[kernels][binary]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const BinaryOp op : kOps) {
      if (!has(op, t)) continue;
      const bool all_sizes = t == DType::float32 && op == BinaryOp::add;
      for (const std::int64_t n : all_sizes ? sizes() : kSmallSizes)
        for (const std::int64_t shift : {0, 1}) check_loop(op, t, dense(n), shift);
    }
}

TEST_CASE("binary: broadcast and strided operands", "[kernels][binary]") {
  NEEDS_DEVICE;
  const std::vector<Loop> loops{
      strided({5, 33}, {{33, 1}, {33, 1}, {0, 1}}),  // the same row for every row
      strided({5, 33}, {{33, 1}, {33, 1}, {1, 0}}),  // one number per row
      strided({33, 5}, {{5, 1}, {5, 1}, {1, 33}}),   // transposed
      strided({7, 3}, {{3, 1}, {0, 1}, {1, 0}}),     // outer product, short rows
      // a gap in the output, permuted, one number
      strided({4, 3, 50}, {{200, 60, 1}, {50, 200, 1}, {0, 0, 0}}),
      strided({100}, {{2}, {3}, {1}}),                // strided
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
  std::size_t number = 0;
  for (const Loop& loop : loops)
    for (const DType t : kAll)
      for (const BinaryOp op : {BinaryOp::sub, BinaryOp::add, BinaryOp::mul, BinaryOp::lt})
        for (const std::int64_t shift : {0, 1}) {
          if (on_cuda() && loop.n > 10000 && (t != DType::float32 || shift == 0)) continue;
          if (has(op, t) && braid::test::in_part(number++)) check_loop(op, t, loop, shift);
        }
}

TEST_CASE("binary: a missing operand is the scalar", "[kernels][binary]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const BinaryOp op : kOps)
      for (const Missing missing : {Missing::a, Missing::b}) {
        if (!has(op, t)) continue;
        for (const std::int64_t n : op == BinaryOp::sub ? kSmallSizes : Sizes{70})
          for (const std::int64_t shift : {0, 1}) {
            check_loop(op, t, dense(n), shift, 1, missing);
            Loop loop = dense(n);
            loop.dense = false;  // the strides of the missing operand must not matter
            loop.stride[missing == Missing::a ? 1 : 2][0] = 77;
            check_loop(op, t, loop, shift, 1, missing);
          }
      }
}

TEST_CASE("binary: alpha scales b in add and sub", "[kernels][binary]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const BinaryOp op : {BinaryOp::add, BinaryOp::sub}) {
      if (t == DType::bool_) continue;
      for (const std::int64_t n : kSmallSizes) check_loop(op, t, dense(n), 0, 3);
      const double alpha = braid::is_floating(t) ? -0.3 : -3;
      check_loop(op, t, dense(70), 0, alpha);
      check_loop(op, t, strided({7, 10}, {{10, 1}, {1, 7}, {0, 1}}), 0,
                 braid::is_floating(t) ? alpha : 2);
      if (braid::is_floating(t))
        for (const Missing missing : {Missing::a, Missing::b})
          check_loop(op, t, dense(70), 0, alpha, missing);
    }
}

TEST_CASE("binary: out may be an operand", "[kernels][binary]") {
  NEEDS_DEVICE;
  for (const DType t :
       {DType::float16, DType::float32, DType::float64, DType::bfloat16, DType::int64})
    for (const BinaryOp op : {BinaryOp::mul, BinaryOp::add})
      for (const std::int64_t n : Sizes{1, 5, 17, 1024, 1025, on_cuda() ? 0 : 100003}) {
        Buffer a(t, n), b(t, n), out(t, n);
        a.pattern(6), b.pattern(7);
        run(op, out, &a, &b, dense(n));
        Buffer in_place = a;
        run(op, in_place, &in_place, &b, dense(n));
        CHECK(in_place.bytes() == out.bytes());
        run(op, b, &a, &b, dense(n));
        CHECK(b.bytes() == out.bytes());
      }
}

TEST_CASE("binary: NaN, infinities, zeros and subnormals at any position", "[kernels][binary]") {
  NEEDS_DEVICE;
  const double specials[] = {kNaN, kInf, -kInf, 0.0, -0.0, 0x1p-149, -0x1p-130, 3.4e38, 1.0, -1.0};
  std::size_t number = 0;
  for (const DType t : kFloats)
    for (const BinaryOp op : kOps)
      for (const std::int64_t n : {1, 16, 37}) {
        if (!has(op, t) || !braid::test::in_part(number++)) continue;
        for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1})
          for (const double x : specials)
            for (const double y : specials) {
              if (on_cuda() && (n != 37 || at != 0)) continue;  // all threads run the same code
              Buffer a(t, n), b(t, n), out(result_type(op, t), n);
              a.pattern(8).put(at, x), b.pattern(9).put(at, y);
              run(op, out, &a, &b, dense(n));
              const double expected = expected_of(op, t, a[at], b[at], 1);
              // max(0, -0) may have either sign
              const bool zero_order =
                  (op == BinaryOp::maximum || op == BinaryOp::minimum) && a[at] == 0 && b[at] == 0;
              if (!close(out.dtype(), out[at], expected, 0) && !(zero_order && out[at] == 0))
                FAIL_CHECK(braid::name_of(t) << " op " << static_cast<int>(op) << " " << a[at]
                                             << " " << b[at] << " got " << out[at]);
            }
      }
}

TEST_CASE("binary: integers wrap", "[kernels][binary]") {
  NEEDS_DEVICE;
  const double low = std::numeric_limits<std::int32_t>::min();
  struct Row {
    BinaryOp op;
    DType t;
    double a, b, expected;
  };
  for (const Row& row : {Row{BinaryOp::div, DType::int32, low, -1, low},
                         {BinaryOp::div, DType::int32, -7, 2, -3},
                         {BinaryOp::div, DType::int32, 7, -2, -3},
                         {BinaryOp::div, DType::int32, -8, -8, 1},
                         {BinaryOp::add, DType::int32, low, -1, -low - 1},
                         {BinaryOp::mul, DType::uint8, 16, 17, 16},
                         {BinaryOp::div, DType::int64, -7, 2, -3},
                         {BinaryOp::bitwise_left_shift, DType::int32, 1, 31, low},
                         {BinaryOp::bitwise_left_shift, DType::int32, 1, 32, 0},
                         {BinaryOp::bitwise_left_shift, DType::uint8, 3, 7, 128},
                         {BinaryOp::bitwise_left_shift, DType::int64, 1, -1, 0},
                         {BinaryOp::bitwise_right_shift, DType::int32, -8, 1, -4},
                         {BinaryOp::bitwise_right_shift, DType::int32, -8, 32, -1},
                         {BinaryOp::bitwise_right_shift, DType::int64, -8, -1, -1},
                         {BinaryOp::bitwise_right_shift, DType::uint8, 255, 8, 0}}) {
    Buffer a(row.t, 9), b(row.t, 9), out(row.t, 9);
    run(row.op, out, &a.fill(row.a), &b.fill(row.b), dense(9));
    CHECK((out[0] == row.expected && out[8] == row.expected));
  }
  const std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  Buffer a = indices({lowest}), b = indices({-1}), out = indices({0});
  run(BinaryOp::div, out, &a, &b, dense(1));
  CHECK(*static_cast<std::int64_t*>(out.host()) == lowest);
}

TEST_CASE("binary: integer division by 0 is refused, on the CPU before it writes",
          "[kernels][binary]") {
  NEEDS_DEVICE;
  for (const DType t : kIntegers)
    for (const std::int64_t n : Sizes{1, 9, 33, on_cuda() ? 1025 : 100003}) {
      Buffer a(t, n), b(t, n), out(t, n);
      a.pattern(10), b.fill(2).put(n - 1, 0);
      const auto before = out.bytes();
      const auto divide = [&](const Buffer* by) {
        run(BinaryOp::div, out, &a, by, dense(n), 1, 0);
        if (on_cuda()) stream().synchronize();
      };
      for (const Buffer* by :
           {static_cast<const Buffer*>(&b), static_cast<const Buffer*>(nullptr)}) {
        CHECK_THROWS_AS(divide(by), braid::ArgumentError);
        CHECK_THROWS_WITH(divide(by), "div: expected integer divisors other than 0, got 0");
      }
      if (!on_cuda()) CHECK(out.bytes() == before);
      divide(&b.fill(2));  // the error is cleared
      CHECK(out[n - 1] == std::trunc(a[n - 1] / 2));
    }
}

TEST_CASE("binary: what a dtype lacks is refused by name", "[kernels][binary]") {
  NEEDS_DEVICE;
  Buffer a(DType::bool_, 4), out(DType::bool_, 4);
  for (const BinaryOp op : {BinaryOp::sub, BinaryOp::div, BinaryOp::relu_backward}) {
    CHECK_THROWS_AS(run(op, out, &a, &a, dense(4)), braid::DTypeError);
    CHECK_THROWS_WITH(
        run(op, out, &a, &a, dense(4)),
        "binary: expected an operation that bool has (not sub, div, relu_backward), got bool");
  }
  Buffer f(DType::float32, 4), to(DType::float32, 4);
  CHECK_THROWS_WITH(run(BinaryOp::bitwise_and, to, &f, &f, dense(4)),
                    "binary: expected an integer dtype, got float32");
}

TEST_CASE("binary: float powers and angles are within 1 ULP, on CUDA 4", "[kernels][binary]") {
  NEEDS_DEVICE;
  const std::int64_t n = on_cuda() ? 10000 : 100000;
  Buffer a(DType::float32, n), b(DType::float32, n), out(DType::float32, n);
  a.pattern(1, 30), b.pattern(2, 9);
  for (const BinaryOp op : {BinaryOp::atan2, BinaryOp::pow}) {
    if (op == BinaryOp::pow)
      for (std::int64_t i = 0; i < n; ++i) a.put(i, std::fabs(a[i]) + 0.01);
    run(op, out, &a, &b, dense(n));
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double want = op == BinaryOp::pow ? std::pow(a[i], b[i]) : std::atan2(a[i], b[i]);
      if (std::isfinite(want) && std::fabs(want) < 3e38)
        worst = std::max(worst, std::fabs(out[i] - want) / ulp(DType::float32, want));
    }
    INFO("op " << static_cast<int>(op) << " worst " << worst << " ULP");
    CHECK(worst <= (on_cuda() ? 4 : 1));
  }
}

TEST_CASE("binary: outputs larger than the caches, written past them, are the same",
          "[kernels][binary]") {
  if (on_cuda()) return;
#if BRAID_SANITIZED
  const std::int64_t n = (std::int64_t{1} << 23) + 5;
#else
  const std::int64_t n = (std::int64_t{1} << 25) + 5;  // 128 MiB of float
#endif
  Buffer a(DType::float32, n);
  auto* const numbers = static_cast<float*>(a.host());
  for (std::int64_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(i % 1000);
  std::size_t number = 0;
  for (const int shift : {0, 1, 3}) {
    if (!braid::test::in_part(number++)) continue;
    Buffer out(DType::float32, n, shift);
    run(BinaryOp::add, out, &a, nullptr, dense(n), 1, 2);
    const auto* const sums = static_cast<const float*>(out.host());
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) wrong += sums[i] != numbers[i] + 2;
    CHECK(wrong == 0);
  }
}
