// Checks every CPU kernel against float64. Every number of threads must give the same bits.
#include "kernels/every_kernel.hpp"

TEST_CASE("every kernel is within its bounds of float64, for any number of threads",
          "[kernels][every]") {
  agreement::every_kernel_agrees();
}
