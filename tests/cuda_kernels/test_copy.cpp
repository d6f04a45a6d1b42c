#include <braid/core/kernel_args/elementwise.hpp>

#include "cuda_kernels/cuda_kernel_support.hpp"

using namespace kernel_test;
using braid::CopyArgs;
using braid::FillArgs;
using braid::WhereArgs;

namespace {

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
  Buffer x(from, extent(loop, 1)), out(to, extent(loop, 0));
  x.pattern(1, 30), out.pattern(2);
  if (to == DType::uint8)
    // negative numbers to uint8: unspecified
    for (std::int64_t i = 0; i < x.size(); ++i) x.put(i, std::fabs(x[i]));
  const auto before = out.bytes();
  Twin dx(x, shift), dout(out, shift);
  gpu().copy(CopyArgs{.to = to, .from = from, .out = dout.data(), .x = dx.data(), .loop = loop},
             gpu_stream());
  dout.fetch();
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < loop.n; ++i)
    wrong += out[offset(loop, 0, i)] != converted(to, x[offset(loop, 1, i)]);
  CHECK(wrong == 0);
  CHECK(changed_outside(out, before, loop) == 0);
}

}  // namespace

TEST_CASE("cuda copy: every pair of dtypes, sizes and alignments", "[cuda_kernels][copy]") {
  NEEDS_GPU;
  for (const DType to : kAll)
    for (const DType from : kAll)
      for (const std::int64_t n : {0, 1, 17, 1025})
        for (const std::int64_t shift : {0, 1}) check_copy(to, from, dense(n), shift);
}

