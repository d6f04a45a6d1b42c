#include <cstdlib>

#include "kernels/kernel_support.hpp"
#if defined(BRAID_CUDA_SIMT)
#include "simt/config.hpp"
#endif

bool kernel_test::on_cuda() { return true; }

namespace {
// These suites test Braid's kernels, also where cuBLAS would compute 16-bit products.
[[maybe_unused]] const int kOwnKernels = ::setenv("BRAID_GEMM", "braid", 0);
}  // namespace

bool kernel_test::in_other_order([[maybe_unused]] const std::function<void()>& f) {
#if defined(BRAID_CUDA_SIMT)
  using braid::simt::Order;
  const braid::simt::Config before = braid::simt::config();
  if (before.order != Order::forward) return false;  // other orders already compare
  braid::simt::set_order(Order::reverse);
  f();
  braid::simt::set_config(before);
  return true;
#else
  return false;
#endif
}
