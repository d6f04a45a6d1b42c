#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"
#include "reference/functions.hpp"

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

double expected_of(BinaryOp op, DType t, double a, double b, double alpha) {
  // alpha is rounded to it, and the product
  const DType computed = t == DType::float64 ? t : DType::float32;
  const double scaled =
      braid::is_floating(t) ? rounded(computed, rounded(computed, alpha) * b) : alpha * b;
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
    default: return kNaN;  // those with a tolerance are in the tests of the ops and of every kernel
  }
}

DType result_type(BinaryOp op, DType t) { return braid::is_comparison(op) ? DType::bool_ : t; }

enum class Missing { none, a, b };

void check_loop(BinaryOp op, DType t, const Loop& loop, std::int64_t shift, double alpha = 1,
                Missing missing = Missing::none) {
  INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " n " << loop.n << " rank "
             << loop.rank << " shift " << shift << " alpha " << alpha);
  constexpr double scalar = 3;
  Buffer a(t, extent(loop, 1)), b(t, extent(loop, 2)), out(result_type(op, t), extent(loop, 0));
  a.pattern(1), b.pattern(2), out.pattern(3);
  if (divides(op))
    for (std::int64_t i = 0; i < b.size(); ++i)
      if (b[i] == 0) b.put(i, 1);
  const auto before = out.bytes();
  Twin da(a, shift), db(b, 2 * shift), dout(out, shift);
  gpu().binary(BinaryArgs{.op = op,
                          .dtype = t,
                          .out = dout.data(),
                          .a = missing == Missing::a ? nullptr : da.data(),
                          .b = missing == Missing::b ? nullptr : db.data(),
                          .scalar = scalar,
                          .alpha = alpha,
                          .loop = loop},
               gpu_stream());
  dout.fetch();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i) {
    const double x = missing == Missing::a ? rounded(t, scalar) : a[offset(loop, 1, i)],
                 y = missing == Missing::b ? rounded(t, scalar) : b[offset(loop, 2, i)];
    wrong += !close(out.dtype(), out[offset(loop, 0, i)], expected_of(op, t, x, y, alpha), 0);
  }
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

}  // namespace

TEST_CASE("cuda binary: every op, dtype and alignment, exactly", "[cuda_kernels][binary]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const BinaryOp op : kOps) {
      if (!has(op, t)) continue;
      for (const std::int64_t n : {0, 1, 17, 1025})
        for (const std::int64_t shift : {0, 1}) check_loop(op, t, dense(n), shift);
      check_loop(op, t, dense(70), 0, 1, Missing::b);
      check_loop(op, t, dense(70), 1, 1, divides(op) ? Missing::none : Missing::a);
      if (op == BinaryOp::add || op == BinaryOp::sub) {
        if (t == DType::bool_) continue;
        check_loop(op, t, dense(70), 0, braid::is_floating(t) ? -0.3 : -3);
        check_loop(op, t, strided({7, 10}, {{10, 1}, {1, 7}, {0, 1}}), 0,
                   braid::is_floating(t) ? -0.3 : 2);
      }
    }
}

TEST_CASE("cuda binary: broadcast and strided operands", "[cuda_kernels][binary]") {
  NEEDS_GPU;
  const std::vector<Loop> loops{
      strided({5, 33}, {{33, 1}, {33, 1}, {0, 1}}),
      strided({33, 5}, {{5, 1}, {5, 1}, {1, 33}}),
      strided({7, 3}, {{3, 1}, {0, 1}, {1, 0}}),
      strided({4, 3, 50}, {{200, 60, 1}, {50, 200, 1}, {0, 0, 0}}),
      strided({100}, {{2}, {3}, {1}}),
      strided({2, 2, 2, 2, 2, 2, 2, 2}, {{128, 64, 32, 16, 8, 4, 2, 1},
                                         {1, 2, 4, 8, 16, 32, 64, 128},
                                         {0, 64, 0, 16, 0, 4, 0, 1}}),
      strided({}, {{}, {}, {}}),
      strided({3, 0, 2}, {{0, 2, 1}, {0, 2, 1}, {0, 2, 1}}),
  };
  for (const Loop& loop : loops)
    for (const DType t : kAll)
      for (const BinaryOp op : {BinaryOp::sub, BinaryOp::mul, BinaryOp::lt}) {
        if (!has(op, t)) continue;
        check_loop(op, t, loop, 1);
      }
}

