// Every kernel of the CPU's table against float64, and the same bits for every number of threads.
#include "kernels/every_kernel.hpp"

TEST_CASE("every kernel is within its bounds of float64, for any number of threads",
          "[kernels][every]") {
  agreement::every_kernel_agrees();
}
