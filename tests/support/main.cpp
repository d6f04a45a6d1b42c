// main of every test binary. A run that asks for an instruction set (BRAID_ISA) which this
// processor lacks says so and is skipped.
#if defined(BRAID_CATCH2_V2)
#define CATCH_CONFIG_RUNNER
#endif
#include "support/catch.hpp"

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE

bool processor_has([[maybe_unused]] const std::string& isa) {
#if defined(__x86_64__)
  if (isa == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == "avx512") {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  }
#endif
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const char* isa = std::getenv("BRAID_ISA");
  if (isa != nullptr && !processor_has(isa)) {
    std::cout << "SKIP(this processor lacks " << isa << ")\n";
    return kSkipped;
  }
  return Catch::Session().run(argc, argv);
}
