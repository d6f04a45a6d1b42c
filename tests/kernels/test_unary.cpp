#include <algorithm>

#include <braid/core/internal/kernel_args/elementwise.hpp>

#include "kernels/kernel_support.hpp"
#include "support/on_device.hpp"

using namespace kernel_test;
using braid::UnaryOp;

namespace {

const std::vector<UnaryOp> kOps{
#define BRAID_UNARY(name, domain) UnaryOp::name,
#define BRAID_UNARY_FUNCTION(name, c, domain) UnaryOp::name,
#define BRAID_UNARY_STEP(name, c) UnaryOp::name,
#include <braid/core/internal/unary.def>
};

bool whole(UnaryOp op) {
  return op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::relu || op == UnaryOp::square ||
         op == UnaryOp::sign;
}
bool has(UnaryOp op, DType t) { return t != DType::bool_ && (braid::is_floating(t) || whole(op)); }

bool rounds(UnaryOp op) {
  switch (op) {
#define BRAID_UNARY_STEP(name, c) case UnaryOp::name:
#include <braid/core/internal/unary.def>
    return true;
    default: return false;
  }
}

double right_value(UnaryOp op, double x, double alpha) {
  switch (op) {
    case UnaryOp::neg: return -x;
    case UnaryOp::abs: return std::fabs(x);
    case UnaryOp::relu: return std::isnan(x) ? x : x > 0 ? x : 0.0;
    case UnaryOp::exp: return std::exp(x);
    case UnaryOp::log: return std::log(x);
    case UnaryOp::sqrt: return std::sqrt(x);
    case UnaryOp::rsqrt: return 1 / std::sqrt(x);
    case UnaryOp::tanh: return std::tanh(x);
    case UnaryOp::sigmoid: return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
    case UnaryOp::sin: return std::sin(x);
    case UnaryOp::cos: return std::cos(x);
    case UnaryOp::reciprocal: return 1 / x;
    case UnaryOp::square: return x * x;
    case UnaryOp::sign: return x > 0 ? 1.0 : x < 0 ? -1.0 : x;
    case UnaryOp::pow_scalar: return std::pow(x, alpha);
#define BRAID_UNARY_FUNCTION(name, c, domain) \
  case UnaryOp::name: return std::c(x);
#define BRAID_UNARY_STEP(name, c) \
  case UnaryOp::name: return std::c(x);
#include <braid/core/internal/unary.def>
  }
  throw braid::InternalError("reference: unknown op");
}

double wrap(DType t, double x) {
  return t == DType::uint8
             ? static_cast<double>(static_cast<std::uint8_t>(static_cast<std::int64_t>(x)))
             : x;
}

// The allowed error in ULP. 16-bit dtypes: half a unit for the rounding, plus the error of the
// float computation.
double tolerance(UnaryOp op, DType t) {
  if (op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::relu || op == UnaryOp::sign ||
      rounds(op))
    return 0;
  if (braid::size_of(t) == 2) return 0.51;
  if (op == UnaryOp::sqrt || op == UnaryOp::square || op == UnaryOp::reciprocal) return 0;
  return 4;
}

void run(UnaryOp op, Buffer& out, const Buffer& x, const Loop& loop, double alpha = 0) {
  kernels().unary({op, x.dtype(), out.data(), x.data(), alpha, loop}, stream());
}

void check_loop(UnaryOp op, DType t, const Loop& loop, std::int64_t shift, double alpha = 2.5) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " n " << loop.n << " shift "
             << shift << " alpha " << alpha);
  Buffer x(t, extent(loop, 1), shift), out(t, extent(loop, 0), shift);
  x.pattern(1, 2.0), out.pattern(2);
  const auto before = out.bytes();
  run(op, out, x, loop, alpha);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i) {
    const double expected = wrap(t, right_value(op, x[offset(loop, 1, i)], alpha));
    wrong += !close(t, out[offset(loop, 0, i)], expected, tolerance(op, t));
  }
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