TEST_CASE("cuda binary: NaN, infinities and zeros", "[cuda_kernels][binary]") {
  NEEDS_GPU;
  const std::vector<double> specials{kNaN, kInf, -kInf, 0.0, -0.0, 1.0, -1.0};
  const auto n = static_cast<std::int64_t>(specials.size() * specials.size());
  for (const DType t : kFloats)
    for (const BinaryOp op : kOps) {
      Buffer a(t, n), b(t, n), out(result_type(op, t), n);
      for (std::int64_t i = 0; i < n; ++i) {
        a.put(i, specials[static_cast<std::size_t>(i) / specials.size()]);
        b.put(i, specials[static_cast<std::size_t>(i) % specials.size()]);
      }
      Twin da(a), db(b), dout(out);
      gpu().binary(BinaryArgs{.op = op,
                              .dtype = t,
                              .out = dout.data(),
                              .a = da.data(),
                              .b = db.data(),
                              .scalar = 0,
                              .alpha = 1,
                              .loop = dense(n)},
                   gpu_stream());
      dout.fetch();
      for (std::int64_t i = 0; i < n; ++i) {
        const double expected = expected_of(op, t, a[i], b[i], 1);
        INFO("op " << static_cast<int>(op) << " " << braid::name_of(t) << " " << a[i] << ", "
                   << b[i] << " got " << out[i]);
        CHECK((std::isnan(expected) ? std::isnan(out[i]) : out[i] == expected));
      }
    }
}

TEST_CASE("cuda binary: integers wrap, and division by 0 is thrown at the next wait",
          "[cuda_kernels][binary]") {
  NEEDS_GPU;
  const auto run = [](DType t, BinaryOp op, double x, double y, std::int64_t n) {
    Buffer a(t, n), b(t, n), out(t, n);
    for (std::int64_t i = 0; i < n; ++i) a.put(i, x), b.put(i, y);
    Twin da(a), db(b), dout(out);
    gpu().binary(BinaryArgs{.op = op,
                            .dtype = t,
                            .out = dout.data(),
                            .a = da.data(),
                            .b = db.data(),
                            .scalar = 0,
                            .alpha = 1,
                            .loop = dense(n)},
                 gpu_stream());
    dout.fetch();
    return out[n - 1];
  };
  const double low = std::numeric_limits<std::int32_t>::min();
  CHECK(run(DType::int32, BinaryOp::div, low, -1, 9) == low);
  CHECK(run(DType::int32, BinaryOp::add, low, -1, 9) == std::numeric_limits<std::int32_t>::max());
  CHECK(run(DType::uint8, BinaryOp::mul, 16, 17, 9) == 16);
  CHECK(run(DType::int64, BinaryOp::div, -7, 2, 9) == -3);
  for (const DType t : {DType::uint8, DType::int32, DType::int64}) {
    CHECK_THROWS_WITH(run(t, BinaryOp::div, 7, 0, 9),
                      "div: expected integer divisors other than 0, got 0");
    CHECK(run(t, BinaryOp::div, 8, 2, 9) == 4);  // the error is gone
  }
}

TEST_CASE("cuda binary: in place", "[cuda_kernels][binary]") {
  NEEDS_GPU;
  for (const DType t : kFloats)
    for (const std::int64_t n : {5, 1024}) {
      Buffer a(t, n), b(t, n), expected(t, n);
      a.pattern(1), b.pattern(2);
      for (std::int64_t i = 0; i < n; ++i) expected.put(i, a[i] + b[i]);
      Twin da(a), db(b);
      gpu().binary(BinaryArgs{.op = BinaryOp::add,
                              .dtype = t,
                              .out = da.data(),
                              .a = da.data(),
                              .b = db.data(),
                              .scalar = 0,
                              .alpha = 1,
                              .loop = dense(n)},
                   gpu_stream());
      da.fetch();
      CHECK(a.bytes() == expected.bytes());
    }
}

TEST_CASE("cuda binary: what bool lacks is refused by name", "[cuda_kernels][binary]") {
  NEEDS_GPU;
  for (const BinaryOp op : {BinaryOp::sub, BinaryOp::div, BinaryOp::relu_backward}) {
    BinaryArgs args{};
    args.op = op, args.dtype = DType::bool_, args.alpha = 1, args.loop = dense(4);
    CHECK_THROWS_AS(gpu().binary(args, gpu_stream()), braid::DTypeError);
    CHECK_THROWS_WITH(
        gpu().binary(args, gpu_stream()),
        "binary: expected an operation that bool has (not sub, div, relu_backward), got bool");
  }
}
