#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <braid/core/error.hpp>

namespace braid::training {

/// What a training program is told on its command line. The values here are the defaults.
struct Options {
  std::string data = {};    ///< --data FOLDER: the data set; empty: where BRAID_DATA says
  std::int64_t epochs = 3;  ///< --epochs N
  std::int64_t batch = 64;  ///< --batch N: rows of a batch
  double lr = 1e-3;         ///< --lr X
  /// --checkpoint FOLDER: where checkpoints are kept; empty: none are
  std::string checkpoint = {};
  bool resume = false;     ///< --resume: go on from the newest checkpoint
  std::uint64_t seed = 0;  ///< --seed N
  int devices = 0;         ///< --devices N: logical CPU devices, 0: as BRAID_CPU_DEVICES says
  /// --tensorboard FOLDER: progress writes an event file for TensorBoard there
  std::string tensorboard = {};
  std::string csv = {};  ///< --csv FILE: progress appends every reported value to it
  /// --trace FILE: progress writes a timeline of steps and waits for data there, for Perfetto or
  /// chrome://tracing
  std::string trace = {};
  bool quiet = false;  ///< --quiet: progress shows nothing
};

/// The command line asked for --help: what() is the text to print. Nothing is wrong.
struct HelpRequested : Error {
  using Error::Error;
};

/// An option of a program's own: `{"full", "", "the paper's network", &full}` is --full,
/// `{"digits", "N", "so many digits", &digits, 1}` is --digits N.
struct Option {
  /// without value: a flag, which is a bool
  std::string_view name, value, help;
  /// holds the default, and gets what the command line says
  std::variant<std::string*, std::int64_t*, std::uint64_t*, double*, int*, bool*> to;
  /// of a number
  double least = 0;
};

/// Reads `--name value`, `--name=value` and `--flag` over the defaults, and into the program's own
/// options; --devices takes effect at once.
/// Throws  ArgumentError for an unknown or repeated option, a value that is missing, no number or
///         out of range, --resume without --checkpoint, anything that is
///         no option, or own options that are no bool without value, or a bool with one;
///         DeviceError for --devices when devices are in use already;
///         HelpRequested for --help: catch it in main (see report_exception). Own options are
///         written last, when nothing throws any more
[[nodiscard]] Options options(int argc, const char* const* argv, const Options& defaults = {},
                              const std::vector<Option>& own = {});

/// For the end of main, inside a catch: prints the exception that is being handled, and gives the
/// program's exit status. The text of HelpRequested goes to stdout, status 0; anything else goes to
/// stderr as `name: what`, status 1, with the name of argv[0] without its folders. Without a catch
/// C++ ends the program by std::terminate, for --help too.
///
///     int main(int argc, char** argv) try {
///       const auto options = training::options(argc, argv);
///       …
///     } catch (...) {
///       return training::report_exception(argv[0]);
///     }
[[nodiscard]] int report_exception(const char* program) noexcept;

/// The text of --help.
[[nodiscard]] std::string help(const std::string& program, const Options& defaults = {},
                               const std::vector<Option>& own = {});

}  // namespace braid::training
