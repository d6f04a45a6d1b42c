#include <braid/core/kernel_args/elementwise.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;

namespace {

void run_copy(Buffer& out, const Buffer& x, const Loop& loop) {
  kernels().copy({out.dtype(), x.dtype(), out.data(), x.data(), loop}, stream());
}
void run_fill(Buffer& out, double value, std::int64_t integer, const Loop& loop) {
  kernels().fill({out.dtype(), out.data(), value, integer, loop}, stream());
}

// Returns x converted to `to`.
double converted(DType to, double x) {
  if (to == DType::bool_) return x != 0;
  if (to == DType::uint8)
    return static_cast<double>(static_cast<std::uint8_t>(static_cast<std::int64_t>(x)));
  if (!braid::is_floating(to)) return std::trunc(x);
  return rounded(to, x);
}

void check_copy(DType to, DType from, const Loop& loop, std::int64_t shift) {
  INFO(braid::name_of(from) << " to " << braid::name_of(to) << " n " << loop.n << " rank "
                            << loop.rank << " shift " << shift);
  Buffer x(from, extent(loop, 1), shift), out(to, extent(loop, 0), shift);
  x.pattern(1, 30), out.pattern(2);
  if (to == DType::uint8)
    // the conversion of negative numbers to uint8 is unspecified
    for (std::int64_t i = 0; i < x.size(); ++i) x.put(i, std::fabs(x[i]));
  const auto before = out.bytes();
  run_copy(out, x, loop);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i)
    wrong += out[offset(loop, 0, i)] != converted(to, x[offset(loop, 1, i)]);
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

void check_fill(DType t, const Loop& loop, std::int64_t shift) {
  INFO(braid::name_of(t) << " n " << loop.n << " rank " << loop.rank << " shift " << shift);
  Buffer out(t, extent(loop, 0), shift);
  const auto before = out.pattern(1).bytes();
  run_fill(out, 3.3, 3, loop);
  const double expected = t == DType::bool_ ? 1 : braid::is_floating(t) ? rounded(t, 3.3) : 3;
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i) wrong += out[offset(loop, 0, i)] != expected;
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

void check_where(DType t, const Loop& loop, std::int64_t shift) {
  INFO(braid::name_of(t) << " n " << loop.n << " rank " << loop.rank << " shift " << shift);
  Buffer c(DType::bool_, extent(loop, 1), shift), a(t, extent(loop, 2), shift),
      b(t, extent(loop, 3), 2 * shift), out(t, extent(loop, 0), shift);
  c.pattern(1), a.pattern(2), b.pattern(3), out.pattern(4);
  if (braid::is_floating(t) && a.size() > 0) a.put(0, kNaN), b.put(b.size() - 1, -0.0);
  const auto before = out.bytes();
  kernels().where({t, out.data(), c.data(), a.data(), b.data(), loop}, stream());
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i) {
    const double expected =
        c[offset(loop, 1, i)] != 0 ? a[offset(loop, 2, i)] : b[offset(loop, 3, i)];
    wrong += !close(t, out[offset(loop, 0, i)], expected, 0);
  }
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

}  // namespace

TEST_CASE("copy: every pair of dtypes, sizes and alignments", "[kernels][copy]") {
  NEEDS_DEVICE;
  for (const DType to : kAll)
    for (const DType from : kAll)
      for (const std::int64_t n : to == from ? sizes() : kSmallSizes)
        for (const std::int64_t shift : {0, 1}) check_copy(to, from, dense(n), shift);
}

