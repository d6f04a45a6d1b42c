#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <braid/core/backend.hpp>
#include <braid/core/device.hpp>
#include <braid/core/error.hpp>
#include <braid/core/kernel_args/gemm.hpp>

#include "cpu/gemm_library.hpp"
#include "reference/sums.hpp"
#include "support/catch.hpp"

namespace {

using braid::bfloat16;
using braid::Device;
using braid::DType;
using braid::float16;
using braid::GemmArgs;

struct Case {
  std::int64_t m, n, k;
  bool ta = false, tb = false;
  bool accumulate = false, bias = false;
  std::int64_t batch = 1;
  std::int64_t pad = 0;  // leading dims are larger than they must be
  bool repeat_a = false, repeat_b = false;
};

std::string describe(const Case& c, DType dtype) {
  return braid::str(braid::name_of(dtype), " m ", c.m, " n ", c.n, " k ", c.k, c.ta ? " T" : " N",
                    c.tb ? "T" : "N", c.accumulate ? " accumulate" : "", c.bias ? " bias" : "",
                    " batch ", c.batch, " pad ", c.pad);
}

void gemm(const GemmArgs& args) {
  const braid::DeviceContext& context = braid::device_context(Device("cpu"));
  context.kernels->gemm(args, *context.stream);
}

template <class T> double to_double(T x) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return static_cast<double>(static_cast<float>(x));
  else return static_cast<double>(x);
}
template <class T> T from_double(double x) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>)
    return T(static_cast<float>(x));
  else return static_cast<T>(x);
}

// Half of the distance from 1 to the next number.
template <class T> double unit() {
  if constexpr (std::is_same_v<T, float16>) return 0x1p-11;
  else if constexpr (std::is_same_v<T, bfloat16>) return 0x1p-8;
  else if constexpr (std::is_integral_v<T>) return 0;
  else return static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
}

// Buffers as small as the contract allows, so that a sanitizer sees every step outside.
template <class T> struct Operands {
  std::vector<T> a, b, c, bias;
  GemmArgs args{};

  explicit Operands(const Case& s, unsigned seed = 1) {
    const std::int64_t a_rows = s.ta ? s.k : s.m, a_cols = s.ta ? s.m : s.k,
                       b_rows = s.tb ? s.n : s.k, b_cols = s.tb ? s.k : s.n;
    args.dtype = braid::dtype_of<T>;
    args.ta = s.ta, args.tb = s.tb, args.accumulate = s.accumulate;
    args.m = s.m, args.n = s.n, args.k = s.k, args.batch = s.batch;
    args.lda = std::max<std::int64_t>(1, a_cols + s.pad),
    args.ldb = std::max<std::int64_t>(1, b_cols + s.pad),
    args.ldc = std::max<std::int64_t>(1, s.n + s.pad);
    const auto extent = [](std::int64_t rows, std::int64_t cols, std::int64_t ld) {
      return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols;
    };
    const std::int64_t a_size = extent(a_rows, a_cols, args.lda),
                       b_size = extent(b_rows, b_cols, args.ldb),
                       c_size = extent(s.m, s.n, args.ldc);
    args.batch_a = s.repeat_a ? 0 : a_size, args.batch_b = s.repeat_b ? 0 : b_size,
    args.batch_c = c_size;
    std::mt19937 random(seed);
    const auto fill = [&](std::vector<T>& x, std::int64_t size) {
      x.resize(static_cast<std::size_t>(size));
      for (T& v : x)
        v = from_double<T>(std::is_integral_v<T> ? static_cast<double>(random() % 200) - 100
                                                 : static_cast<double>(random() % 2001) / 1000 - 1);
    };
    fill(a, s.repeat_a ? a_size : a_size * s.batch);
    fill(b, s.repeat_b ? b_size : b_size * s.batch);
    fill(c, c_size * s.batch);
    if (s.bias) fill(bias, s.n);
    args.a = a.data(), args.b = b.data(), args.c = c.data(),
    args.bias = s.bias ? bias.data() : nullptr;
  }
};

