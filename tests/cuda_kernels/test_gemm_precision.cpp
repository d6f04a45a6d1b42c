// The precision of float32 products on tensor cores, beside that of exact ones.
#include <algorithm>

#include <braid/kernels/cuda.hpp>

#include "cuda/gemm_kinds.hpp"
#include "kernels/gemm_cases.hpp"
#include "reference/sums.hpp"

#if defined(BRAID_CUDA_SIMT)
#include <braid/core/internal/kernel_args/conv.hpp>

#include "simt/runtime/control.hpp"
#endif

using namespace kernel_test;
using braid::Float32Precision;

namespace {

/// The errors of a product against float64: the largest, and the root of the mean square.
struct Errors {
  double most = 0, mean = 0;
};
Errors errors_of(Operands& x, const Product& s) {
  x.run();
  std::vector<double> a(static_cast<std::size_t>(x.a.size())),
      b(static_cast<std::size_t>(x.b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = x.a[static_cast<std::int64_t>(i)];
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = x.b[static_cast<std::int64_t>(i)];
  Errors errors;
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      const double sum =
          reference::add_products(0, a.data() + s.at_a(0, i, 0), s.ta ? x.args.lda : 1,
                                  b.data() + s.at_b(0, 0, j), s.tb ? 1 : x.args.ldb, s.k)
              .sum;
      const double error = std::fabs(x.c[s.at_c(0, i, j)] - sum);
      errors.most = std::max(errors.most, error);
      errors.mean += error * error / static_cast<double>(s.m * s.n);
    }
  errors.mean = std::sqrt(errors.mean);
  return errors;
}

/// Products by Braid's kernels during its life, also where the environment chooses cuBLAS.
class OwnEngine {
 public:
  OwnEngine() { braid::cuda::set_gemm_engine(braid::cuda::GemmEngine::braid); }
  ~OwnEngine() { braid::cuda::set_gemm_engine(before_); }
  OwnEngine(const OwnEngine&) = delete;
  OwnEngine& operator=(const OwnEngine&) = delete;

 private:
  braid::cuda::GemmEngine before_ = braid::cuda::gemm_engine();
};

}  // namespace

TEST_CASE("cuda gemm: tf32x3 has at most twice the error of exact float32",
          "[cuda_kernels][gemm][precision]") {
  NEEDS_DEVICE;
  const OwnEngine own;
  int layout = 0;
  for (const Shape& shape : {Shape{129, 127, 31},  // below 32 of k it is exact
                             {15, 17, 127},
                             {127, 129, 32},
                             {129, 127, 33},
                             {17, 1000, 129},
                             {1000, 15, 127},
                             {33, 31, 1000},
                             {127, 15, 1001},
                             {17, 15, 10000},
                             {64, 64, 255}})
    for (const double scale : {0.5, 1e-20}) {
      const Product s = product(shape, layout++ % 4);
      INFO(describe(DType::float32, s) << ", scale " << scale);
      const auto errors = [&](Float32Precision precision) {
        const PrecisionGuard guard(precision);
        Operands x(DType::float32, s);
        x.a.pattern(7, scale), x.b.pattern(8, 1 / scale);
        return errors_of(x, s);
      };
      const Errors exact = errors(Float32Precision::exact),
                   split = errors(Float32Precision::tf32x3);
      INFO("exact " << exact.most << " " << exact.mean << ", tf32x3 " << split.most << " "
                    << split.mean);
      CHECK(split.most <= 2 * exact.most);
      CHECK(split.mean <= 2 * exact.mean);
    }
}

TEST_CASE("cuda gemm: tf32x3 adds up short sums, which are more exact than one long sum",
          "[cuda_kernels][gemm][precision]") {
  NEEDS_DEVICE;
  const OwnEngine own;
  Product s = product({32, 32, 4096}, 1);
  const auto errors = [&](braid::cuda::GemmTileKind tile) {
    s.by = [tile](const braid::GemmArgs& args) {
      braid::cuda::gemm_as_planned(args, {tile, 1, 4096}, stream());
    };
    Operands x(DType::float32, s);
    x.a.pattern(7, 0.5), x.b.pattern(8, 0.5);
    return errors_of(x, s).mean;
  };
  const double exact = errors(braid::cuda::GemmTileKind::square32);
  for (const auto tile :
       {braid::cuda::GemmTileKind::tf32x3_64, braid::cuda::GemmTileKind::tf32x3_128x64})
    CHECK(errors(tile) <= 0.5 * exact);
}

TEST_CASE("cuda gemm: integers are exact in tf32x3", "[cuda_kernels][gemm][precision]") {
  NEEDS_DEVICE;
  const OwnEngine own;
  const PrecisionGuard guard(Float32Precision::tf32x3);
  for (int layout = 0; layout < 4; ++layout)
    for (const double scale : {1.0, 0x1p-60}) {
      const Product s = product({65, 67, 100}, layout);
      INFO(describe(DType::float32, s) << ", scale " << scale);
      Operands x(DType::float32, s);
      // One number in eight is large, up to 2^20. No sum is above 2^24.
      for (std::int64_t i = 0; i < x.a.size(); ++i)
        x.a.put(i, scale * static_cast<double>(i % 8 == 0 ? i * 7919 % 1048577 : i % 7 - 3));
      for (std::int64_t i = 0; i < x.b.size(); ++i) x.b.put(i, static_cast<double>(i % 3 - 1));
      const Errors errors = errors_of(x, s);
      CHECK(errors.most == 0);
    }
}

TEST_CASE("cuda gemm: small integers are exact in every tile of tensor cores",
          "[cuda_kernels][gemm][precision]") {
  NEEDS_DEVICE;
  std::size_t turn = 0;
  for (const braid::cuda::GemmTileShape& tile : braid::cuda::kGemmTiles)
    for (int layout = 0; layout < 4; ++layout, ++turn) {
      const bool narrow = tile.use == braid::cuda::GemmTileUse::narrow;
      if (!narrow && !has_tile(DType::float32, tile.use, Float32Precision::tf32) &&
          !has_tile(DType::float32, tile.use, Float32Precision::tf32x3))
        continue;
      const DType t = !narrow ? DType::float32 : turn % 2 == 0 ? DType::bfloat16 : DType::float16;
      for (const Shape& shape : {Shape{tile.rows + 1, tile.columns - 1, 100},
                                 turn % 2 == 0 ? Shape{1000, 15, 127} : Shape{17, 1000, 33}}) {
        Product s = product(shape, layout);
        s.by = [&](const braid::GemmArgs& args) {
          braid::cuda::gemm_as_planned(args, {tile.kind, 1, s.k}, stream());
        };
        INFO(describe(t, s));
        Operands x(t, s);
        // no sum is above 256, the largest that bfloat16 has with all integers below
        for (std::int64_t i = 0; i < x.a.size(); ++i)
          x.a.put(i, static_cast<double>(i * 7919 % 5 - 2));
        for (std::int64_t i = 0; i < x.b.size(); ++i)
          x.b.put(i, static_cast<double>(i * 104729 % 3 - 1));
        CHECK(errors_of(x, s).most == 0);
      }
    }
}

TEST_CASE("cuda gemm: what tf32 makes of numbers that float32 can hold",
          "[cuda_kernels][gemm][precision]") {
  NEEDS_DEVICE;
  const OwnEngine own;
  const auto first = [](Float32Precision precision, double x, double y) {
    const PrecisionGuard guard(precision);
    const Product s = product({64, 64, 64}, 1);
    Operands operands(DType::float32, s);
    operands.a.fill(0), operands.b.fill(0);
    operands.a.put(0, x), operands.b.put(0, y);
    operands.run();
    return operands.c[0];
  };
  const auto tf32 = Float32Precision::tf32, split = Float32Precision::tf32x3;
  CHECK(first(tf32, 2049, 1) == 2050);  // 12 bits: rounded to 11, ties away from zero
  CHECK(first(tf32, -2051, 1) == -2052);
  CHECK(first(tf32, 2048.9, 1) == 2048);
  CHECK(first(split, 2049, 1) == 2049);
  CHECK(first(split, 8388608 + 4095, 1) == 8388608 + 4096);  // the rest has 12 bits
  CHECK(first(tf32, kInf, 2) == kInf);
  CHECK(first(tf32, kInf, -2) == -kInf);
  CHECK(std::isnan(first(tf32, kNaN, 1)));
  CHECK(std::isnan(first(split, kNaN, 1)));
  CHECK(std::isnan(first(split, kInf, 1)));  // documented: infinity minus infinity
}

#if defined(BRAID_CUDA_SIMT)
TEST_CASE("cuda: set_float32_precision chooses the kernels of products and convolutions",
          "[cuda_kernels][gemm][precision][names]") {
  NEEDS_DEVICE;
  const OwnEngine own;
  const auto launched = [](Float32Precision precision, const std::function<void()>& f) {
    const PrecisionGuard guard(precision);
    braid::simt::clear_launch_log();
    f();
    stream().synchronize();
    std::string found;
    for (const braid::simt::LaunchRecord& launch : braid::simt::launch_log()) {
      const std::string& name = launch.kernel;
      if (name.find("Tf32Tile") != std::string::npos)
        found += name.find(", 2>") != std::string::npos ? "split " : "tf32 ";
      else if (name.find("GemmTile") != std::string::npos) found += "exact ";
    }
    return found;
  };
  const auto multiply = [](DType t, std::int64_t k) {
    return [=] { Operands(t, product({80, 80, k}, 0)).run(); };
  };
  CHECK(launched(Float32Precision::exact, multiply(DType::float32, 40)) == "exact ");
  CHECK(launched(Float32Precision::tf32, multiply(DType::float32, 40)) == "tf32 ");
  CHECK(launched(Float32Precision::tf32x3, multiply(DType::float32, 40)) == "split ");
  CHECK(launched(Float32Precision::tf32x3, multiply(DType::float32, 31)) == "exact ");
  CHECK(launched(Float32Precision::tf32, multiply(DType::float64, 40)) == "exact ");

  const braid::ConvShape s{1, 8, 8, 1, {9, 9}, {7, 7}, {3, 3}, {1, 1}, {0, 0}, {1, 1}};
  const auto convolve = [&] {
    Buffer x(DType::float32, 8 * 81), w(DType::float32, 8 * 72), y(DType::float32, 8 * 49);
    kernels().conv({x.dtype(), x.data(), w.data(), nullptr, y.data(), s}, stream());
    kernels().conv_backward_data({x.dtype(), y.data(), w.data(), nullptr, x.data(), s}, stream());
    kernels().conv_backward_weight({x.dtype(), x.data(), y.data(), w.data(), nullptr, s}, stream());
  };
  CHECK(launched(Float32Precision::exact, convolve) == "exact exact exact ");
  CHECK(launched(Float32Precision::tf32, convolve) == "tf32 tf32 tf32 ");
  CHECK(launched(Float32Precision::tf32x3, convolve) == "split split split ");
}
#endif