TEST_CASE("copy: layouts", "[kernels][copy]") {
  NEEDS_DEVICE;
  const std::vector<Loop> loops{
      strided({33, 50}, {{50, 1}, {1, 33}}),               // transposed, ragged blocks
      strided({64, 48}, {{48, 1}, {1, 64}}),               // transposed, whole blocks
      strided({64, 32}, {{32, 1}, {1, 64}}),               // transposed, whole tiles
      strided({7, 50}, {{50, 1}, {1, 7}}),                 // transposed, too narrow for tiles
      strided({300, 200}, {{200, 1}, {1, 300}}),           // transposed, many tiles
      strided({3, 20, 17}, {{340, 17, 1}, {340, 1, 20}}),  // a batch of transposes
      strided({20, 3, 17}, {{51, 17, 1}, {1, 340, 20}}),   // contiguous dim of x is outermost
      strided({17, 20}, {{1, 17}, {20, 1}}),               // out is transposed
      strided({40, 9}, {{12, 1}, {9, 1}}),                 // rows into a wider matrix
      strided({40, 9}, {{9, 1}, {12, 1}}),                 // rows out of a wider matrix
      strided({40, 30}, {{30, 1}, {0, 1}}),                // a row repeated
      strided({40, 30}, {{30, 1}, {1, 0}}),                // a column repeated
      strided({70}, {{1}, {0}}),
      strided({70}, {{3}, {2}}),
      strided({2, 3, 4, 5}, {{60, 20, 5, 1}, {1, 2, 6, 24}}),
      strided({}, {{}, {}}),
      strided({5, 0}, {{0, 1}, {0, 1}})};
  for (const auto& [to, from] : {std::pair{DType::float32, DType::float32},
                                 {DType::float64, DType::float32},
                                 {DType::bool_, DType::bool_},
                                 {DType::bfloat16, DType::bfloat16},
                                 {DType::int64, DType::int64},
                                 {DType::float32, DType::float16},
                                 {DType::bfloat16, DType::float32},
                                 {DType::uint8, DType::float64}})
    for (const Loop& loop : loops)
      for (const std::int64_t shift : {0, 1}) check_copy(to, from, loop, shift);
}

TEST_CASE("copy: float16 and bfloat16 round to nearest even", "[kernels][copy]") {
  NEEDS_DEVICE;
  const auto same = [](double got, double expected) {
    return std::isnan(expected) ? std::isnan(got)
                                : got == expected && std::signbit(got) == std::signbit(expected);
  };
  // Converts all 16-bit patterns to float and back, and floats near the midpoint of two neighbours.
  for (const DType t : {DType::float16, DType::bfloat16}) {
    Buffer narrow(t, 65536), wide(DType::float32, 65536), back(t, 65536);
    auto* const patterns = static_cast<std::uint16_t*>(narrow.host());
    for (std::int64_t i = 0; i < 65536; ++i) patterns[i] = static_cast<std::uint16_t>(i);
    run_copy(wide, narrow, dense(65536));
    run_copy(back, wide, dense(65536));
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < 65536; ++i)
      wrong += !same(wide[i], narrow[i]) || !same(back[i], narrow[i]);
    CHECK(wrong == 0);

    const std::int64_t n = on_cuda() ? 20000 : 200000;
    Buffer x(DType::float32, n), out(t, n);
    auto* const bits = static_cast<std::uint32_t*>(x.host());
    const std::uint32_t half = t == DType::float16 ? 0x1000u : 0x8000u;
    for (std::int64_t i = 0; i < n; ++i)
      bits[i] = static_cast<std::uint32_t>(i) * 2654435761u / (2 * half) * (2 * half) + half +
                static_cast<std::uint32_t>(i % 3) - 1;
    run_copy(out, x, dense(n));
    for (std::int64_t i = 0; i < n; ++i) wrong += !same(out[i], rounded(t, x[i]));
    CHECK(wrong == 0);
  }
}

TEST_CASE("copy: NaN, infinities and negative zero; to bool everything but zero is true",
          "[kernels][copy]") {
  NEEDS_DEVICE;
  const double values[] = {kNaN, kInf, -kInf, -0.0, 0.0, 0x1p-149, 1e-300, 0.25};
  for (const DType from : kFloats)
    for (const DType to : kAll) {
      Buffer x(from, 8), y(to, 8);
      for (int i = 0; i < 8; ++i) x.put(i, values[i]);
      run_copy(y, x, dense(8));
      for (int i = 0; i < 8; ++i) {
        if (to == DType::bool_) CHECK(y[i] == (x[i] != 0));
        else if (braid::is_floating(to)) CHECK(close(to, y[i], x[i], 0));
        // Out-of-range integers: any value is allowed, but no trap.
        else if (i == 3 || i == 7) CHECK(y[i] == 0);
      }
    }
}