// A plain triple loop in double (integers: in wrapping uint64), and the bound (k + 2) · u · Σ|a||b|
// of any order of summation.
template <class T> void check_against_reference(const Case& s) {
  INFO(describe(s, braid::dtype_of<T>));
  Operands<T> x(s);
  const std::vector<T> before = x.c;
  gemm(x.args);
  // Widened once, and read through plain pointers.
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;
  const auto widened = [](const std::vector<T>& values) {
    std::vector<Wide> wide;
    for (const T v : values) {
      if constexpr (std::is_integral_v<T>) wide.push_back(static_cast<Wide>(v));
      else wide.push_back(to_double(v));
    }
    return wide;
  };
  const std::vector<Wide> all_a = widened(x.a), all_b = widened(x.b);
  const Wide *const a = all_a.data(), *const b = all_b.data();
  const std::int64_t step_a = s.ta ? x.args.lda : 1, step_b = s.tb ? 1 : x.args.ldb;
  const double sum_unit =
      std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> ? 0x1p-24 : unit<T>();
  std::size_t wrong = 0, untouched_wrong = 0;
  double worst = 0;
  for (std::int64_t q = 0; q < s.batch; ++q) {
    std::vector<bool> inside(static_cast<std::size_t>(x.args.batch_c), false);
    for (std::int64_t i = 0; i < s.m; ++i)
      for (std::int64_t j = 0; j < s.n; ++j) {
        const auto at = static_cast<std::size_t>(i * x.args.ldc + j),
                   global = at + static_cast<std::size_t>(q * x.args.batch_c);
        inside[at] = true;
        const std::int64_t first_a = q * x.args.batch_a + (s.ta ? i : i * x.args.lda),
                           first_b = q * x.args.batch_b + (s.tb ? j * x.args.ldb : j);
        const Wide *const left = s.k > 0 ? a + first_a : nullptr, *const right = s.k > 0
                                                                                     ? b + first_b
                                                                                     : nullptr;
        if constexpr (std::is_integral_v<T>) {
          std::uint64_t sum = s.accumulate ? static_cast<std::uint64_t>(before[global]) : 0;
          if (s.bias) sum += static_cast<std::uint64_t>(x.bias[static_cast<std::size_t>(j)]);
          sum = reference::add_products(sum, left, step_a, right, step_b, s.k);
          wrong += x.c[global] != static_cast<T>(sum);
        } else {
          double start = s.accumulate ? to_double(before[global]) : 0;
          if (s.bias) start += to_double(x.bias[static_cast<std::size_t>(j)]);
          const auto [sum, size] = reference::add_products(start, left, step_a, right, step_b, s.k);
          const double subnormal = std::is_same_v<T, float16> ? 0x1p-25 : 0;
          const double bound = (static_cast<double>(s.k) + 2) * sum_unit * size +
                               unit<T>() * std::abs(sum) * 1.001 + subnormal;
          const double error = std::abs(to_double(x.c[global]) - sum);
          if (!(error <= bound)) ++wrong;
          worst = std::max(worst, error);
        }
      }
    for (std::size_t at = 0; at < inside.size(); ++at)
      if (!inside[at]) {
        const std::size_t global = at + static_cast<std::size_t>(q * x.args.batch_c);
        untouched_wrong += std::memcmp(&x.c[global], &before[global], sizeof(T)) != 0;
      }
  }
  INFO("worst error " << worst);
  CHECK(wrong == 0);
  CHECK(untouched_wrong == 0);
}

template <class F> void with_and_without_library(F f) {
  f();
  if (!braid::cpu::library_gemm_available()) return;
  struct Off {
    Off() { (void)braid::cpu::use_library_gemm(false); }
    ~Off() { (void)braid::cpu::use_library_gemm(true); }
  } off;
  f();
}

}  // namespace

TEMPLATE_TEST_CASE("gemm: sizes that break tilings, all layouts", "[kernels][gemm]", float, double,
                   float16, bfloat16, std::int32_t, std::int64_t) {
  unsigned turn = 0;
  for (std::int64_t m : {1, 2, 4, 5, 6, 7, 13, 37})
    for (std::int64_t n : {1, 2, 3, 8, 15, 16, 17, 31, 33, 64, 65, 81, 130})
      for (std::int64_t k : {1, 2, 5, 7, 16, 33, 64, 71, 129, 300})
        for (int layout = 0; layout < 4; ++layout, ++turn) {
          Case s{m, n, k, layout >= 2, layout % 2 == 1};
          s.pad = turn % 3 == 0 ? 3 : 0;
          s.accumulate = turn % 5 == 1;
          s.bias = turn % 5 == 3;
          check_against_reference<TestType>(s);
        }
}

