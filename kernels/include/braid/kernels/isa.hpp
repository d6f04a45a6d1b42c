#pragma once
#include <string_view>
#include <vector>

namespace braid::kernels {

/// Returns the instruction set that the CPU kernels use: `sse`, `avx2` or `avx512` (`generic` on
/// other processors). It is chosen once, at the first use, by the features of the processor, not by
/// its vendor. The environment variable BRAID_ISA forces one.
/// Throws DeviceError if BRAID_ISA names an unknown one, or one that this processor lacks.
[[nodiscard]] std::string_view isa_name();

/// Returns all instruction sets that this build and this processor support, the best one last.
[[nodiscard]] std::vector<std::string_view> isa_names();

}  // namespace braid::kernels
