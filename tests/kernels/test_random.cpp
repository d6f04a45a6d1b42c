#include <algorithm>

#include <braid/core/internal/kernel_args/random.hpp>
#include <braid/core/internal/philox.hpp>

#include "kernels/kernel_support.hpp"

using namespace kernel_test;
using braid::RandomKind;

namespace {

void run(RandomKind kind, Buffer& out, std::uint64_t seed, std::uint64_t number, double low = 0,
         double high = 1, std::int64_t ilow = -5, std::int64_t ihigh = 1000) {
  kernels().random(
      {kind, out.dtype(), out.data(), out.size(), seed, number, low, high, ilow, ihigh}, stream());
}

const std::vector<std::pair<std::uint64_t, std::uint64_t>> kKeys{
    {0, 0}, {1, 2}, {0xfedcba9876543210u, 0x0123456789abcdefu}};

}  // namespace

// Counter and key words from the known-answer file of the generator's authors (Random123,
// kat_vectors).
TEST_CASE("philox: known answers, at compile time too", "[kernels][random]") {
  static_assert(braid::philox(0, 0, 0).w[0] == 0x6627e8d5u &&
                braid::philox(0, 0, 0).w[1] == 0xe169c58du);
  static_assert(braid::philox(0, 0, 0).w[2] == 0xbc57ac4cu &&
                braid::philox(0, 0, 0).w[3] == 0x9b00dbd8u);
  const auto ones = braid::philox(~0ull, ~0ull, ~0ull);
  CHECK((ones.w[0] == 0x408f276du && ones.w[1] == 0x41c83b0eu && ones.w[2] == 0xa20bc7c6u &&
         ones.w[3] == 0x6d5451fdu));
  const auto pi = braid::philox(0x299f31d0a4093822u, 0x0370734413198a2eu, 0x85a308d3243f6a88u);
  CHECK((pi.w[0] == 0xd16cfe09u && pi.w[1] == 0x94fdccebu && pi.w[2] == 0x5001e420u &&
         pi.w[3] == 0x24126ea1u));
  static_assert(braid::multiply_high(~0ull, ~0ull) == ~0ull - 1 &&
                braid::multiply_high(1ull << 63, 6) == 3);
}

// Every instruction set and CUDA must give the same bits as the scalar functions.
TEST_CASE("random: the kernels give the bits that philox.hpp defines", "[kernels][random]") {
  NEEDS_DEVICE;
  Sizes all = sizes();
  all.insert(all.end(), {2, 3, 4, 5, 10003});
  for (const auto& [seed, number] : kKeys)
    for (const std::int64_t n : all)
      for (const std::int64_t shift : {0, 1}) {
        Buffer u(DType::float32, n, shift), z(DType::float32, n, shift),
            u64(DType::float64, n, shift), z64(DType::float64, n, shift),
            integers(DType::int64, n, shift);
        run(RandomKind::uniform, u, seed, number), run(RandomKind::normal, z, seed, number);
        run(RandomKind::uniform, u64, seed, number), run(RandomKind::normal, z64, seed, number);
        run(RandomKind::integers, integers, seed, number);
        const auto* const whole = static_cast<const std::int64_t*>(integers.host());
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < n; ++i) {
          const auto k = static_cast<std::uint64_t>(i);
          wrong += u[i] != static_cast<double>(braid::random_uniform_float(seed, number, k));
          wrong += z[i] != static_cast<double>(braid::random_normal_float(seed, number, k));
          wrong += u64[i] != braid::random_uniform_double(seed, number, k);
          wrong += z64[i] != braid::random_normal_double(seed, number, k);
          wrong += whole[i] != braid::random_integer(seed, number, k, -5, 1000);
        }
        CHECK(wrong == 0);
      }
}