TEST_CASE("copy: 64-bit integers keep all digits", "[kernels][copy]") {
  NEEDS_DEVICE;
  std::vector<std::int64_t> large;
  for (std::int64_t i = 0; i < 33; ++i)
    large.push_back(std::numeric_limits<std::int64_t>::max() - i * 977);
  const Buffer x = indices(large);
  Buffer out(DType::int64, 33), narrow(DType::int32, 33);
  run_copy(out, x, dense(33));
  CHECK(x.bytes() == out.bytes());
  run_copy(narrow, x, dense(33));
  for (std::int64_t i = 0; i < 33; ++i)
    CHECK(
        static_cast<std::int32_t*>(narrow.host())[i] ==
        static_cast<std::int32_t>(static_cast<std::uint32_t>(large[static_cast<std::size_t>(i)])));
}

TEST_CASE("fill: every dtype, size and layout", "[kernels][fill]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t shift : {0, 1}) {
      for (const std::int64_t n : sizes()) check_fill(t, dense(n), shift);
      for (const Loop& loop : {strided({4, 5}, {{15, 2}}), strided({}, {{}})})
        check_fill(t, loop, shift);
    }
}

TEST_CASE("fill: int64 takes all 64 bits, signs of zero and NaN are kept", "[kernels][fill]") {
  NEEDS_DEVICE;
  const std::int64_t value = std::numeric_limits<std::int64_t>::min() + 1;
  Buffer wide(DType::int64, 19);
  run_fill(wide, 0, value, dense(19));
  for (int i = 0; i < 19; ++i) CHECK(static_cast<std::int64_t*>(wide.host())[i] == value);
  for (const DType t : kFloats) {
    Buffer out(t, 19);
    run_fill(out, -0.0, 0, dense(19));
    CHECK((out[0] == 0 && std::signbit(out[0]) && std::signbit(out[18])));
    run_fill(out, kNaN, 0, dense(19));
    CHECK((std::isnan(out[0]) && std::isnan(out[18])));
  }
}

TEST_CASE("where: every dtype, size, alignment and layout", "[kernels][where]") {
  NEEDS_DEVICE;
  for (const DType t : kAll)
    for (const std::int64_t shift : {0, 1}) {
      for (const std::int64_t n : sizes()) check_where(t, dense(n), shift);
      for (const Loop& loop : {strided({6, 33}, {{33, 1}, {33, 1}, {0, 1}, {1, 0}}),
                               strided({33, 6}, {{6, 1}, {1, 33}, {6, 1}, {0, 0}}),
                               strided({50}, {{2}, {3}, {1}, {2}}),
                               strided({300, 100}, {{100, 1}, {1, 300}, {100, 1}, {0, 1}}),
                               strided({}, {{}, {}, {}, {}})})
        check_where(t, loop, shift);
    }
}

TEST_CASE("where: bits pass unchanged, NaN and negative zero too", "[kernels][where]") {
  NEEDS_DEVICE;
  for (const DType t : kFloats)
    for (const std::int64_t n : {1, 37}) {
      Buffer c(DType::bool_, n), a(t, n), b(t, n), out(t, n);
      for (std::int64_t i = 0; i < n; ++i) c.put(i, i % 2 == 0);
      a.fill(kNaN), b.fill(-0.0);
      kernels().where({t, out.data(), c.data(), a.data(), b.data(), dense(n)}, stream());
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < n; ++i)
        wrong += i % 2 == 0 ? !std::isnan(out[i]) : !(out[i] == 0 && std::signbit(out[i]));
      CHECK(wrong == 0);
    }
}
