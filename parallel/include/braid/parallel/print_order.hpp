#pragma once
#include <cstdint>

namespace braid::parallel {

/// The order of the lines that replicas print (braid::print) while they run in parallel.
enum class PrintOrder : std::uint8_t {
  thread,  ///< as they are printed; the order differs from run to run
  /// the lines of replica 0, then those of replica 1, …: a replica's lines are buffered until it
  /// and all replicas before it have ended
  replica
};

/// Returns the process's order. Until it is set, BRAID_PRINT_ORDER gives it: `thread` (the default)
/// or `replica`. Throws ArgumentError if the variable has another value. Thread-safe.
[[nodiscard]] PrintOrder print_order();
/// Sets the order of the calls that begin later. Thread-safe.
void set_print_order(PrintOrder order);

}  // namespace braid::parallel
