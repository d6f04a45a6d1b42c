// Tests every PTX wrapper on small integers, on emulated devices and on GPUs, bit by bit, against
// the fragment layouts of the PTX manual, which are written out here independently. Votes, shuffles
// and atomics are compared with what the programming guide says each lane receives.
#include <bit>
#include <cstdint>

#include "conformance.hpp"
#include "simt/half.hpp"
#include "support/check.hpp"
#include "warp_kernels.hpp"

namespace braid::simt_tests {

namespace {

std::uint32_t bits_of(MmaKind kind, int value) {
  const auto f = static_cast<float>(value);
  if (kind == MmaKind::tf32) return std::bit_cast<std::uint32_t>(f);
  if (kind == MmaKind::bf16) return __bfloat16_as_ushort(simt::bfloat16_t(f));
  return __half_as_ushort(simt::half_t(f));
}

}  // namespace

TEST_CASE("conformance: mma multiplies fragments as the PTX document lays them out", "[ptx]") {
  NEEDS_DEVICES(1);
  in_all_orders([] {
    for (const MmaKind kind : {MmaKind::tf32, MmaKind::bf16, MmaKind::fp16}) {
      INFO("kind " << static_cast<int>(kind));
      const int depth = kind == MmaKind::tf32 ? 8 : 16;
      int a[16][16], b[16][8], c[16][8];
      for (int i = 0; i < 16; ++i)
        for (int k = 0; k < 16; ++k) a[i][k] = (i * 5 + k * 3) % 15 - 7;
      for (int k = 0; k < 16; ++k)
        for (int j = 0; j < 8; ++j) b[k][j] = (k * 7 + j * 2) % 13 - 6, c[k][j] = k - 3 * j;
      std::vector<std::uint32_t> ra(128), rb(64);
      std::vector<float> rc(128), want(128);
      /// One element of tf32, or two of 16 bits.
      const auto packed = [&](int first, int second) {
        return depth == 8 ? bits_of(kind, first)
                          : bits_of(kind, first) | bits_of(kind, second) << 16;
      };
      for (std::size_t l = 0; l < 128; ++l) {  // register i of a lane
        const int i = static_cast<int>(l % 4), group = static_cast<int>(l) / 16,
                  t = static_cast<int>(l) / 4 % 4;
        const int row_a = group + i % 2 * 8;
        ra[l] = depth == 8 ? packed(a[row_a][t + i / 2 * 4], 0)
                           : packed(a[row_a][2 * t + i / 2 * 8], a[row_a][2 * t + i / 2 * 8 + 1]);
        if (i < 2)
          rb[l / 4 * 2 + l % 4] =
              depth == 8 ? packed(b[t + 4 * i][group], 0)
                         : packed(b[2 * t + 8 * i][group], b[2 * t + 8 * i + 1][group]);
        const int row = group + i / 2 * 8, col = t * 2 + i % 2;
        int sum = c[row][col];
        for (int k = 0; k < depth; ++k) sum += a[row][k] * b[k][col];
        rc[l] = static_cast<float>(c[row][col]);
        want[l] = static_cast<float>(sum);
      }
      const DeviceArray<std::uint32_t> da(ra), db(rb);
      const DeviceArray<float> dc(rc), dd(128);
      mma_once(kind, da.data(), db.data(), dc.data(), dd.data());
      CHECK(dd.get() == want);
    }
  });
}

#if SIMT_EMULATED
TEST_CASE("conformance: with BRAID_SIMT_MMA=cut, mma cuts off what does not fit", "[ptx]") {
  const KeepConfig keep;
  const auto element = [&](float c, float product, bool cuts) {
    simt::Config config = simt::config();
    config.mma_cuts = cuts;
    simt::set_config(config);
    const std::uint32_t one = __bfloat16_as_ushort(simt::bfloat16_t(1.0f)),
                        x = __bfloat16_as_ushort(simt::bfloat16_t(product));
    const DeviceArray<std::uint32_t> a(std::vector<std::uint32_t>(128, x | x << 16)),
        b(std::vector<std::uint32_t>(64, one | one << 16));
    const DeviceArray<float> dc(std::vector<float>(128, c)), dd(128);
    mma_once(MmaKind::bf16, a.data(), b.data(), dc.data(), dd.data());
    return dd.get()[77];
  };
  struct Row {
    float c, product, nearest, cut;  // 16 times the product is added to c
  };
  for (const Row& row : {Row{2, 3, 50, 50},
                         // half a unit of 1: ties to even, or exact
                         {1, 0x1p-24f, 1, 1 + 0x1p-20f},
                         // the sixteenth of a unit, for which no place is kept
                         {1, 0x1p-27f, 1, 1},
                         // 1.5 units are rounded to 2, or to what 16 of them are
                         {1, 0x1.8p-23f, 1 + 0x1p-18f, 1 + 0x1.8p-19f},
                         // three quarters of a unit below 1 are rounded to one, or cut off
                         {1, -0x1.8p-25f, 1 - 0x1p-20f, 1},
                         {INFINITY, -1, INFINITY, INFINITY},
                         {0, 0, 0, 0}}) {
    INFO(row.c << " + 16 * " << row.product);
    CHECK(element(row.c, row.product, false) == row.nearest);
    CHECK(element(row.c, row.product, true) == row.cut);
  }
}
#endif

TEST_CASE("conformance: tf32 mma ignores the low 13 bits of its inputs", "[ptx]") {
  NEEDS_DEVICES(1);
  const float exact = 1.0f,
              longer = std::bit_cast<float>(std::bit_cast<std::uint32_t>(1.0f) | 0x1fffu);
  for (const float x : {exact, longer}) {
    const DeviceArray<std::uint32_t> a(
        std::vector<std::uint32_t>(128, std::bit_cast<std::uint32_t>(x))),
        b(std::vector<std::uint32_t>(64, std::bit_cast<std::uint32_t>(x)));
    const DeviceArray<float> c(std::vector<float>(128, 0.0f)), d(128);
    mma_once(MmaKind::tf32, a.data(), b.data(), c.data(), d.data());
    CHECK(d.get() == std::vector<float>(128, 8.0f));
  }
}

TEST_CASE("conformance: ldmatrix gives each lane two elements of a row or a column", "[ptx]") {
  NEEDS_DEVICES(1);
  in_all_orders([] {
    std::vector<std::uint16_t> source(256);
    for (std::size_t i = 0; i < source.size(); ++i)
      source[i] = static_cast<std::uint16_t>(1000 + i);
    const DeviceArray<std::uint16_t> ds(source);
    for (const int count : {1, 2, 4})
      for (const bool transposed : {false, true}) {
        INFO("x" << count << (transposed ? " transposed" : ""));
        const DeviceArray<std::uint32_t> r(std::vector<std::uint32_t>(128, 7));
        ldmatrix_once(count, transposed, ds.data(), r.data());
        std::vector<std::uint32_t> want(128, 7);
        for (std::uint32_t lane = 0; lane < 32; ++lane)
          for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(count); ++i) {
            const std::uint32_t row = lane / 4, pair = lane % 4 * 2, base = 1000 + 64 * i;
            const std::uint32_t low = transposed ? base + pair * 8 + row : base + row * 8 + pair;
            const std::uint32_t high = transposed ? low + 8 : low + 1;
            want[4 * lane + i] = low | high << 16;
          }
        CHECK(r.get() == want);
      }
  });
}