TEMPLATE_TEST_CASE("gemm: large enough to be cut", "[kernels][gemm]", float, double, float16,
                   bfloat16, std::int64_t) {
  with_and_without_library([] {
    for (int layout = 0; layout < 4; ++layout)
      for (int end = 0; end < 3; ++end)
        for (auto [m, n, k] : {std::array<std::int64_t, 3>{150, 170, 70},
                               {64, 300, 200},
                               {301, 129, 131},
                               {3, 900, 150},
                               {700, 9, 90},
                               {400, 1, 300}}) {
          Case s{m, n, k, layout >= 2, layout % 2 == 1};
          s.accumulate = end == 1;
          s.bias = end == 2;
          s.pad = end;
          check_against_reference<TestType>(s);
        }
  });
}

TEST_CASE("gemm: a grid in both directions", "[kernels][gemm]") {
  with_and_without_library([] {
    for (int layout = 0; layout < 4; ++layout) {
      Case s{270, 530, 140, layout >= 2, layout % 2 == 1};
      s.bias = layout % 2 == 0;
      check_against_reference<float>(s);
    }
  });
}

TEMPLATE_TEST_CASE("gemm: batches, with repeated operands", "[kernels][gemm]", float, double,
                   float16, std::int32_t) {
  for (std::int64_t batch : {2, 3, 33})
    for (int layout = 0; layout < 4; ++layout)
      for (auto [m, n, k] : {std::array<std::int64_t, 3>{3, 4, 5}, {17, 19, 23}, {40, 50, 60}})
        for (int repeat = 0; repeat < 3; ++repeat) {
          Case s{m, n, k, layout >= 2, layout % 2 == 1};
          s.batch = batch;
          s.repeat_a = repeat == 1;
          s.repeat_b = repeat == 2;
          s.bias = repeat == 0;
          s.pad = repeat;
          check_against_reference<TestType>(s);
        }
}

TEST_CASE("gemm: a batch of large matrices", "[kernels][gemm]") {
  with_and_without_library([] {
    for (bool tb : {false, true}) {
      Case s{130, 140, 150, false, tb};
      s.batch = 3;
      check_against_reference<float>(s);
    }
  });
}

TEMPLATE_TEST_CASE("gemm: nothing along k, or nothing at all", "[kernels][gemm]", float, double,
                   float16, bfloat16, std::int32_t, std::int64_t) {
  for (int layout = 0; layout < 4; ++layout)
    for (int end = 0; end < 3; ++end) {
      Case s{7, 35, 0, layout >= 2, layout % 2 == 1};
      s.accumulate = end == 1;
      s.bias = end == 2;
      check_against_reference<TestType>(s);
      s.batch = 4;
      check_against_reference<TestType>(s);
    }
  for (Case s : {Case{0, 5, 3}, Case{5, 0, 3}, Case{0, 0, 0}}) {
    Operands<TestType> x(s);
    gemm(x.args);
    CHECK(x.c.empty());
  }
  Case none{4, 4, 4};
  none.batch = 0;
  Operands<TestType> x(none);
  gemm(x.args);
  CHECK(x.c.empty());
}

TEMPLATE_TEST_CASE("gemm: NaN and infinity go where they belong", "[kernels][gemm]", float, double,
                   float16, bfloat16) {
  with_and_without_library([] {
    constexpr double inf = std::numeric_limits<double>::infinity(),
                     nan = std::numeric_limits<double>::quiet_NaN();
    for (int layout = 0; layout < 4; ++layout)
      for (auto [m, n, k] : {std::array<std::int64_t, 3>{7, 9, 5},
                             {20, 70, 33},
                             {3, 40, 100},
                             {64, 10, 130},
                             {150, 170, 70}})
        for (double special : {nan, inf, -inf})
          for (std::int64_t where : {std::int64_t{0}, k / 2, k - 1}) {
            const Case s{m, n, k, layout >= 2, layout % 2 == 1};
            INFO(describe(s, braid::dtype_of<TestType>)
                 << " special " << special << " at " << where);
            Operands<TestType> x(s);
            for (TestType& v : x.a) v = from_double<TestType>(std::abs(to_double(v)) + 0.5);
            for (TestType& v : x.b) v = from_double<TestType>(std::abs(to_double(v)) + 0.5);
            const std::int64_t row = m - 1;
            x.a[static_cast<std::size_t>(s.ta ? where * x.args.lda + row
                                              : row * x.args.lda + where)] =
                from_double<TestType>(special);
            gemm(x.args);
            std::size_t wrong = 0;
            for (std::int64_t i = 0; i < m; ++i)
              for (std::int64_t j = 0; j < n; ++j) {
                const double c = to_double(x.c[static_cast<std::size_t>(i * x.args.ldc + j)]);
                if (i != row) wrong += !std::isfinite(c);
                else if (std::isnan(special)) wrong += !std::isnan(c);
                else wrong += c != special;
              }
            CHECK(wrong == 0);
          }
  });
}

