// Tests of functions of one tensor beyond the table of test_ops.cpp: sizes that are not multiples
// of vectors, special values at every position.
#include "reference/elementwise.hpp"
#include "shorthand.hpp"
#include "special_values.hpp"

namespace braid::test::on_device {
namespace {

struct Unary {
  const char* name;
  Tensor (*call)(T);
  /// the exact ops compute in double and round their result once
  long double (*expected)(long double);
  double low = -2, high = 2, ulps = 4;  ///< range of inputs; 0 ulps: rounded once
  bool sign_of_zero = true;             ///< must be that of the reference
};

const std::vector<Unary>& unary_ops() {
  using L = long double;
  static const std::vector<Unary> list{
      {"neg", neg, [](L x) { return -x; }, -2, 2, 0},
      {"abs", abs, [](L x) { return std::fabs(x); }, -2, 2, 0},
      {"sign", sign, [](L x) { return L{reference::sign(static_cast<double>(x))}; }, -2, 2, 0,
       false},
      {"relu", relu, [](L x) { return std::isnan(x) || x > 0 ? x : L{0}; }, -2, 2, 0, false},
      {"square", square, [](L x) { return L{static_cast<double>(x) * static_cast<double>(x)}; }, -9,
       9, 0},
      {"sqrt", sqrt, [](L x) { return L{std::sqrt(static_cast<double>(x))}; }, 0, 1000, 0},
      {"reciprocal", reciprocal, [](L x) { return L{1 / static_cast<double>(x)}; }, 0.01, 100, 0},
      {"rsqrt", rsqrt, [](L x) { return 1 / std::sqrt(x); }, 0.001, 1000},
      {"exp", exp, [](L x) { return std::exp(x); }, -80, 80},
      {"log", log, [](L x) { return std::log(x); }, 1e-6, 1e6},
      {"tanh", tanh, [](L x) { return std::tanh(x); }, -10, 10},
      {"sigmoid", sigmoid, [](L x) { return 1 / (1 + std::exp(-x)); }, -30, 30},
      {"sin", sin, [](L x) { return std::sin(x); }, -50, 50},
      {"cos", cos, [](L x) { return std::cos(x); }, -50, 50},
      {"exp2", exp2, [](L x) { return std::exp2(x); }},
      {"expm1", expm1, [](L x) { return std::expm1(x); }},
      {"log1p", log1p, [](L x) { return std::log1p(x); }, -0.9, 0.9},
      {"log2", log2, [](L x) { return std::log2(x); }, 0.3, 3},
      {"log10", log10, [](L x) { return std::log10(x); }, 0.3, 3},
      {"tan", tan, [](L x) { return std::tan(x); }, -0.9, 0.9},
      {"asin", asin, [](L x) { return std::asin(x); }, -0.9, 0.9},
      {"sinh", sinh, [](L x) { return std::sinh(x); }},
      {"cosh", cosh, [](L x) { return std::cosh(x); }},
      {"asinh", asinh, [](L x) { return std::asinh(x); }},
      {"acosh", acosh, [](L x) { return std::acosh(x); }, 1.2, 4},
      {"atanh", atanh, [](L x) { return std::atanh(x); }, -0.9, 0.9},
      {"erf", erf, [](L x) { return std::erf(x); }},
      {"erfc", erfc, [](L x) { return std::erfc(x); }},
      {"floor", floor, [](L x) { return std::floor(x); }, -9, 9, 0},
      {"ceil", ceil, [](L x) { return std::ceil(x); }, -9, 9, 0},
      {"round", round, [](L x) { return std::nearbyint(x); }, -9, 9, 0},
      {"trunc", trunc, [](L x) { return std::trunc(x); }, -9, 9, 0},
  };
  return list;
}

/// Returns the ops that this device tests.
std::vector<Unary> my_unary_ops() {
  std::vector<Unary> list;
  for (std::size_t i = 0; i < unary_ops().size(); ++i)
    if (mine(i)) list.push_back(unary_ops()[i]);
  return list;
}

double expected(const Unary& op, double x) {
  return static_cast<double>(op.expected(static_cast<long double>(x)));
}

}  // namespace

TEST_CASE("elementwise: functions of one tensor at every size, offset and number of threads",
          "[elementwise]") {
  const KeepThreads keep;
  for (const Unary& op : my_unary_ops())
    for (const DType dtype : floating_dtypes())
      for (const std::int64_t n : sizes())
        for (const std::int64_t offset : {0, 1}) {
          Numbers numbers(static_cast<std::uint64_t>(n) + 1);
          // keeps exp in the dtype's range
          const double scale = dtype == DType::float16 && op.high > 9 ? 0.1 : 1;
          const Tensor x = strided({n}, {1}, offset, dtype, here(), [&] {
            return numbers.uniform(op.low * scale, op.high * scale);
          });
          const Array want = reference::map(array_of(x), [&](double v) { return expected(op, v); });
          set_num_threads(1);
          const Tensor y = op.call(x);
          INFO(op.name << " " << dtype << " of " << n << ", offset " << offset);
          if (op.ulps == 0) CHECK_EXACT(y, want);
          else CHECK(within_ulps(y, want, size_of(dtype) == 2 ? 1 : op.ulps) == "");
          set_num_threads(3);
          CHECK_SAME_BITS(op.call(x), y);
        }
}

TEST_CASE("special values: of functions of one tensor, in every place", "[special]") {
  for (const Unary& op : my_unary_ops())
    for (const DType dtype : floating_dtypes())
      for (const double v : specials(dtype))
        for (const std::int64_t n : {1, 3, 17, 64, 77})
          for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
            Array a({n}, 0.75);
            a[place] = v;
            const Tensor x = tensor_of(a, dtype);
            const Array in = array_of(x), out = array_of(op.call(x));
            for (const std::int64_t i : {place, (place + 1) % n})
              if (!same_class(out[i], expected(op, in[i]), dtype, op.sign_of_zero))
                FAIL_CHECK(op.name << "(" << in[i] << ") in " << dtype << ", place " << i << " of "
                                   << n << ": got " << out[i] << ", expected "
                                   << expected(op, in[i]));
          }
}

TEST_CASE("elementwise: relu of -0 is 0, and the sign of NaN NaN, unlike PyTorch",
          "[elementwise]") {
  check_same(relu(tensor({-0.0, kNan})), {0, kNan});
  check_same(sign(tensor({kNan, -2.0})), {kNan, -1});
  check_same(tensor(gradient_at([](T x) { return abs(x); }, {kNan, 0, -2})), {kNan, 0, -1});
}

}  // namespace braid::test::on_device
