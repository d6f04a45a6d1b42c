// Compares every kernel of the table on the CPU and on CUDA, for every dtype that it supports, with
// float64 as the reference. Both must reject the same arguments with the same text.
#include "kernels/every_kernel.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/stats.hpp"
#endif

using namespace agreement;

namespace {

/// Returns the number of grids that the emulation has run.
#if defined(BRAID_CUDA_SIMT)
constexpr bool kCounted = true;
std::uint64_t grids() { return braid::simt::stats().grids; }
#else
constexpr bool kCounted = false;
std::uint64_t grids() { return 0; }
#endif

/// Only CUDA convolves 16-bit numbers (tests/kernels/test_conv.cpp tests them); on the CPU the ops
/// convert them.
bool only_on_cuda(const std::string& name, DType t) {
  return name.rfind("conv", 0) == 0 && (t == DType::float16 || t == DType::bfloat16);
}

/// Checks that each call is accepted by both or rejected by both with the same text, and that each
/// dtype launches a kernel.
void answer_alike(const char* name, CallsOf calls_of) {
  int taken = 0;
  for (const DType t : kAll) {
    const std::uint64_t before = grids();
    bool work = false;
    for (const Call& call : calls_of(t)) {
      const std::string cpu = answer(call, t, false), cuda = answer(call, t, true);
      taken += cpu.empty();
      work = work || (cpu.empty() && !call.operands.empty() && call.operands[0].numbers.size() > 0);
      if (only_on_cuda(name, t) ? !cuda.empty() : cpu != cuda)
        FAIL_CHECK(name << ": " << call.name << " " << braid::name_of(t) << ": the CPU says '"
                        << cpu << "', CUDA '" << cuda << "'");
    }
    if (kCounted && work && grids() == before)
      FAIL_CHECK(name << " " << braid::name_of(t) << ": no kernel was launched");
  }
  CHECK(taken > 0);
}

}  // namespace

TEST_CASE("every kernel of the CPU's table is in CUDA's, for the same types, with the same errors",
          "[.][every]") {
  NEEDS_DEVICE;
#define BRAID_KERNEL(name, Args)                                             \
  REQUIRE(((cpu_kernels().name != nullptr) && (kernels().name != nullptr))); \
  answer_alike(#name, calls_of_##name);
#include <braid/core/internal/kernels.def>
}

TEST_CASE("every kernel agrees between the CPU and CUDA", "[.][every]") {
  NEEDS_DEVICE;
  every_kernel_agrees();
}

// The tests of these kernels leave sizes, layouts and dtypes to these calls, which run in every
// order of threads.
TEST_CASE("rows, losses, optimizers, activations and sums agree between the CPU and CUDA",
          "[cuda_kernels][softmax][loss][optim][activation][reduce]") {
  NEEDS_DEVICE;
#define BRAID_AGREE(name) agree(#name, calls_of_##name);
  BRAID_AGREE(softmax)
  BRAID_AGREE(softmax_backward)
  BRAID_AGREE(cross_entropy)
  BRAID_AGREE(cross_entropy_backward)
  BRAID_AGREE(mse)
  BRAID_AGREE(mse_backward)
  BRAID_AGREE(sgd)
  BRAID_AGREE(adam)
  BRAID_AGREE(total_norm)
  BRAID_AGREE(scale_list)
  BRAID_AGREE(activation)
  BRAID_AGREE(reduce)
  BRAID_AGREE(scan)
#undef BRAID_AGREE
}
