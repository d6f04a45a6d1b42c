#pragma once
#include <cstdint>

namespace braid::parallel {

/// In which order the lines come out that replicas print (braid::print) while they run at the same
/// time.
enum class PrintOrder : std::uint8_t {
  thread,  ///< as they are printed: another order in every run
  /// those of replica 0, then those of replica 1, …: a replica's are kept until it and all before
  /// it have ended
  replica
};

/// Of this process. Until it is set: BRAID_PRINT_ORDER, `thread` (the default) or `replica`. Throws
/// ArgumentError for another name there. Any thread may call.
[[nodiscard]] PrintOrder print_order();
/// For the calls that begin after it.
void set_print_order(PrintOrder order);

}  // namespace braid::parallel