TEMPLATE_TEST_CASE("gemm: what C held before does not matter unless it is added to",
                   "[kernels][gemm]", float, double, float16, bfloat16) {
  with_and_without_library([] {
    for (auto [m, n, k] :
         {std::array<std::int64_t, 3>{7, 9, 5}, {150, 170, 70}, {64, 10, 130}, {5, 6, 0}})
      for (bool tb : {false, true})
        for (bool bias : {false, true}) {
          Case s{m, n, k, false, tb};
          s.bias = bias;
          Operands<TestType> x(s);
          for (TestType& v : x.c)
            v = from_double<TestType>(std::numeric_limits<double>::quiet_NaN());
          gemm(x.args);
          CHECK(std::none_of(x.c.begin(), x.c.end(),
                             [](TestType v) { return std::isnan(to_double(v)); }));
        }
  });
}

TEMPLATE_TEST_CASE("gemm: the same bits for any number of threads, and again",
                   "[kernels][gemm][threads]", float, double, float16, bfloat16) {
  const int before = braid::num_threads();
  with_and_without_library([] {
    std::vector<Case> cases;
    for (auto [m, n, k] : {std::array<std::int64_t, 3>{64, 512, 784},
                           {512, 784, 64},
                           {64, 10, 512},
                           {10, 512, 64},
                           {64, 512, 10},
                           {2, 700, 300},
                           {333, 5, 400},
                           {270, 530, 140}})
      for (int layout = 0; layout < 3; ++layout)
        cases.push_back({m, n, k, layout == 2, layout == 1});
    cases.push_back({20, 20, 20});
    cases.back().batch = 100;
    for (Case s : cases) {
      s.bias = true;
      INFO(describe(s, braid::dtype_of<TestType>));
      Operands<TestType> x(s);
      std::vector<TestType> first;
      for (int threads : {1, 2, 3, 5, 2}) {
        braid::set_num_threads(threads);
        std::fill(x.c.begin(), x.c.end(), TestType{});
        gemm(x.args);
        if (first.empty()) first = x.c;
        CHECK(std::memcmp(first.data(), x.c.data(), first.size() * sizeof(TestType)) == 0);
      }
    }
  });
  braid::set_num_threads(before);
}

TEMPLATE_TEST_CASE("gemm: relu is the last thing done, and keeps NaN", "[kernels][gemm]", float,
                   double, float16, bfloat16, std::int32_t, std::int64_t) {
  with_and_without_library([] {
    for (auto [m, n, k] :
         {std::array<std::int64_t, 3>{7, 9, 5}, {150, 170, 70}, {64, 10, 130}, {3, 40, 0}})
      for (int layout = 0; layout < 4; ++layout) {
        Case s{m, n, k, layout >= 2, layout % 2 == 1};
        s.accumulate = layout == 1, s.bias = layout == 2, s.pad = layout;
        s.batch = layout == 3 ? 3 : 1;
        INFO(describe(s, braid::dtype_of<TestType>));
        Operands<TestType> plain(s), relu(s);
        if constexpr (!std::is_integral_v<TestType>)
          if (k > 0)
            plain.a[0] = relu.a[0] =
                from_double<TestType>(std::numeric_limits<double>::quiet_NaN());
        relu.args.activation = braid::Activation::relu;
        gemm(plain.args), gemm(relu.args);
        std::size_t wrong = 0;
        for (std::size_t at = 0; at < plain.c.size(); ++at) {
          const bool inside =
              static_cast<std::int64_t>(at) % plain.args.batch_c % plain.args.ldc < n;
          const double before = to_double(plain.c[at]), after = to_double(relu.c[at]);
          if (std::isnan(before)) wrong += !std::isnan(after);
          else wrong += after != (inside && before < 0 ? 0 : before);
        }
        CHECK(wrong == 0);
      }
  });
}

