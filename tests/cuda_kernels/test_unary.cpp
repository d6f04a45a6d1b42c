#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

using namespace kernel_test;
using braid::UnaryArgs;
using braid::UnaryOp;

namespace {

const std::vector<UnaryOp> kOps = [] {
  std::vector<UnaryOp> all;
  for (int i = 0; i < braid::kUnaryOpCount; ++i) all.push_back(static_cast<UnaryOp>(i));
  return all;
}();

bool whole(UnaryOp op) {
  return op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::relu || op == UnaryOp::square ||
         op == UnaryOp::sign;
}
bool has(UnaryOp op, DType t) { return t != DType::bool_ && (braid::is_floating(t) || whole(op)); }

double reference_function(UnaryOp op, double x) {
  double (*const functions[])(double) = {
      [](double v) { return std::exp2(v); },      [](double v) { return std::expm1(v); },
      [](double v) { return std::log1p(v); },     [](double v) { return std::log2(v); },
      [](double v) { return std::log10(v); },     [](double v) { return std::tan(v); },
      [](double v) { return std::asin(v); },      [](double v) { return std::acos(v); },
      [](double v) { return std::atan(v); },      [](double v) { return std::sinh(v); },
      [](double v) { return std::cosh(v); },      [](double v) { return std::asinh(v); },
      [](double v) { return std::acosh(v); },     [](double v) { return std::atanh(v); },
      [](double v) { return std::erf(v); },       [](double v) { return std::erfc(v); },
      [](double v) { return std::floor(v); },     [](double v) { return std::ceil(v); },
      [](double v) { return std::nearbyint(v); }, [](double v) { return std::trunc(v); }};
  return functions[static_cast<int>(op) - static_cast<int>(UnaryOp::exp2)](x);
}
bool rounds(UnaryOp op) { return op >= UnaryOp::floor; }

double reference(UnaryOp op, double x, double alpha) {
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
    default: return reference_function(op, x);
  }
}

double tolerance(UnaryOp op, DType t) {
  if (op == UnaryOp::neg || op == UnaryOp::abs || op == UnaryOp::relu || op == UnaryOp::sign ||
      rounds(op))
    return 0;
  if (t == DType::float16 || t == DType::bfloat16) return 0.51;
  if (op == UnaryOp::sqrt || op == UnaryOp::square || op == UnaryOp::reciprocal) return 0;
  return 4;
}

void run(UnaryOp op, DType t, void* out, const void* x, const Loop& loop, double alpha) {
  gpu().unary(UnaryArgs{.op = op, .dtype = t, .out = out, .x = x, .alpha = alpha, .loop = loop},
              gpu_stream());
}

void check_loop(UnaryOp op, DType t, const Loop& loop, std::int64_t shift, double alpha = 2.5) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " n " << loop.n << " shift "
             << shift << " alpha " << alpha);
  Buffer x(t, extent(loop, 1)), out(t, extent(loop, 0));
  x.pattern(1, 2.0), out.pattern(2);
  const auto before = out.bytes();
  Twin dx(x, shift), dout(out, shift);
  run(op, t, dout.data(), dx.data(), loop, alpha);
  dout.fetch();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i) {
    double expected = reference(op, x[offset(loop, 1, i)], alpha);
    if (t == DType::uint8)
      expected =
          static_cast<double>(static_cast<std::uint8_t>(static_cast<std::int64_t>(expected)));
    wrong += !close(t, out[offset(loop, 0, i)], expected, tolerance(op, t));
  }
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

}  // namespace

TEST_CASE("cuda unary: every op, dtype, size and alignment", "[cuda_kernels][unary]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const UnaryOp op : kOps) {
      if (!has(op, t)) continue;
      for (const std::int64_t n : {0, 1, 7, 16, 33, 1025})
        for (const std::int64_t shift : {0, 1}) check_loop(op, t, dense(n), shift);
    }
}

TEST_CASE("cuda unary: strided, transposed and repeated operands", "[cuda_kernels][unary]") {
  NEEDS_GPU;
  for (const Loop& loop :
       {strided({33, 5}, {{5, 1}, {1, 33}}), strided({100}, {{2}, {3}}),
        strided({4, 40}, {{40, 1}, {0, 1}}), strided({3, 4, 5}, {{20, 1, 4}, {1, 15, 3}}),
        strided({}, {{}, {}}), strided({2, 0}, {{1, 1}, {1, 1}})})
    for (const DType t : kAll)
      for (const UnaryOp op : {UnaryOp::neg, UnaryOp::exp}) {
        if (!has(op, t)) continue;
        check_loop(op, t, loop, 0);
        check_loop(op, t, loop, 1);
      }
}