// Fixed values, so that neither a compiler nor a code change alters the numbers unnoticed.
TEST_CASE("random: first numbers of seed 0", "[kernels][random]") {
  NEEDS_DEVICE;
  Buffer u(DType::float32, 2), z(DType::float32, 4), z64(DType::float64, 2);
  run(RandomKind::uniform, u, 0, 0);
  CHECK(u[0] == 0x6627e8 * 0x1p-24);
  CHECK(u[1] == 0xe169c5 * 0x1p-24);
  run(RandomKind::normal, z, 0, 0);
  run(RandomKind::normal, z64, 0, 0);
  CHECK(z[0] == 0x1.fb7666p-1);
  CHECK(z[1] == -0x1.d96d6p-1);
  CHECK(z[2] == -0x1.3c373ep-1);
  CHECK(z[3] == -0x1.eda364p-2);
  CHECK(z64[0] == -0x1.973628c131c02p-2);
  CHECK(z64[1] == 0x1.63083c830bea5p+0);
}

TEST_CASE("random: normal numbers are the Box-Muller transform of the words", "[kernels][random]") {
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto b = braid::philox(3, 4, i);
    const double radius = std::sqrt(-2 * std::log((b.w[0] + 0.5) * 0x1p-32));
    // Quarter turns are subtracted before the conversion to radians, so that 2π x is accurate near
    // its zeros.
    const double turn = b.w[1] * 0x1p-32, quarter = std::nearbyint(turn * 4),
                 rest = (turn - quarter / 4) * 6.283185307179586;
    const int q = static_cast<int>(quarter) & 3;
    const double cosine = q == 0   ? std::cos(rest)
                          : q == 1 ? -std::sin(rest)
                          : q == 2 ? -std::cos(rest)
                                   : std::sin(rest);
    const double sine = q == 0   ? std::sin(rest)
                        : q == 1 ? std::cos(rest)
                        : q == 2 ? -std::sin(rest)
                                 : -std::cos(rest);
    const double z0 = static_cast<double>(braid::random_normal_float(3, 4, 4 * i)),
                 z1 = static_cast<double>(braid::random_normal_float(3, 4, 4 * i + 1));
    // Rounding u to float moves it by up to 2^-25, which matters relative to its distance to 1.
    const double relative = 8 * 0x1p-24 + 0x1p-25 / std::fabs(std::log((b.w[0] + 0.5) * 0x1p-32));
    if (!(std::fabs(z0 - radius * cosine) <= relative * std::fabs(radius * cosine) + 1e-12))
      CHECK(z0 == radius * cosine);
    if (!(std::fabs(z1 - radius * sine) <= relative * std::fabs(radius * sine) + 1e-12))
      CHECK(z1 == radius * sine);

    const std::uint64_t d0 = b.w[0] | static_cast<std::uint64_t>(b.w[1]) << 32,
                        d1 = b.w[2] | static_cast<std::uint64_t>(b.w[3]) << 32;
    const double u = (static_cast<double>(d0 >> 11) + 0.5) * 0x1p-53,
                 r = std::sqrt(-2 * std::log(u));
    const double z = braid::random_normal_double(3, 4, i),
                 expected = r * std::cos(static_cast<double>(d1) * 0x1p-64 * 6.283185307179586);
    if (!(std::fabs(z - expected) <= 1e-14 * (r + 1))) CHECK(z == expected);
  }
}