/// Checks that every element is within 4 ULP for float32, or 0.51 ULP for the other dtypes.
void check_function(UnaryOp op, const Buffer& x, double alpha) {
  Buffer out(x.dtype(), x.size());
  run(op, out, x, dense(x.size()), alpha);
  const double ulps = x.dtype() == DType::float32 ? 4 : 0.51;
  std::int64_t wrong = 0;
  double worst = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double expected = right_value(op, x[i], alpha), got = out[i];
    wrong += !close(x.dtype(), got, expected, ulps);
    if (std::isfinite(expected) && std::isfinite(got) && std::fabs(expected) < 3.4e38)
      worst = std::max(worst, std::fabs(got - expected) / ulp(x.dtype(), expected));
  }
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(x.dtype()) << " worst " << worst
             << " ULP");
  CHECK(wrong == 0);
  CHECK(worst <= ulps);
}

}  // namespace

TEST_CASE("unary: every op, dtype, size and alignment", "[kernels][unary]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const UnaryOp op : kOps) {
      if (!has(op, t)) continue;
      for (const std::int64_t n : t == DType::float32 ? sizes() : kSmallSizes)
        for (const std::int64_t shift : {0, 1}) check_loop(op, t, dense(n), shift);
    }
}

TEST_CASE("unary: strided, transposed and repeated operands", "[kernels][unary]") {
  NEEDS_DEVICE;
  for (const Loop& loop :
       {strided({33, 5}, {{5, 1}, {1, 33}}), strided({100}, {{2}, {3}}),
        strided({4, 40}, {{40, 1}, {0, 1}}), strided({4, 40}, {{40, 1}, {1, 0}}),
        strided({200, 300}, {{300, 1}, {1, 200}}), strided({}, {{}, {}}),
        strided({3, 4, 5}, {{20, 1, 4}, {1, 15, 3}}), strided({2, 0}, {{1, 1}, {1, 1}})})
    for (const DType t : kAll)
      for (const UnaryOp op : {UnaryOp::neg, UnaryOp::exp})
        for (const std::int64_t shift : {0, 1})
          if (has(op, t)) check_loop(op, t, loop, shift);
}

TEST_CASE("unary: float functions over all binades are within 4 ULP", "[kernels][unary]") {
  NEEDS_DEVICE;
  // Every 1021st float pattern of each sign, infinities and NaN included. Fewer on CUDA, which may
  // be emulated.
  const std::uint32_t step = on_cuda() ? 1021 * 211 : 1021;
  Buffer x(DType::float32, 0x100000000 / step + 1);
  auto* const bits = static_cast<std::uint32_t*>(x.host());
  for (std::int64_t i = 0; i < x.size(); ++i) bits[i] = static_cast<std::uint32_t>(i) * step;
  std::vector<UnaryOp> ops{UnaryOp::exp, UnaryOp::log, UnaryOp::tanh, UnaryOp::sigmoid,
                           UnaryOp::sin, UnaryOp::cos, UnaryOp::rsqrt};
  for (const UnaryOp op : kOps)
    if (braid::is_function(op)) ops.push_back(op);
  std::size_t number = 0;
  for (const UnaryOp op : ops)
    if (braid::test::in_part(number++)) check_function(op, x, 0);
}

TEST_CASE("unary: functions of many numbers of their range", "[kernels][unary]") {
  NEEDS_DEVICE;
  for (const DType t : {DType::float32, DType::float16, DType::bfloat16})
    for (const UnaryOp op : {UnaryOp::exp, UnaryOp::log, UnaryOp::sqrt, UnaryOp::rsqrt,
                             UnaryOp::tanh, UnaryOp::sigmoid, UnaryOp::sin, UnaryOp::cos,
                             UnaryOp::reciprocal, UnaryOp::square, UnaryOp::pow_scalar}) {
      const bool positive = op == UnaryOp::log || op == UnaryOp::sqrt || op == UnaryOp::rsqrt ||
                            op == UnaryOp::pow_scalar || op == UnaryOp::reciprocal;
      Buffer x(t, 20001);
      x.pattern(3, 4.5);  // -9 to 9
      for (std::int64_t i = 0; positive && i < x.size(); ++i) x.put(i, std::fabs(x[i]) + 0.01);
      check_function(op, x, 1.7);
    }
}