TEST_CASE("cuda copy: layouts", "[cuda_kernels][copy]") {
  NEEDS_GPU;
  for (const auto& [to, from] : {std::pair{DType::float32, DType::float32},
                                 {DType::float64, DType::float32},
                                 {DType::bool_, DType::bool_},
                                 {DType::bfloat16, DType::bfloat16},
                                 {DType::int64, DType::int64},
                                 {DType::float32, DType::float16},
                                 {DType::uint8, DType::float64}})
    // transposed, ragged tiles
    for (const Loop& loop :
         {strided({33, 50}, {{50, 1}, {1, 33}}),
          // transposed, whole tiles
          strided({64, 32}, {{32, 1}, {1, 64}}),
          // transposed, too narrow for tiles
          strided({7, 50}, {{50, 1}, {1, 7}}),
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
      for (const std::int64_t shift : {0, 1}) check_copy(to, from, loop, shift);
}

TEST_CASE("cuda copy: float16 and bfloat16 round to nearest even", "[cuda_kernels][copy]") {
  NEEDS_GPU;
  for (const DType t : {DType::float16, DType::bfloat16}) {
    Buffer narrow(t, 65536), wide(DType::float32, 65536), back(t, 65536);
    for (std::int64_t i = 0; i < 65536; ++i)
      static_cast<std::uint16_t*>(narrow.data())[i] = static_cast<std::uint16_t>(i);
    Twin dnarrow(narrow), dwide(wide), dback(back);
    gpu().copy(CopyArgs{.to = DType::float32,
                        .from = t,
                        .out = dwide.data(),
                        .x = dnarrow.data(),
                        .loop = dense(65536)},
               gpu_stream());
    gpu().copy(CopyArgs{.to = t,
                        .from = DType::float32,
                        .out = dback.data(),
                        .x = dwide.data(),
                        .loop = dense(65536)},
               gpu_stream());
    dwide.fetch(), dback.fetch();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < 65536; ++i) {
      const double x = narrow[i];
      wrong += std::isnan(x)
                   ? !std::isnan(wide[i]) || !std::isnan(back[i])
                   : wide[i] != x || back[i] != x || std::signbit(back[i]) != std::signbit(x);
    }
    CHECK(wrong == 0);

    const std::int64_t n = 20000;  // floats near the middle between neighbours
    Buffer x(DType::float32, n), out(t, n);
    auto* bits = static_cast<std::uint32_t*>(x.data());
    const std::uint32_t half = t == DType::float16 ? 0x1000u : 0x8000u;
    for (std::int64_t i = 0; i < n; ++i)
      bits[i] = static_cast<std::uint32_t>(i) * 2654435761u / (2 * half) * (2 * half) + half +
                static_cast<std::uint32_t>(i % 3) - 1;
    Twin dx(x), dout(out);
    gpu().copy(
        CopyArgs{
            .to = t, .from = DType::float32, .out = dout.data(), .x = dx.data(), .loop = dense(n)},
        gpu_stream());
    dout.fetch();
    for (std::int64_t i = 0; i < n; ++i) {
      const double expected = rounded(t, x[i]);
      wrong += std::isnan(expected)
                   ? !std::isnan(out[i])
                   : out[i] != expected || std::signbit(out[i]) != std::signbit(expected);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("cuda copy: 64-bit integers keep all digits, special numbers keep their kind",
          "[cuda_kernels][copy]") {
  NEEDS_GPU;
  Buffer x(DType::int64, 33), out(DType::int64, 33);
  for (std::int64_t i = 0; i < 33; ++i)
    static_cast<std::int64_t*>(x.data())[i] = std::numeric_limits<std::int64_t>::max() - i * 977;
  Twin dx(x), dout(out);
  gpu().copy(CopyArgs{.to = DType::int64,
                      .from = DType::int64,
                      .out = dout.data(),
                      .x = dx.data(),
                      .loop = dense(33)},
             gpu_stream());
  dout.fetch();
  CHECK(x.bytes() == out.bytes());

  const std::vector<double> values{kNaN, kInf, -kInf, -0.0, 0.0, 0x1p-149, 1e-300, 0.25};
  for (const DType from : kFloats) {
    Buffer special(from, 8);
    for (int i = 0; i < 8; ++i) special.put(i, values[static_cast<std::size_t>(i)]);
    Twin dspecial(special);
    for (const DType to :
         {DType::bool_, DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      Buffer y(to, 8);
      Twin dy(y);
      gpu().copy(
          CopyArgs{
              .to = to, .from = from, .out = dy.data(), .x = dspecial.data(), .loop = dense(8)},
          gpu_stream());
      dy.fetch();
      for (int i = 0; i < 8; ++i)
        CHECK((to == DType::bool_ ? y[i] == (special[i] != 0) : close(to, y[i], special[i], 0)));
    }
  }
}

TEST_CASE("cuda fill: every dtype, size and layout", "[cuda_kernels][fill]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const Loop& loop : {dense(0), dense(1), dense(15), dense(16), dense(1025),
                             strided({4, 5}, {{15, 2}}), strided({}, {{}})})
      for (const std::int64_t shift : {0, 1}) {
        INFO(braid::name_of(t) << " n " << loop.n << " rank " << loop.rank << " shift " << shift);
        Buffer out(t, extent(loop, 0));
        out.pattern(1);
        const auto before = out.bytes();
        Twin dout(out, shift);
        gpu().fill(
            FillArgs{.dtype = t, .out = dout.data(), .value = 3.3, .integer = 3, .loop = loop},
            gpu_stream());
        dout.fetch();
        const double expected = t == DType::bool_ ? 1 : braid::is_floating(t) ? rounded(t, 3.3) : 3;
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < loop.n; ++i) wrong += out[offset(loop, 0, i)] != expected;
        CHECK(wrong == 0);
        CHECK(changed_outside(out, before, loop) == 0);
      }
  Buffer wide(DType::int64, 19);
  Twin dwide(wide);
  const std::int64_t value = std::numeric_limits<std::int64_t>::min() + 1;
  gpu().fill(FillArgs{.dtype = DType::int64,
                      .out = dwide.data(),
                      .value = 0,
                      .integer = value,
                      .loop = dense(19)},
             gpu_stream());
  dwide.fetch();
  for (int i = 0; i < 19; ++i) CHECK(static_cast<std::int64_t*>(wide.data())[i] == value);
}

TEST_CASE("cuda where: every dtype, size, alignment and layout", "[cuda_kernels][where]") {
  NEEDS_GPU;
  for (const DType t : kAll)
    for (const Loop& loop : {dense(0), dense(1), dense(16), dense(33), dense(1025),
                             strided({6, 33}, {{33, 1}, {33, 1}, {0, 1}, {1, 0}}),
                             strided({33, 6}, {{6, 1}, {1, 33}, {6, 1}, {0, 0}}),
                             strided({50}, {{2}, {3}, {1}, {2}}), strided({}, {{}, {}, {}, {}})})
      for (const std::int64_t shift : {0, 1}) {
        INFO(braid::name_of(t) << " n " << loop.n << " rank " << loop.rank << " shift " << shift);
        Buffer c(DType::bool_, extent(loop, 1)), a(t, extent(loop, 2)), b(t, extent(loop, 3)),
            out(t, extent(loop, 0));
        c.pattern(1), a.pattern(2), b.pattern(3), out.pattern(4);
        if (braid::is_floating(t) && a.size() > 0) a.put(0, kNaN);
        const auto before = out.bytes();
        Twin dc(c, shift), da(a, shift), db(b, 2 * shift), dout(out, shift);
        gpu().where(WhereArgs{.dtype = t,
                              .out = dout.data(),
                              .condition = dc.data(),
                              .a = da.data(),
                              .b = db.data(),
                              .loop = loop},
                    gpu_stream());
        dout.fetch();
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < loop.n; ++i) {
          const double expected = c[offset(loop, 1, i)] != 0 ? a[offset(loop, 2, i)]
                                                             : b[offset(loop, 3, i)],
                       got = out[offset(loop, 0, i)];
          wrong += std::isnan(expected) ? !std::isnan(got) : got != expected;
        }
        CHECK(wrong == 0);
        CHECK(changed_outside(out, before, loop) == 0);
      }
}
