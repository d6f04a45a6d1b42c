// Elementwise operations beyond the table of test_ops.cpp: sizes that break vector loops, mixed
// types, special values, subgradients, errors.
#include <braid/core/ops/elementwise.hpp>

#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/create.hpp>

#include "reference/elementwise.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

using T = const Tensor&;
std::vector<std::int64_t> sizes() {
  return {0,  1,   2,   7,   8,    9,    15,
          16, 17,  31,  32,  33,   63,   64,
          65, 127, 128, 129, 1000, 1025, cut(20011, 5003)};
}

struct Unary {
  const char* name;
  Tensor (*call)(const Tensor&);
  /// exact ones are computed in double: their result is rounded once
  long double (*expected)(long double);
  double low, high, ulps;  ///< range of inputs; 0 ulps: rounded once
};

const std::vector<Unary>& unary_ops() {
  using L = long double;
  static const std::vector<Unary> list{
      {"neg", neg, [](L x) { return -x; }, -2, 2, 0},
      {"abs", abs, [](L x) { return std::fabs(x); }, -2, 2, 0},
      {"sign", sign, [](L x) { return x > 0   ? L{1}
                                      : x < 0 ? L{-1}
                                              : L{0}; }, -2, 2, 0},
      {"relu", relu, [](L x) { return x > 0 ? x : L{0}; }, -2, 2, 0},
      {"square", square, [](L x) { return L{static_cast<double>(x) * static_cast<double>(x)}; }, -9,
       9, 0},
      {"sqrt", sqrt, [](L x) { return L{std::sqrt(static_cast<double>(x))}; }, 0, 1000, 0},
      {"reciprocal", reciprocal, [](L x) { return L{1 / static_cast<double>(x)}; }, 0.01, 100, 0},
      {"rsqrt", rsqrt, [](L x) { return 1 / std::sqrt(x); }, 0.001, 1000, 4},
      {"exp", exp, [](L x) { return std::exp(x); }, -80, 80, 4},
      {"log", log, [](L x) { return std::log(x); }, 1e-6, 1e6, 4},
      {"tanh", tanh, [](L x) { return std::tanh(x); }, -10, 10, 4},
      {"sigmoid", sigmoid, [](L x) { return 1 / (1 + std::exp(-x)); }, -30, 30, 4},
      {"sin", sin, [](L x) { return std::sin(x); }, -50, 50, 4},
      {"cos", cos, [](L x) { return std::cos(x); }, -50, 50, 4},
  };
  return list;
}

std::string judge(const Unary& op, const Tensor& y, const Array& x) {
  const Array want = reference::map(
      x, [&](double v) { return static_cast<double>(op.expected(static_cast<long double>(v))); });
  if (op.ulps == 0) return exact(y, want);
  return within_ulps(y, want, size_of(y.dtype()) == 2 ? 1 : op.ulps);
}

}  // namespace

TEST_CASE("elementwise: functions of one tensor at every size, offset and number of threads",
          "[elementwise]") {
  const int before = num_threads();
  for (const Unary& op : unary_ops())
    for (const DType dtype : floating_dtypes())
      for (const std::int64_t n : sizes())
        for (const std::int64_t offset : {0, 1}) {
          Numbers numbers(static_cast<std::uint64_t>(n) + 1);
          // keep exp inside the type
          const double scale = dtype == DType::float16 && op.high > 9 ? 0.1 : 1;
          const Tensor x = strided({n}, {1}, offset, dtype, here(), [&] {
            return numbers.uniform(op.low * scale, op.high * scale);
          });
          const Array a = array_of(x);
          set_num_threads(1);
          const Tensor y = op.call(x);
          INFO(op.name << " " << dtype << " of " << n << ", offset " << offset);
          CHECK(judge(op, y, a) == "");
          set_num_threads(3);
          CHECK_SAME_BITS(op.call(x), y);
        }
  set_num_threads(before);
}

