// Tests of cuBLAS as the engine of matrix products: the switch, the unsupported cases, and products
// of every layout and dtype through the layers that call it. The entry itself is tested by the gemm
// cases of tests/cuda_kernels, which run a second time with BRAID_GEMM=cublas.
#include <braid/kernels/cuda.hpp>

#include "cuda/cublas.hpp"
#include "cuda/cublas_api.hpp"
#include "cuda_support.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/runtime/control.hpp"
#endif

using namespace braid;
using namespace braid::test;

namespace {

/// Selects cuBLAS for a scope. Converts to false if the library is missing.
struct WithCublas {
  WithCublas() : before(cuda::gemm_engine()) {
    try {
      cuda::set_gemm_engine(cuda::GemmEngine::cublas);
    } catch (const DeviceError& e) {
      WARN("SKIP(" << e.what() << ")");
    }
  }
  ~WithCublas() { cuda::set_gemm_engine(before); }
  explicit operator bool() const { return cuda::gemm_engine() == cuda::GemmEngine::cublas; }
  cuda::GemmEngine before;
};

Tensor numbers(const Shape& shape, DType dtype, int seed) {
  std::int64_t n = 1;
  for (const std::int64_t s : shape) n *= s;
  std::vector<float> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] =
        static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(seed)) % 11) - 5) / 4;
  return tensor(v).reshape(shape).to(dtype);
}

}  // namespace

TEST_CASE("cublas: products of every layout and type are those of the CPU", "[cublas]") {
  NEEDS_DEVICES(1);
  const WithCublas with;
  if (!with) return;
  for (const DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int32}) {
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        INFO(dtype << (ta ? " Aᵀ" : " A") << (tb ? " Bᵀ" : " B"));
        const Tensor a = numbers(ta ? Shape{7, 5} : Shape{5, 7}, dtype, 1),
                     b = numbers(tb ? Shape{3, 7} : Shape{7, 3}, dtype, 2);
        const auto product = [&](const Device d) {
          const Tensor x = a.to(d), y = b.to(d);
          return matmul(ta ? x.transpose(0, 1) : x, tb ? y.transpose(0, 1) : y);
        };
        // few significant bits, so the sums are exact
        CHECK(equal(product(cuda_device(0)).to(Device()), product(Device())));
      }
  }
}

#if defined(BRAID_CUDA_SIMT)
TEST_CASE("cublas: the switch decides which kernels run", "[cublas]") {
  NEEDS_DEVICES(1);
  const auto kernels_of = [](DType dtype) {
    const Tensor a = numbers({4, 4}, dtype, 1).to(cuda_device(0));
    simt::clear_launch_log();
    (void)matmul(a, a);
    std::string text;
    for (const simt::LaunchRecord& launch : simt::launch_log())
      text += launch.kernel.find("fake_gemm") != std::string::npos ? "cublas "
              : launch.kernel.find("linear_") != std::string::npos ? "braid "
                                                                   : "";
    return text;
  };
  CHECK(kernels_of(DType::float32) == "braid ");
  {
    const WithCublas with;
    for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
      CHECK(kernels_of(dtype) == "cublas ");
    CHECK(kernels_of(DType::int64) == "braid ");  // cuBLAS has no integer products
  }
  CHECK(kernels_of(DType::float32) == "braid ");
}
#endif

TEST_CASE("cublas: what each engine leaves to it", "[cublas]") {
  using cuda::GemmEngine;
  static int asked = 0;
  const auto opens = []() { return ++asked, true; };
  const auto fails = []() { return ++asked, false; };
  struct Row {
    DType dtype;
    bool automatic, cublas;
    Float32Precision precision = Float32Precision::exact;
    bool adds = false;  // to a matrix that is there
  };
  for (const Row& row : {Row{DType::float16, true, true},
                         {DType::bfloat16, true, true},
                         {DType::float32, false, true},
                         {DType::float32, true, true, Float32Precision::tf32},
                         {DType::float32, false, false, Float32Precision::tf32x3},
                         {DType::float16, true, true, Float32Precision::tf32x3},
                         {DType::float64, false, true, Float32Precision::tf32},
                         {DType::float64, false, true},
                         {DType::int32, false, false},
                         {DType::int64, false, false},
                         // rounded twice by cuBLAS
                         {DType::float16, false, true, Float32Precision::exact, true},
                         {DType::bfloat16, false, true, Float32Precision::tf32, true},
                         {DType::float32, true, true, Float32Precision::tf32, true}}) {
    INFO(row.dtype << (row.adds ? ", added" : ""));
    asked = 0;
    const auto computes = [&](GemmEngine engine, bool (*library)()) {
      return cuda::cublas_computes(engine, row.dtype, row.precision, row.adds, library);
    };
    CHECK(computes(GemmEngine::automatic, opens) == row.automatic);
    CHECK_FALSE(computes(GemmEngine::automatic, fails));
    CHECK(asked == (row.automatic ? 2 : 0));
    CHECK(computes(GemmEngine::cublas, fails) == row.cublas);
    CHECK_FALSE(computes(GemmEngine::braid, opens));
    CHECK(asked == (row.automatic ? 2 : 0));
  }
}

TEST_CASE("cublas: a missing library, or one without the functions, is said", "[cublas]") {
  const char* const missing[] = {"libbraid_no_such_blas.so.13", "libbraid_no_such_blas.so"};
  CHECK_THROWS_TEXT(DeviceError,
                    "cuBLAS: expected one of libbraid_no_such_blas.so.13, "
                    "libbraid_no_such_blas.so, got none: *libbraid_no_such_blas.so.13*",
                    cuda::cublas::open_library(missing));
  const char* const wrong[] = {"libm.so.6"};
  CHECK_THROWS_TEXT(DeviceError, "cuBLAS: expected libm.so.6 to have cublasCreate_v2, got none",
                    cuda::cublas::open_library(wrong));
  CHECK(std::string(cuda::cublas::library_names()[0]) == "libcublas.so.13");
}