TEST_CASE("cuda unary: NaN, infinities, zeros and subnormals", "[cuda_kernels][unary]") {
  NEEDS_GPU;
  const std::vector<double> specials{kNaN,      kInf,     -kInf,     0.0,    -0.0,    0x1p-149,
                                     -0x1p-149, 0x1p-126, -0x1p-130, 3.4e38, -3.4e38, 1.0,
                                     -1.0,      88.7,     88.73,     -103.9, -104.5,  1e10};
  for (const DType t : kFloats)
    for (const UnaryOp op : kOps) {
      const auto n = static_cast<std::int64_t>(specials.size());
      Buffer x(t, n), out(t, n);
      for (std::int64_t i = 0; i < n; ++i) x.put(i, specials[static_cast<std::size_t>(i)]);
      Twin dx(x), dout(out);
      run(op, t, dout.data(), dx.data(), dense(n), 2.5);
      dout.fetch();
      for (std::int64_t i = 0; i < n; ++i) {
        INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " x " << x[i] << " got "
                   << out[i]);
        CHECK(close(t, out[i], reference(op, x[i], 2.5), tolerance(op, t)));
      }
    }
}

TEST_CASE("cuda unary: powers", "[cuda_kernels][unary]") {
  NEEDS_GPU;
  const std::vector<double> bases{kNaN, kInf, -kInf, 0.0,  -0.0,  1.0,  -1.0,     0.5, -0.5,
                                  2,    -2,   3.7,   -3.7, 1e-20, 1e20, 0x1p-149, 100};
  for (const double alpha : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, -2.0, 5.0, -3.0, 2.5, 0.1, 40.0,
                             -40.3, 41.0, 1e9, kInf, -kInf, kNaN})
    for (const DType t : kFloats) {
      const auto n = static_cast<std::int64_t>(bases.size());
      Buffer x(t, n), out(t, n);
      for (std::int64_t i = 0; i < n; ++i) x.put(i, bases[static_cast<std::size_t>(i)]);
      Twin dx(x), dout(out);
      run(UnaryOp::pow_scalar, t, dout.data(), dx.data(), dense(n), alpha);
      dout.fetch();
      for (std::int64_t i = 0; i < n; ++i) {
        INFO(braid::name_of(t) << " " << x[i] << " ^ " << alpha << " got " << out[i]);
        CHECK(close(t, out[i], std::pow(x[i], alpha),
                    t == DType::float32 || t == DType::float64 ? 4 : 0.51));
      }
    }
}

TEST_CASE("cuda unary: integers wrap around", "[cuda_kernels][unary]") {
  NEEDS_GPU;
  const auto check = [](UnaryOp op, DType t, double from, double expected) {
    Buffer x(t, 70), out(t, 70);
    for (std::int64_t i = 0; i < 70; ++i) x.put(i, from);
    Twin dx(x), dout(out);
    run(op, t, dout.data(), dx.data(), dense(70), 0);
    dout.fetch();
    CHECK((out[0] == expected && out[69] == expected));
  };
  const double low32 = std::numeric_limits<std::int32_t>::min(),
               low64 = static_cast<double>(std::numeric_limits<std::int64_t>::min());
  check(UnaryOp::neg, DType::int32, low32, low32);
  check(UnaryOp::abs, DType::int32, low32, low32);
  check(UnaryOp::neg, DType::int64, low64, low64);
  check(UnaryOp::neg, DType::uint8, 1, 255);
  check(UnaryOp::square, DType::int32, 65536, 0);
  check(UnaryOp::sign, DType::int64, -5, -1);
  check(UnaryOp::sign, DType::uint8, 200, 1);
}

TEST_CASE("cuda unary: what a dtype lacks is refused by name", "[cuda_kernels][unary]") {
  NEEDS_GPU;
  for (const DType t : {DType::bool_, DType::uint8, DType::int32, DType::int64})
    for (const UnaryOp op : kOps) {
      if (has(op, t)) continue;
      Buffer x(t, 4);
      CHECK_THROWS_AS(run(op, t, x.data(), x.data(), dense(4), 0.5), braid::DTypeError);
      CHECK_THROWS_WITH(run(op, t, x.data(), x.data(), dense(4), 0.5),
                        braid::str("unary: expected ",
                                   whole(op) ? "numbers" : "a floating-point dtype", ", got ", t));
    }
}
