#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/json.hpp"

namespace bench {

/// What every benchmark takes on its command line.
struct Options {
  std::string json;       ///< --json FILE: write {"machine": …, "rows": […]}
  std::string peers;      ///< --peers DIR: the environment of bench/peers/setup.sh (default: BRAID_PEERS, else build/peers-venv of the checkout)
  bool no_peers = false;  ///< --no-peers: Braid alone; every row has peer null
  int rounds = 5;         ///< --rounds N: ABBA rounds
  bool check = false;     ///< --check: compare results, time nothing
  bool strict = false;    ///< --strict: a missed bar is exit code 1
};

/// An option of one benchmark, with a value.
struct OwnOption {
  const char* name;                              ///< `--max-bytes`
  const char* help;                              ///< `N   the largest copy`: what the value is, and what it does
  std::function<void(const std::string&)> take;  ///< what it throws is printed as a mistake
};

/// Reads the command line. On --help or a mistake prints the usage and ends the program.
[[nodiscard]] Options read_options(int argc, char** argv, const std::string& about, const std::vector<OwnOption>& own = {});

/// A benchmark: its name, what it is about in a few words, how many cores it keeps to (0: all there are), and the variables of the environment that it runs with;
/// and the options that it has beside those of all.
struct Program {
  const char* name;
  const char* about;
  int cores = 1;
  std::vector<std::pair<const char*, const char*>> environment = {};
  std::vector<OwnOption> own = {};
};
/// The body of its main: reads the command line, prepares all that and calls `run`. What run throws is printed, and the result is 1.
[[nodiscard]] int run_program(int argc, char** argv, const Program& program, int (*run)(const Options&));

/// Writes the rows where --json says; throws std::runtime_error if that fails.
void write_json(const Options& options, const Json& machine, const std::vector<Json>& rows);

}  // namespace bench