TEST_CASE("unary: NaN, infinities, zeros and subnormals at any position", "[kernels][unary]") {
  NEEDS_DEVICE;
  const double specials[] = {kNaN,     kInf,      -kInf,  0.0,     -0.0, 0x1p-149, -0x1p-149,
                             0x1p-126, -0x1p-130, 3.4e38, -3.4e38, 1.0,  -1.0,     88.7,
                             88.72,    88.73,     -103.9, -104.5,  1e10};
  for (const DType t : kFloats)
    for (const UnaryOp op : kOps)
      for (const std::int64_t n : {1, 16, 37})
        for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1})
          for (const double special : specials) {
            if (on_cuda() && (n == 16 || at != n / 2)) continue;  // all threads run the same code
            Buffer x(t, n), out(t, n);
            x.pattern(2).put(at, special);
            run(op, out, x, dense(n), 2.5);
            const bool good = close(t, out[at], right_value(op, x[at], 2.5), tolerance(op, t));
            if (!good)
              FAIL_CHECK("op " << static_cast<int>(op) << " " << braid::name_of(t) << " x " << x[at]
                               << " got " << out[at] << " n " << n << " at " << at);
          }
}

TEST_CASE("unary: powers", "[kernels][unary]") {
  NEEDS_DEVICE;
  const std::vector<double> bases{kNaN, kInf, -kInf, 0.0,  -0.0,  1.0,  -1.0,     0.5, -0.5,
                                  2,    -2,   3.7,   -3.7, 1e-20, 1e20, 0x1p-149, 100};
  const auto n = static_cast<std::int64_t>(bases.size());
  for (const double alpha : {0.0, 1.0, 2.0,  3.0,   -1.0,  0.5,  -0.5, -2.0, 5.0,   -3.0,
                             2.5, 0.1, 40.0, -40.0, -40.3, 41.0, 1e9,  kInf, -kInf, kNaN})
    for (const DType t : kFloats) {
      Buffer x(t, n), out(t, n);
      for (std::int64_t i = 0; i < n; ++i) x.put(i, bases[static_cast<std::size_t>(i)]);
      run(UnaryOp::pow_scalar, out, x, dense(n), alpha);
      for (std::int64_t i = 0; i < n; ++i) {
        INFO(braid::name_of(t) << " " << x[i] << " ^ " << alpha << " got " << out[i]);
        const double ulps = braid::size_of(t) == 2 ? 0.51 : on_cuda() || alpha == -40.3 ? 4 : 2;
        CHECK(close(t, out[i], std::pow(x[i], alpha), ulps));
      }
    }
}

TEST_CASE("unary: integers wrap around", "[kernels][unary]") {
  NEEDS_DEVICE;
  const double low32 = std::numeric_limits<std::int32_t>::min(),
               low64 = static_cast<double>(std::numeric_limits<std::int64_t>::min());
  struct Row {
    UnaryOp op;
    DType t;
    double x, expected;
  };
  for (const Row& row : {Row{UnaryOp::neg, DType::int32, low32, low32},
                         {UnaryOp::abs, DType::int32, low32, low32},
                         {UnaryOp::neg, DType::int64, low64, low64},
                         {UnaryOp::neg, DType::uint8, 1, 255},
                         {UnaryOp::square, DType::int32, 65536, 0},
                         {UnaryOp::sign, DType::int64, -5, -1},
                         {UnaryOp::sign, DType::uint8, 200, 1}})
    for (const std::int64_t n : {1, 70}) {
      Buffer x(row.t, n), out(row.t, n);
      run(row.op, out, x.fill(row.x), dense(n));
      CHECK((out[0] == row.expected && out[n - 1] == row.expected));
    }
}

TEST_CASE("unary: what a dtype lacks is refused by name", "[kernels][unary]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const UnaryOp op : kOps) {
      if (has(op, t)) continue;
      Buffer x(t, 4), out(t, 4);
      x.pattern(1);
      const auto before = out.bytes();
      CHECK_THROWS_AS(run(op, out, x, dense(4)), braid::DTypeError);
      CHECK_THROWS_WITH(run(op, out, x, dense(4)),
                        braid::str("unary: expected ",
                                   whole(op) ? "numbers" : "a floating-point dtype", ", got ", t));
      CHECK(out.bytes() == before);
    }
}

TEST_CASE("unary: threads change nothing", "[kernels][unary]") {
  if (on_cuda()) return;
  Buffer x(DType::float32, 100003), out(DType::float32, 100003);
  x.pattern(5, 3);
  for (const UnaryOp op : kOps) check_threads(out, [&] { run(op, out, x, dense(100003), 1.7); });
}