TEMPLATE_TEST_CASE("gemm: sums of op(A)'s rows beside the product", "[kernels][gemm]", float,
                   double, float16, bfloat16) {
  const int before = braid::num_threads();
  for (auto [m, n, k] : {std::array<std::int64_t, 3>{2, 5, 30},
                         {33, 70, 1},
                         {130, 17, 300},
                         {10, 64, 3000},
                         {5, 4, 0}})
    for (bool ta : {false, true})
      for (std::int64_t pad : {0, 3}) {
        Case s{m, n, k, ta, false};
        s.pad = pad, s.accumulate = pad == 3;
        INFO(describe(s, braid::dtype_of<TestType>));
        Operands<TestType> plain(s), with(s);
        std::vector<TestType> sums(static_cast<std::size_t>(m), from_double<TestType>(7)), first;
        with.args.sum_a = sums.data();
        gemm(plain.args);
        for (const int threads : {1, 3}) {
          braid::set_num_threads(threads);
          with.c = plain.c.empty() ? with.c : Operands<TestType>(s).c;
          with.args.c = with.c.data();
          gemm(with.args);
          if (first.empty()) first = sums;
          CHECK(std::memcmp(first.data(), sums.data(), sums.size() * sizeof(TestType)) == 0);
          CHECK(std::memcmp(plain.c.data(), with.c.data(), plain.c.size() * sizeof(TestType)) == 0);
        }
        const double sum_unit = std::is_same_v<TestType, double> ? 0x1p-53 : 0x1p-24;
        std::size_t wrong = 0;
        for (std::int64_t i = 0; i < m; ++i) {
          double sum = 0, size = 0;
          for (std::int64_t p = 0; p < k; ++p) {
            const double x = to_double(with.a[static_cast<std::size_t>(
                ta ? p * with.args.lda + i : i * with.args.lda + p)]);
            sum += x, size += std::abs(x);
          }
          const double bound =
              (std::ceil(std::log2(static_cast<double>(k < 1 ? 1 : k))) + 2) * sum_unit * size +
              1.001 * unit<TestType>() * std::abs(sum);
          wrong += !(std::abs(to_double(sums[static_cast<std::size_t>(i)]) - sum) <= bound);
        }
        CHECK(wrong == 0);
      }
  braid::set_num_threads(before);
}

TEST_CASE("gemm_pair: the bits of two products", "[kernels][gemm][pair]") {
  for (const auto& [rows, in, out] :
       std::vector<std::array<std::int64_t, 3>>{{30, 5, 2}, {0, 5, 2}, {64, 130, 70}}) {
    const Case dx{rows, in, out}, dw{out, in, rows, true, false};
    Operands<float> input(dx), weight(dw, 2), first(dx), second(dw, 2);
    std::vector<float> sums(static_cast<std::size_t>(out), 7), pair_sums = sums;
    weight.args.sum_a = sums.data(), second.args.sum_a = pair_sums.data();
    gemm(input.args), gemm(weight.args);
    const auto& context = braid::device_context(Device("cpu"));
    context.kernels->gemm_pair({first.args, second.args}, *context.stream);
    CHECK((input.c == first.c && weight.c == second.c && sums == pair_sums));
  }
}

TEST_CASE("gemm: a 16-bit product is summed in float and rounded once", "[kernels][gemm]") {
  // 4096 ones times 2^-8 + 2^-9: a bfloat16 sum would stop growing at 2.
  const Case s{1, 1, 4096};
  Operands<bfloat16> x(s);
  for (bfloat16& v : x.a) v = bfloat16(1.0f);
  for (bfloat16& v : x.b) v = bfloat16(0x1.8p-8f);
  gemm(x.args);
  CHECK(static_cast<float>(x.c[0]) == 24.0f);
}

TEST_CASE("gemm: integers wrap", "[kernels][gemm]") {
  std::int32_t a = std::numeric_limits<std::int32_t>::max(), b = 2, c = 0;
  GemmArgs args{};
  args.dtype = DType::int32;
  args.m = args.n = args.k = args.batch = args.lda = args.ldb = args.ldc = 1;
  args.a = &a, args.b = &b, args.c = &c;
  gemm(args);
  CHECK(c == -2);
}

TEST_CASE("gemm: bool and uint8 are refused", "[kernels][gemm][errors]") {
  for (DType dtype : {DType::bool_, DType::uint8}) {
    GemmArgs args{};
    args.dtype = dtype;
    args.m = args.n = args.k = args.batch = args.lda = args.ldb = args.ldc = 1;
    unsigned char a = 1, b = 1, c = 9;
    args.a = &a, args.b = &b, args.c = &c;
    try {
      gemm(args);
      FAIL("expected DTypeError");
    } catch (const braid::DTypeError& error) {
      const std::string text = error.what();
      CHECK(text.find("matmul: expected float32") == 0);
      CHECK(text.find(std::string(braid::name_of(dtype))) != std::string::npos);
    }
    CHECK(c == 9);
  }
}
