#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/json.hpp"

namespace bench {

/// The command line options of every benchmark.
struct Options {
  std::string json;  ///< --json FILE: write {"machine": …, "rows": […]}
  /// --peers DIR: the environment made by bench/peers/setup.sh (default: BRAID_PEERS, else
  /// build/peers-venv in the checkout)
  std::string peers;
  bool no_peers = false;  ///< --no-peers: only Braid; every row has peer null
  int rounds = 5;         ///< --rounds N: ABBA rounds
  bool check = false;     ///< --check: only compare results, without timing
  bool strict = false;    ///< --strict: a missed bar is exit code 1
  /// the program-specific options that were given, by name; the value of a flag is empty
  std::map<std::string, std::string, std::less<>> own = {};
  [[nodiscard]] bool has(std::string_view name) const { return own.find(name) != own.end(); }
  /// Returns the value of a program-specific option, or `otherwise` if it was not given.
  [[nodiscard]] std::string value(std::string_view name, std::string otherwise) const {
    const auto at = own.find(name);
    return at == own.end() ? std::move(otherwise) : at->second;
  }
  /// Returns the value as an integer in [1, most]. For any other value it prints what was expected
  /// and ends the program with code 2.
  [[nodiscard]] int number(std::string_view name, int otherwise, int most) const;
};

/// An option of one benchmark only.
struct OwnOption {
  const char* name;   ///< `--devices`
  const char* value;  ///< name of the value in the usage text; null: a flag
  const char* about;
};

/// Parses the command line. On --help or an error it prints the usage and ends the program.
[[nodiscard]] Options read_options(int argc, char** argv, const std::string& about,
                                   const std::vector<OwnOption>& own = {});

/// A benchmark: its name, a short description, the number of cores it is restricted to (0: no
/// restriction), and the environment variables that it sets.
struct Program {
  const char* name;
  const char* about;
  int cores = 1;
  std::vector<std::pair<const char*, const char*>> environment = {};
  std::vector<OwnOption> options = {};
};
/// The body of main: parses the command line, applies the settings of `program` and calls `run`. An
/// exception from run is printed, and 1 is returned.
[[nodiscard]] int run_program(int argc, char** argv, const Program& program,
                              int (*run)(const Options&));

/// Writes the rows to the file of --json, if it was given. Throws std::runtime_error if that fails.
void write_json(const Options& options, const Json& machine, const std::vector<Json>& rows);

}  // namespace bench
