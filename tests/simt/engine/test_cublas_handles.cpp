// The handles of cuBLAS, with the engine that takes it where it is installed.
#include <cstdlib>

#include <braid/braid.hpp>
#include <braid/kernels/cuda.hpp>

#include "child.hpp"
#include "cuda/cublas_fake.hpp"
#include "findings.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"

using namespace braid;

namespace {

const Device kDevice("cuda:0");

/// Runs f in a process of its own, with a cuBLAS that is installed.
template <class F> std::string with_cublas(F&& f) {
  return test::in_child(1, [&] {
    setenv("BRAID_CUDA_CACHE", "1", 1);
    cuda::set_gemm_engine(cuda::GemmEngine::automatic);
    cuda::cublas::set_fake_installed(true);
    return f();
  });
}

Tensor ones_16(std::int64_t rows) {
  return ones({rows, 64}, {.device = kDevice, .dtype = DType::bfloat16});
}

/// The engine of a product of 64³: "cublas", "braid", and its first element.
std::string product() {
  const Tensor x = ones_16(64);
  simt::clear_launch_log();
  const float first = matmul(x, x)[0][0].item<float>();
  bool by_cublas = false;
  for (const simt::LaunchRecord& launch : simt::launch_log())
    by_cublas = by_cublas || launch.kernel.find("fake_gemm") != std::string::npos;
  return str(by_cublas ? "cublas " : "braid ", first, "; ");
}

}  // namespace

TEST_CASE("cublas handles: the first product may be that of a recording", "[cublas]") {
  // Braid computes the small products of the warm-up
  const auto text = with_cublas([] {
    const Tensor w = ones_16(64);
    auto step = training::captured_step([&](const Tensor& x) { return matmul(x, w); });
    std::string seen;
    for (const std::int64_t rows : {2, 2, 64, 64})
      seen += str(
          step(ones_16(rows)).sum().to(DType::float64).item<double>() / static_cast<double>(rows),
          " ");
    return seen + (step.recorded() ? "recorded" : "not recorded") + test::findings();
  });
  CHECK(text == "4096 4096 4096 4096 recorded");
}

TEST_CASE("cublas handles: one that cannot be made is a warning, and Braid multiplies",
          "[cublas]") {
  const auto after = [](bool persistent) {
    return with_cublas([persistent] {
      std::string warnings;
      set_warning_handler([&](std::string_view text) {
        simt::fail_call(0, cudaSuccess);
        warnings += str(text, "; ");
      });
      (void)(ones_16(64) + ones_16(64));  // so that the cache has memory for the operands
      simt::fail_call(1, cudaErrorMemoryAllocation, persistent, "cudaMalloc");
      std::string text = product() + product();
      simt::fail_call(0, cudaSuccess);
      cuda::set_gemm_engine(cuda::GemmEngine::cublas);
      text += product();
      return warnings + text + test::findings();
    });
  };
  CHECK(after(false) == "cublas 64; cublas 64; cublas 64; ");
  CHECK(after(true) ==
        "matmul: cuBLAS does not work on cuda:0 (cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED): "
        "Braid's own kernels compute its products; braid 64; braid 64; cublas 64; ");
}
