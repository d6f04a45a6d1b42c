#include <braid/core/kernel_args/elementwise.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;
using braid::CopyArgs;
using braid::FillArgs;

namespace {

// What x becomes in `to`.
double converted(DType to, double x) {
  if (to == DType::bool_) return x != 0;
  if (to == DType::uint8)
    return static_cast<double>(static_cast<std::uint8_t>(static_cast<std::int64_t>(x)));
  if (!braid::is_floating(to)) return std::trunc(x);
  return rounded(to, x);
}

void check_loop(DType to, DType from, const Loop& loop, std::int64_t shift) {
  INFO(braid::name_of(from) << " to " << braid::name_of(to) << " n " << loop.n << " rank "
                            << loop.rank << " shift " << shift);
  Buffer x(from, extent(loop, 1), shift), out(to, extent(loop, 0), shift);
  x.pattern(1, 30);
  if (to == DType::uint8)
    // negative numbers to uint8: unspecified
    for (std::int64_t i = 0; i < x.size(); ++i) x.put(i, std::fabs(x[i]));
  const auto before = out.bytes();
  kernels().copy(CopyArgs{.to = to, .from = from, .out = out.data(), .x = x.data(), .loop = loop},
                 stream());
  std::int64_t wrong = 0, written = 0;
  for (std::int64_t i = 0; i < loop.n; ++i)
    wrong += out[offset(loop, 0, i)] != converted(to, x[offset(loop, 1, i)]);
  CHECK(wrong == 0);
  // Elements that the loop does not name stay.
  std::vector<bool> named(static_cast<std::size_t>(out.size()));
  for (std::int64_t i = 0; i < loop.n; ++i)
    named[static_cast<std::size_t>(offset(loop, 0, i))] = true;
  const auto after = out.bytes();
  const std::size_t element = braid::size_of(to);
  for (std::size_t i = 0; i < named.size(); ++i)
    for (std::size_t k = 0; k < element; ++k)
      written += !named[i] && before[i * element + k] != after[i * element + k];
  CHECK(written == 0);
  CHECK(out.guards_intact());
}

}  // namespace

TEST_CASE("copy: every pair of dtypes, sizes and alignments", "[kernels][copy]") {
  for (const DType to : kAll)
    for (const DType from : kAll)
      for (const std::int64_t n : to == from ? kSizes : kSmallSizes)
        for (const std::int64_t shift : {0, 1}) check_loop(to, from, dense(n), shift);
}

TEST_CASE("copy: layouts", "[kernels][copy]") {
  for (const auto& [to, from] : {std::pair{DType::float32, DType::float32},
                                 {DType::float64, DType::float32},
                                 {DType::bool_, DType::bool_},
                                 {DType::bfloat16, DType::bfloat16},
                                 {DType::int64, DType::int64},
                                 {DType::float32, DType::float16},
                                 {DType::bfloat16, DType::float32},
                                 {DType::uint8, DType::float64}})
    // transposed, ragged blocks
    for (const Loop& loop :
         {strided({33, 50}, {{50, 1}, {1, 33}}),
          // transposed, whole blocks
          strided({64, 48}, {{48, 1}, {1, 64}}),
          // transposed, many tiles
          strided({300, 200}, {{200, 1}, {1, 300}}),
          // a batch of transposes
          strided({3, 20, 17}, {{340, 17, 1}, {340, 1, 20}}),
          // the dense dim of x is the outermost
          strided({20, 3, 17}, {{51, 17, 1}, {1, 340, 20}}),
          // out is the transposed one
          strided({17, 20}, {{1, 17}, {20, 1}}),
          // rows into a wider matrix
          strided({40, 9}, {{12, 1}, {9, 1}}),
          strided({40, 9}, {{9, 1}, {12, 1}}),   // and out of it
          strided({40, 30}, {{30, 1}, {0, 1}}),  // a row repeated
          // a column repeated
          strided({40, 30}, {{30, 1}, {1, 0}}), strided({70}, {{1}, {0}}),
          strided({70}, {{3}, {2}}), strided({2, 3, 4, 5}, {{60, 20, 5, 1}, {1, 2, 6, 24}}),
          strided({}, {{}, {}}), strided({5, 0}, {{0, 1}, {0, 1}})})
      for (const std::int64_t shift : {0, 1}) check_loop(to, from, loop, shift);
}

