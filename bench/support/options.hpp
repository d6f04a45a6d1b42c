#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/json.hpp"

namespace bench {

/// What every benchmark takes on its command line.
struct Options {
  std::string json;  ///< --json FILE: write {"machine": …, "rows": […]}
  /// --peers DIR: the environment of bench/peers/setup.sh (default: BRAID_PEERS, else
  /// build/peers-venv of the checkout)
  std::string peers;
  bool no_peers = false;  ///< --no-peers: Braid alone; every row has peer null
  int rounds = 5;         ///< --rounds N: ABBA rounds
  bool check = false;     ///< --check: compare results, time nothing
  bool strict = false;    ///< --strict: a missed bar is exit code 1
  /// the program's own options that were given, by name; a flag's value is empty
  std::map<std::string, std::string, std::less<>> own = {};
  [[nodiscard]] bool has(std::string_view name) const { return own.find(name) != own.end(); }
  /// The value of an own option, or `otherwise` if it was not given.
  [[nodiscard]] std::string value(std::string_view name, std::string otherwise) const {
    const auto at = own.find(name);
    return at == own.end() ? std::move(otherwise) : at->second;
  }
  /// The value as a whole number in [1, most]; else prints what was expected and ends the program
  /// with code 2.
  [[nodiscard]] int number(std::string_view name, int otherwise, int most) const;
};

/// An option of one benchmark alone.
struct OwnOption {
  const char* name;   ///< `--devices`
  const char* value;  ///< what the usage calls its value; null: a flag
  const char* about;
};

/// Reads the command line. On --help or a mistake prints the usage and ends the program.
[[nodiscard]] Options read_options(int argc, char** argv, const std::string& about,
                                   const std::vector<OwnOption>& own = {});

/// A benchmark: its name, what it is about in a few words, how many cores it keeps to (0: all there
/// are), and the variables of the environment that it runs with.
struct Program {
  const char* name;
  const char* about;
  int cores = 1;
  std::vector<std::pair<const char*, const char*>> environment = {};
  std::vector<OwnOption> options = {};
};
/// The body of its main: reads the command line, prepares all that and calls `run`. What run throws
/// is printed, and the result is 1.
[[nodiscard]] int run_program(int argc, char** argv, const Program& program,
                              int (*run)(const Options&));

/// Writes the rows where --json says; throws std::runtime_error if that fails.
void write_json(const Options& options, const Json& machine, const std::vector<Json>& rows);

}  // namespace bench
