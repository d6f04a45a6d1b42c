#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/kernel_table.hpp>

namespace braid::cpu {

/// The kernels compiled for one instruction set.
struct Isa {
  std::string_view name;
  bool (*supported)() noexcept;  ///< by this processor and its operating system
  const KernelTable* kernels;
};

/// Returns all compiled instruction sets, each better than the one before.
[[nodiscard]] const std::vector<Isa>& compiled_isas();

/// Returns the best instruction set that this processor supports, or the one named by `forced`
/// (null or empty: none is forced). Throws DeviceError for an unknown name and for an instruction
/// set that the processor lacks.
[[nodiscard]] const Isa& choose_isa(const char* forced);

/// choose_isa of the environment variable BRAID_ISA, read once.
[[nodiscard]] const Isa& current_isa();

}  // namespace braid::cpu
