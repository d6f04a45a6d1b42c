// The kernel tests that CI runs: all calls of the kernels whose files were compiled for this
// sample.
#include <iostream>

#include "kernels/every_kernel.hpp"
#include "ptx/sample.hpp"

using namespace agreement;

namespace {

/// Returns false if a file that it needs is not in the sample.
bool agrees(const char* name, CallsOf calls_of, Tally& all) {
  try {
    const Tally tally = agree(name, calls_of);
    all.run += tally.run, ++all.defined;
    return true;
  } catch (const ptx::NotSampled&) {
    return false;
  }
}

}  // namespace

TEST_CASE("nvcc's PTX of the sample agrees with the CPU", "[.][sample]") {
  NEEDS_DEVICE;
  Tally all;
  int entries = 0, whole = 0;
#define BRAID_AGREE(name) ++entries, whole += agrees(#name, calls_of_##name, all);
  BRAID_KERNELS(BRAID_AGREE)
#undef BRAID_AGREE
  CHECK(whole > 0);
  std::cout << "SHOWS: " << whole << " of " << entries << " entries, " << all.run << " calls"
            << std::endl;
}
