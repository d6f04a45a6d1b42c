#pragma once
#include <string>
#include <vector>

#include "support/json.hpp"

namespace bench {

/// Describes the machine of a measurement: processor, cores, instruction set, memory, compiler,
/// kernel, commit, and load at the start.
[[nodiscard]] Json machine_card();
/// The same in one line, for printing above a table.
[[nodiscard]] std::string machine_line();

/// Returns an empty text on a quiet machine. Otherwise returns a warning that other programs were
/// running, so that the figures are not quoted.
[[nodiscard]] std::string busy_warning();

/// The processors in this process's affinity mask: first one for each physical core, then their
/// hyper-threading siblings.
[[nodiscard]] std::vector<int> cores();
/// "0,1" for the first `count` of cores().
[[nodiscard]] std::string core_list(std::size_t count);
/// Restricts this process, and all threads and processes that it starts later, to the first `count`
/// of cores(). Call it before any thread is created.
void stay_on(std::size_t count);
/// The number of physical cores among cores().
[[nodiscard]] std::size_t physical_cores();

}  // namespace bench
