#pragma once
#include <string_view>
#include <vector>

namespace braid::kernels {

/// The instruction set that the CPU kernels use: `sse`, `avx2` or `avx512` (`generic` on other
/// processors). Chosen once, at the first use, by what the processor has, never by who made it; the
/// environment variable BRAID_ISA forces one.
/// Throws DeviceError if BRAID_ISA names an unknown one, or one that this processor lacks.
[[nodiscard]] std::string_view isa_name();

/// All that this processor can run, the best last.
[[nodiscard]] std::vector<std::string_view> isa_names();

}  // namespace braid::kernels