TEST_CASE("elementwise: functions of two tensors at every size and number of threads",
          "[elementwise]") {
  const int before = num_threads();
  for (const DType dtype : {DType::int32, DType::int64, DType::float16, DType::bfloat16,
                            DType::float32, DType::float64})
    for (const std::int64_t n : sizes()) {
      const Tensor x = random_tensor({n}, dtype, {}, 1), y = random_tensor({n}, dtype, {}, 2),
                   one = random_tensor({1}, dtype, {}, 3),
                   column = random_tensor({3, 1}, dtype, {}, 4);
      const Array a = array_of(x), b = array_of(y), c = array_of(one), d = array_of(column);
      const auto plus = [](double p, double q) { return p + q; };
      const auto times = [](double p, double q) { return p * q; };
      INFO(dtype << " of " << n);
      for (const int threads : thread_counts({1, 3})) {
        set_num_threads(threads);
        CHECK_EXACT(x + y, reference::zip(a, b, plus));
        CHECK_EXACT(x * y, reference::zip(a, b, times));
        CHECK_EXACT(x - one, reference::zip(a, c, [](double p, double q) { return p - q; }));
        CHECK_EXACT(one * x, reference::zip(c, a, times));
        CHECK_EXACT(x + column, reference::zip(a, d, plus));
        CHECK_EXACT(column * x, reference::zip(d, a, times));
        CHECK_EXACT(maximum(x, y), reference::zip(a, b, reference::larger));
        CHECK_EXACT(gt(x, y), reference::zip(a, b, [](double p, double q) { return p > q; }));
        CHECK_EXACT(where(gt(x, y), x, y), reference::zip(a, b, reference::larger));
        CHECK_EXACT(x + 3, reference::map(a, [](double p) { return p + 3; }));
      }
    }
  set_num_threads(before);
}

TEST_CASE("elementwise: two types are promoted", "[elementwise]") {
  for (const DType a : all_dtypes())
    for (const DType b : all_dtypes()) {
      const Tensor x = random_tensor({2, 3}, a, {}, 1, 0, 9),
                   y = random_tensor({3}, b, {}, 2, 1, 9);
      const DType common = promote(a, b);
      const Array p = array_of(x), q = array_of(y);
      INFO(a << " with " << b);
      const Tensor sum = x + y;
      CHECK(sum.dtype() == common);
      if (common != DType::bool_)
        CHECK_EXACT(sum, reference::zip(p, q, [](double u, double v) { return u + v; }));
      const Tensor product = x * y;
      CHECK(product.dtype() == common);
      CHECK_EXACT(product, reference::zip(p, q, [](double u, double v) { return u * v; }));
      CHECK((x / full({3}, 2, {.dtype = b})).dtype() ==
            (is_floating(common) ? common : DType::float32));
      CHECK(lt(x, y).dtype() == DType::bool_);
      CHECK_EXACT(lt(x, y), reference::zip(p, q, [](double u, double v) { return u < v; }));
      CHECK(where(tensor({true, false, true}), x, y).dtype() == common);
      CHECK(maximum(x, y).dtype() == common);
    }
  // The operands are brought to the common type before the operation.
  CHECK(add(tensor({1.0}, {.dtype = DType::float16}), tensor({0x1p-12}, {.dtype = DType::float64}))
            .item<double>() == 1 + 0x1p-12);
  CHECK(add(tensor({1.0}, {.dtype = DType::float16}), tensor({0x1p-9}, {.dtype = DType::bfloat16}))
            .item<double>() == 1 + 0x1p-9);
}

TEST_CASE("elementwise: gradients go back to the types that took part",
          "[elementwise][gradients]") {
  const Tensor x = tensor({1.0, 2.0}, {.dtype = DType::float16}).requires_grad_(),
               y = tensor({3.0, 4.0}, {.dtype = DType::float64}).requires_grad_();
  (x * y).sum().backward();
  CHECK(x.grad().dtype() == DType::float16);
  CHECK(y.grad().dtype() == DType::float64);
  CHECK(x.grad().to_vector<double>() == std::vector<double>{3, 4});
  CHECK(y.grad().to_vector<double>() == std::vector<double>{1, 2});
  const Tensor z = tensor({1.0, 2.0}).requires_grad_();
  (z * arange(2)).sum().backward();
  CHECK(z.grad().to_vector<double>() == std::vector<double>{0, 1});
}

TEST_CASE("elementwise: a number keeps the type of the tensor", "[elementwise]") {
  for (const DType t : floating_dtypes()) {
    const Tensor x = full({2}, 1.5, {.dtype = t});
    for (const Tensor& y : {x + 1, x - 1, x * 2, x / 2, 1 + x, 1 - x, 2 * x, 2 / x, pow(x, 2)})
      CHECK(y.dtype() == t);
  }
  // Numbers that the type cannot hold exactly are rounded to it first.
  CHECK((tensor({1.0}, {.dtype = DType::bfloat16}) * 1.001).item<double>() == 1);
  for (const DType t : {DType::uint8, DType::int32, DType::int64})
    CHECK((full({2}, 5, {.dtype = t}) + 1).dtype() == t);
  CHECK((arange(3) / 2).dtype() == DType::float32);
  CHECK((arange(3) / 2).to_vector<double>() == std::vector<double>{0, 0.5, 1});
}

