#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <type_traits>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/nn/training/stop.hpp>

namespace braid::training {

/// The command line options of a training program. The values here are the defaults.
struct Options {
  std::string data = {};    ///< --data FOLDER: the data set; empty: the folder in BRAID_DATA
  std::int64_t epochs = 3;  ///< --epochs N
  std::int64_t batch = 64;  ///< --batch N: rows in a batch
  double lr = 1e-3;         ///< --lr X
  /// --checkpoint FOLDER: where checkpoints are saved; empty: none are saved
  std::string checkpoint = {};
  bool resume = false;     ///< --resume: continue from the newest checkpoint
  std::uint64_t seed = 0;  ///< --seed N
  int devices = 0;         ///< --devices N: logical CPU devices; 0: from BRAID_CPU_DEVICES
  /// --tensorboard FOLDER: progress writes a TensorBoard event file there
  std::string tensorboard = {};
  std::string csv = {};  ///< --csv FILE: progress appends every reported value to it
  /// --trace FILE: progress writes a timeline of steps and of waits for data there, for Perfetto or
  /// chrome://tracing
  std::string trace = {};
  bool quiet = false;  ///< --quiet: progress prints nothing
};

/// Thrown if the command line contains --help: what() is the text to print. It is not an error.
struct HelpRequested : Error {
  using Error::Error;
};

/// A pointer to a variable of one of the types that a command line can set.
class OptionTarget {
 public:
  OptionTarget(std::string* text) noexcept : to_(text), kind_(Kind::text) {}
  OptionTarget(std::int64_t* number) noexcept : to_(number), kind_(Kind::int64) {}
  OptionTarget(std::uint64_t* number) noexcept : to_(number), kind_(Kind::uint64) {}
  OptionTarget(double* number) noexcept : to_(number), kind_(Kind::real) {}
  OptionTarget(int* number) noexcept : to_(number), kind_(Kind::int32) {}
  OptionTarget(bool* flag) noexcept : to_(flag), kind_(Kind::flag) {}

  [[nodiscard]] bool is_flag() const noexcept { return kind_ == Kind::flag; }
  /// Returns f(pointer), with the pointer as its own type.
  template <class F> auto visit(F&& f) const {
    switch (kind_) {
      case Kind::text: return f(static_cast<std::string*>(to_));
      case Kind::int64: return f(static_cast<std::int64_t*>(to_));
      case Kind::uint64: return f(static_cast<std::uint64_t*>(to_));
      case Kind::real: return f(static_cast<double*>(to_));
      case Kind::int32: return f(static_cast<int*>(to_));
      default: return f(static_cast<bool*>(to_));
    }
  }

 private:
  enum class Kind : std::uint8_t { text, int64, uint64, real, int32, flag };
  void* to_;
  Kind kind_;
};

/// A program-specific option: `{"full", "", "the paper's network", &full}` is --full, and
/// `{"digits", "N", "so many digits", &digits, 1}` is --digits N.
struct Option {
  /// with an empty `value` it is a flag, and `to` must be a bool
  std::string_view name, value, help;
  /// points to the default, which is overwritten by the value from the command line
  OptionTarget to;
  /// the smallest allowed value of a number
  double least = 0;
};

/// Parses `--name value`, `--name=value` and `--flag`. Returns `defaults` with the given options
/// replaced, and writes the program's own options into their targets. --devices takes effect
/// immediately.
///
/// Throws    ArgumentError for an unknown or repeated option, a value that is missing, not a number
///           or out of range, --resume without --checkpoint, an argument that is not an option, or
///           an own option that is declared wrongly (a bool with a `value`, or another type without
///           one); DeviceError for --devices if devices are in use already; HelpRequested for
///           --help: catch it in main (see report_exception). Own options are written last, after
///           every check
[[nodiscard]] Options options(int argc, const char* const* argv, const Options& defaults = {},
                              const std::vector<Option>& own = {});

/// To be called in a catch block at the end of main. Prints the current exception and returns the
/// program's exit status. The text of HelpRequested goes to stdout, with status 0. Any other
/// exception goes to stderr as `name: what`, with status 1; name is argv[0] without its folders.
/// Without such a catch block an exception, including that of --help, ends the program by
/// std::terminate.
///
///     int main(int argc, char** argv) try {
///       const auto options = training::options(argc, argv);
///       …
///       return training::exit_status();
///     } catch (...) {
///       return training::report_exception(argv[0]);
///     }
[[nodiscard]] int report_exception(const char* program) noexcept;

/// A main that catches: returns f(options) of the command line, exit_status() after a function that
/// returns nothing, or report_exception's status after an exception. The options of the program
/// itself are `own`.
///
///     int main(int argc, char** argv) {
///       return training::main(argc, argv, [](const training::Options& options) {
///         print("epochs ", options.epochs);
///       });
///     }
template <class F>
[[nodiscard]] int main(int argc, const char* const* argv, F&& f, const Options& defaults = {},
                       const std::vector<Option>& own = {}) {
  try {
    const Options options = training::options(argc, argv, defaults, own);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, const Options&>>) {
      f(options);
      return exit_status();
    } else {
      return f(options);
    }
  } catch (...) {
    return report_exception(argc > 0 ? argv[0] : nullptr);
  }
}

/// Returns the text of --help.
[[nodiscard]] std::string help(const std::string& program, const Options& defaults = {},
                               const std::vector<Option>& own = {});

}  // namespace braid::training