TEST_CASE("conformance: cp.async brings 4, 8 and 16 bytes, and zeros for the rest", "[ptx]") {
  NEEDS_DEVICES(1);
  early_and_late([](const char* when) {
    for (const int size : {4, 8, 16}) {
      INFO(size << " bytes, " << when);
      std::vector<unsigned char> source(static_cast<std::size_t>(64 * size));
      for (std::size_t i = 0; i < source.size(); ++i)
        source[i] = static_cast<unsigned char>(1 + i % 251);
      const DeviceArray<unsigned char> ds(source), dd(source.size());
      cp_async_once(size, ds.data(), dd.data());
      std::vector<unsigned char> want(source.size());
      for (int t = 0; t < 64; ++t)
        for (int i = 0; i < t % (size + 1); ++i)
          want[static_cast<std::size_t>(t * size + i)] =
              source[static_cast<std::size_t>(t * size + i)];
      CHECK(dd.get() == want);
    }
    const std::vector<float> values = {1, 2, 3, 4, 5, 6, 7};
    const DeviceArray<float> dv(values), out(values.size());
    cp_async_stages(7, dv.data(), out.data());
    CHECK(out.get() == values);
  });
}

TEST_CASE("conformance: to_tf32 rounds to 10 bits of mantissa, ties away from zero", "[ptx]") {
  NEEDS_DEVICES(1);
  const auto up = [](std::uint32_t bits) { return std::bit_cast<float>(bits); };
  const std::vector<float> x = {
      1.0f, -2.5f,           up(0x3f800fffu), up(0x3f801000u), up(0x3f803000u), up(0xbf801000u),
      0.0f, up(0x7f800000u), up(0x3fffffffu)};
  const std::vector<std::uint32_t> want = {0x3f800000u, 0xc0200000u, 0x3f800000u,
                                           0x3f802000u, 0x3f804000u, 0xbf802000u,
                                           0u,          0x7f800000u, 0x40000000u};
  const DeviceArray<float> dx(x);
  const DeviceArray<std::uint32_t> r(x.size());
  round_tf32(dx.data(), r.data(), static_cast<int>(x.size()));
  CHECK(r.get() == want);
}

TEST_CASE("conformance: votes, shuffles and atomics", "[warp]") {
  NEEDS_DEVICES(1);
  in_all_orders([] {
    const DeviceArray<std::uint32_t> v(8);
    votes(v.data());
    CHECK(v.get() == std::vector<std::uint32_t>{0xaaaaaaaau, 1, 1, 0, 0x44444444u, 16, 1, 0});
    const DeviceArray<int> s(160);
    shuffles(s.data());
    const auto got = s.get();
    int wrong = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const int l = static_cast<int>(lane);
      wrong += got[lane] != 103;
      wrong += got[32 + lane] != 100 + (l < 2 ? l : l - 2);
      wrong += got[64 + lane] != 100 + ((l & 15) + 4 < 16 ? l + 4 : l);
      wrong += got[96 + lane] != 100 + (l ^ 8);
      wrong += got[128 + lane] != 100 + ((l & ~7) | 1);
    }
    CHECK(wrong == 0);
    const DeviceArray<unsigned> a(std::vector<unsigned>(10, 5));
    atomics(a.data());
    CHECK(a.get() ==
          std::vector<unsigned>{69, 5u - 64, 31, 0, 4, 255, 5, (5 + 64) % 41, 5 + 41 * 2 - 64, 77});
    const DeviceArray<simt::half_t> h(std::vector<simt::half_t>{simt::half_t(0.0f)});
    half_atomics(h.data());
    CHECK(float(h.get()[0]) == 32.0f);
  });
}

}  // namespace braid::simt_tests