TEST_CASE("elementwise: 64-bit integers are exact", "[elementwise]") {
  constexpr std::int64_t kBig = (std::int64_t{1} << 60) + 1;
  const Tensor x = tensor({kBig, -kBig}), y = tensor({std::int64_t{1}, std::int64_t{1}});
  CHECK((x + y).to_vector<std::int64_t>() == std::vector<std::int64_t>{kBig + 1, -kBig + 1});
  CHECK((x - y).to_vector<std::int64_t>() == std::vector<std::int64_t>{kBig - 1, -kBig - 1});
  CHECK((-x).to_vector<std::int64_t>() == std::vector<std::int64_t>{-kBig, kBig});
  CHECK(abs(x).to_vector<std::int64_t>() == std::vector<std::int64_t>{kBig, kBig});
  CHECK((x * y).to_vector<std::int64_t>() == std::vector<std::int64_t>{kBig, -kBig});
  CHECK(gt(x, x - y).to_vector<bool>() == std::vector<bool>{true, true});
  CHECK(eq(x, x - y).to_vector<bool>() == std::vector<bool>{false, false});
  CHECK(maximum(x, x - y).to_vector<std::int64_t>() == std::vector<std::int64_t>{kBig, -kBig});
  CHECK(where(tensor({true, false}), x, y).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{kBig, 1});
  // Overflow wraps, without a trap.
  const Tensor low = tensor({std::numeric_limits<std::int64_t>::min()});
  CHECK((-low).item<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK((low - tensor({1})).item<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
  CHECK((tensor({0x7fffffff}, {.dtype = DType::int32}) + tensor({1}, {.dtype = DType::int32}))
            .item<std::int64_t>() == -0x80000000ll);
  CHECK((arange(2) / tensor({0, 0})).to_vector<float>()[1] == INFINITY);  // true division
}

TEST_CASE("elementwise: broadcasting is an expand", "[elementwise]") {
  Numbers numbers(8);
  for (int round = 0; round < 200; ++round) {
    Sizes full;
    for (std::int64_t i = numbers.integer(0, 5); i > 0; --i) full.push_back(numbers.integer(0, 5));
    const auto part = [&] {
      Sizes s(full.begin() + numbers.integer(0, static_cast<std::int64_t>(full.size()) + 1),
              full.end());
      for (std::int64_t& n : s)
        if (numbers.integer(0, 3) == 0) n = 1;
      return s;
    };
    const Tensor a = random_tensor(part(), DType::float32, {}, static_cast<std::uint64_t>(round)),
                 b = random_tensor(part(), DType::float32, {},
                                   static_cast<std::uint64_t>(round) + 1000);
    const Shape shape = broadcast_shapes("add", a.shape(), b.shape());
    INFO(a.shape() << " with " << b.shape());
    CHECK_SAME_BITS(a + b, a.expand(shape).clone() + b.expand(shape).clone());
    CHECK_EXACT(a * b,
                reference::zip(array_of(a), array_of(b), [](double p, double q) { return p * q; }));
    const Tensor c = random_tensor(part(), DType::float32, {}, 7);
    const Shape all = broadcast_shapes("where", shape, c.shape());
    CHECK_SAME_BITS(
        where(gt(a, 0), b, c),
        where(gt(a, 0).expand(broadcast_shapes("where", a.shape(), all)).clone(), b, c));
  }
}

TEST_CASE("elementwise: what does not fit is refused", "[elementwise][errors]") {
  const Tensor a = zeros({2, 3}), b = zeros({2, 4}), m = ones({2, 3}, {.dtype = DType::bool_});
  CHECK_THROWS_TEXT(ShapeError, "add: expected *got *[2, 3] and [2, 4]", a + b);
  CHECK_THROWS_TEXT(ShapeError, "sub: ", a - b);
  CHECK_THROWS_TEXT(ShapeError, "mul: ", a * b);
  CHECK_THROWS_TEXT(ShapeError, "div: ", a / b);
  CHECK_THROWS_TEXT(ShapeError, "maximum: ", maximum(a, b));
  CHECK_THROWS_TEXT(ShapeError, "minimum: ", minimum(a, b));
  CHECK_THROWS_TEXT(ShapeError, "eq: ", eq(a, b));
  CHECK_THROWS_TEXT(ShapeError, "le: ", le(a, b));
  CHECK_THROWS_TEXT(ShapeError, "where: ", where(m, a, b));
  CHECK_THROWS_TEXT(ShapeError, "where: ", where(gt(b, 0), a, a));
  CHECK_THROWS_TEXT(DTypeError, "where: expected *bool*got *float32", where(a, a, a));
  CHECK_THROWS_TEXT(DTypeError, "where: expected *bool*got *uint8",
                    where(ones({2, 3}, {.dtype = DType::uint8}), a, a));
  CHECK_THROWS_TEXT(DeviceError, here("add: *cpu:0*cpu:1"), a + zeros({2, 3}, {.device = there()}));
  CHECK_THROWS_TEXT(DeviceError, "where: ", where(m.to(there()), a, a));
}

}  // namespace braid::test::on_device