TEST_CASE("random: moments and range", "[kernels][random]") {
  if (on_cuda()) return;
  const std::int64_t n = 1000000;
  for (const DType t : {DType::float32, DType::float64}) {
    Buffer u(t, n), z(t, n);
    run(RandomKind::uniform, u, 7, 1, -1, 3);
    run(RandomKind::normal, z, 7, 2, 2, 0.5);
    double mean = 0, low = 1e9, high = -1e9, z1 = 0, z2 = 0, z4 = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      mean += u[i], low = std::min(low, u[i]), high = std::max(high, u[i]);
      const double v = (z[i] - 2) / 0.5;
      z1 += v, z2 += v * v, z4 += v * v * v * v;
    }
    CHECK(std::fabs(mean / n - 1) < 0.006);
    CHECK((low >= -1 && low < -0.9999 && high < 3 && high > 2.9999));
    CHECK(std::fabs(z1 / n) < 0.005);
    CHECK(std::fabs(z2 / n - 1) < 0.007);
    CHECK(std::fabs(z4 / n - 3) < 0.06);
  }
  Buffer k(DType::int64, n);
  run(RandomKind::integers, k, 7, 3, 0, 0, -2, 5);
  std::vector<int> count(7);
  for (std::int64_t i = 0; i < n; ++i) ++count.at(static_cast<std::size_t>(k[i] + 2));
  for (const int c : count) CHECK(std::abs(c - n / 7) < 2000);
}

TEST_CASE("random: uniform numbers stay below the upper end in every dtype", "[kernels][random]") {
  NEEDS_DEVICE;
  const std::pair<double, double> ranges[] = {{0, 1},     {-1, 0},    {1, 1.0000002}, {-3, -2.9},
                                              {0.1, 0.7}, {0, 1e-40}, {1e4, 1.0001e4}};
  for (const DType t : kFloats)
    for (const auto& [low, high] : ranges) {
      if (rounded(t, low) >= high) continue;
      Buffer u(t, on_cuda() ? 4000 : 40000);
      run(RandomKind::uniform, u, 9, 9, low, high);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < u.size(); ++i)
        wrong += !(u[i] >= rounded(t, low) && u[i] < high);
      INFO(braid::name_of(t) << " [" << low << ", " << high << ")");
      CHECK(wrong == 0);
    }
}

TEST_CASE("random: 16-bit types are the float32 number, rounded", "[kernels][random]") {
  NEEDS_DEVICE;
  for (const DType t : {DType::float16, DType::bfloat16}) {
    Buffer narrow(t, 1001), wide(DType::float32, 1001);
    run(RandomKind::normal, narrow, 1, 1, 3, 2);
    run(RandomKind::normal, wide, 1, 1, 3, 2);
    for (std::int64_t i = 0; i < 1001; ++i) CHECK(narrow[i] == rounded(t, wide[i]));
  }
}

TEST_CASE("random: threads and the length asked for change nothing", "[kernels][random]") {
  NEEDS_DEVICE;
  for (const DType t : {DType::float32, DType::float64, DType::bfloat16})
    for (const RandomKind kind : {RandomKind::uniform, RandomKind::normal}) {
      Buffer all(t, on_cuda() ? 1025 : 100003), some(t, 50);
      check_threads(all, [&] { run(kind, all, 5, 6); });
      run(kind, some, 5, 6);
      CHECK(std::memcmp(all.host(), some.host(), some.bytes().size()) == 0);
      Buffer other(t, 50);
      run(kind, other, 5, 7);
      CHECK(other.bytes() != some.bytes());
    }
}

TEST_CASE("random: whole 64-bit ranges, and refused dtypes", "[kernels][random]") {
  NEEDS_DEVICE;
  Buffer k(DType::int64, 1000);
  run(RandomKind::integers, k, 1, 1, 0, 0, std::numeric_limits<std::int64_t>::min(),
      std::numeric_limits<std::int64_t>::max());
  std::int64_t negative = 0;
  for (std::int64_t i = 0; i < 1000; ++i) negative += k[i] < 0;
  CHECK((negative > 400 && negative < 600));
  Buffer narrow(DType::int32, 4);
  CHECK_THROWS_WITH(run(RandomKind::uniform, narrow, 0, 0),
                    "random: expected a floating-point dtype, got int32");
  CHECK_THROWS_AS(run(RandomKind::integers, narrow, 0, 0), braid::DTypeError);
  CHECK_THROWS_WITH(run(RandomKind::integers, narrow, 0, 0),
                    "random: expected int64 for integers, got int32");
}