TEST_CASE("copy: float16 and bfloat16 round to nearest even", "[kernels][copy]") {
  // All 16-bit patterns to float and back; and float near the middle between neighbours.
  for (const DType t : {DType::float16, DType::bfloat16}) {
    Buffer narrow(t, 65536), wide(DType::float32, 65536), back(t, 65536);
    for (std::int64_t i = 0; i < 65536; ++i)
      static_cast<std::uint16_t*>(narrow.data())[i] = static_cast<std::uint16_t>(i);
    kernels().copy(CopyArgs{.to = DType::float32,
                            .from = t,
                            .out = wide.data(),
                            .x = narrow.data(),
                            .loop = dense(65536)},
                   stream());
    kernels().copy(CopyArgs{.to = t,
                            .from = DType::float32,
                            .out = back.data(),
                            .x = wide.data(),
                            .loop = dense(65536)},
                   stream());
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < 65536; ++i) {
      const double x = narrow[i];
      wrong += std::isnan(x)
                   ? !std::isnan(wide[i]) || !std::isnan(back[i])
                   : wide[i] != x || back[i] != x || std::signbit(back[i]) != std::signbit(x);
    }
    CHECK(wrong == 0);

    const std::int64_t n = 200000;
    Buffer x(DType::float32, n), out(t, n);
    auto* bits = static_cast<std::uint32_t*>(x.data());
    const std::uint32_t half = t == DType::float16 ? 0x1000u : 0x8000u;
    for (std::int64_t i = 0; i < n; ++i)
      bits[i] = static_cast<std::uint32_t>(i) * 2654435761u / (2 * half) * (2 * half) + half +
                static_cast<std::uint32_t>(i % 3) - 1;
    kernels().copy(
        CopyArgs{
            .to = t, .from = DType::float32, .out = out.data(), .x = x.data(), .loop = dense(n)},
        stream());
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = rounded(t, x[i]);
      wrong += std::isnan(expected)
                   ? !std::isnan(out[i])
                   : out[i] != expected || std::signbit(out[i]) != std::signbit(expected);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("copy: NaN, infinities and negative zero; to bool everything but zero is true",
          "[kernels][copy]") {
  const double values[] = {kNaN, kInf, -kInf, -0.0, 0.0, 0x1p-149, 1e-300, 0.25};
  for (const DType from : kFloats) {
    Buffer x(from, 8), out(DType::bool_, 8);
    for (int i = 0; i < 8; ++i) x.put(i, values[i]);
    kernels().copy(
        CopyArgs{
            .to = DType::bool_, .from = from, .out = out.data(), .x = x.data(), .loop = dense(8)},
        stream());
    for (int i = 0; i < 8; ++i) CHECK(out[i] == (x[i] != 0));
    for (const DType to : kFloats) {
      Buffer y(to, 8);
      kernels().copy(
          CopyArgs{.to = to, .from = from, .out = y.data(), .x = x.data(), .loop = dense(8)},
          stream());
      for (int i = 0; i < 8; ++i) CHECK(close(to, y[i], x[i], 0));
    }
    // Out of range for integers: any value, but no trap.
    for (const DType to : {DType::uint8, DType::int32, DType::int64}) {
      Buffer y(to, 8);
      kernels().copy(
          CopyArgs{.to = to, .from = from, .out = y.data(), .x = x.data(), .loop = dense(8)},
          stream());
      CHECK(y[7] == 0);
      CHECK(y[3] == 0);
    }
  }
}

TEST_CASE("copy: 64-bit integers keep all digits", "[kernels][copy]") {
  Buffer x(DType::int64, 33), out(DType::int64, 33), narrow(DType::int32, 33);
  for (std::int64_t i = 0; i < 33; ++i)
    static_cast<std::int64_t*>(x.data())[i] = std::numeric_limits<std::int64_t>::max() - i * 977;
  kernels().copy(CopyArgs{.to = DType::int64,
                          .from = DType::int64,
                          .out = out.data(),
                          .x = x.data(),
                          .loop = dense(33)},
                 stream());
  CHECK(x.bytes() == out.bytes());
  kernels().copy(CopyArgs{.to = DType::int32,
                          .from = DType::int64,
                          .out = narrow.data(),
                          .x = x.data(),
                          .loop = dense(33)},
                 stream());
  for (std::int64_t i = 0; i < 33; ++i)
    CHECK(static_cast<std::int32_t*>(narrow.data())[i] ==
          static_cast<std::int32_t>(
              static_cast<std::uint32_t>(static_cast<std::uint64_t*>(x.data())[i])));
}

TEST_CASE("fill: every dtype, size and layout", "[kernels][fill]") {
  for (const DType t : kAll)
    for (const std::int64_t n : kSizes)
      for (const std::int64_t shift : {0, 1}) {
        Buffer out(t, n, shift);
        kernels().fill(
            FillArgs{.dtype = t, .out = out.data(), .value = 3.3, .integer = 3, .loop = dense(n)},
            stream());
        const double expected = t == DType::bool_ ? 1 : braid::is_floating(t) ? rounded(t, 3.3) : 3;
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < n; ++i) wrong += out[i] != expected;
        CHECK(wrong == 0);
        CHECK(out.guards_intact());
      }
  Buffer out(DType::float32, 60);
  kernels().fill(
      FillArgs{
          .dtype = DType::float32, .out = out.data(), .value = 0, .integer = 0, .loop = dense(60)},
      stream());
  kernels().fill(FillArgs{.dtype = DType::float32,
                          .out = out.data(),
                          .value = 7,
                          .integer = 7,
                          .loop = strided({4, 5}, {{15, 2}})},
                 stream());
  for (std::int64_t i = 0; i < 60; ++i) CHECK(out[i] == (i % 15 % 2 == 0 && i % 15 < 10 ? 7 : 0));
}

TEST_CASE("fill: int64 takes all 64 bits, signs of zero and NaN are kept", "[kernels][fill]") {
  Buffer wide(DType::int64, 19);
  kernels().fill(FillArgs{.dtype = DType::int64,
                          .out = wide.data(),
                          .value = 0,
                          .integer = std::numeric_limits<std::int64_t>::min() + 1,
                          .loop = dense(19)},
                 stream());
  for (int i = 0; i < 19; ++i)
    CHECK(static_cast<std::int64_t*>(wide.data())[i] ==
          std::numeric_limits<std::int64_t>::min() + 1);
  for (const DType t : kFloats) {
    Buffer out(t, 19);
    kernels().fill(
        FillArgs{.dtype = t, .out = out.data(), .value = -0.0, .integer = 0, .loop = dense(19)},
        stream());
    CHECK((out[0] == 0 && std::signbit(out[0]) && std::signbit(out[18])));
    kernels().fill(
        FillArgs{.dtype = t, .out = out.data(), .value = kNaN, .integer = 0, .loop = dense(19)},
        stream());
    CHECK((std::isnan(out[0]) && std::isnan(out[18])));
  }
}
