#pragma once
#include <string>
#include <vector>

#include "support/json.hpp"

namespace bench {

/// What a number was measured on: processor, cores, instruction set, memory, compiler, kernel,
/// commit, load at the start.
[[nodiscard]] Json machine_card();
/// The card in one line, to print above a table.
[[nodiscard]] std::string machine_line();

/// Empty on a quiet machine; else a line that says that other programs were running, so that nobody
/// quotes the figures.
[[nodiscard]] std::string busy_warning();

/// The processors of this process's affinity mask, one a physical core first, then their siblings.
[[nodiscard]] std::vector<int> cores();
/// "0,1" for the first `count` of cores().
[[nodiscard]] std::string core_list(std::size_t count);
/// Keeps this process, and all that it starts from now on, on the first `count` of cores(). Call it
/// before anything makes a thread.
void stay_on(std::size_t count);
/// Physical cores among cores().
[[nodiscard]] std::size_t physical_cores();

}  // namespace bench
