#pragma once
// The C interface of libbraid_bench: what table.py calls by ctypes, in the process that has
// PyTorch. Handles are pointers; a failure gives null, NaN or -1, and bb_error() says why. One
// thread.
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/backend.hpp>

#define BRAID_BENCH_API extern "C" __attribute__((visibility("default")))

namespace bench::gpu {

/// One thing that is timed. It keeps its operands, takes the sets of them in turn, and keeps its
/// last result.
struct Work {
  std::function<braid::Tensor(std::size_t)> once;  ///< with the number of the set of operands
  std::size_t sets = 1, next = 0;
  braid::Tensor result;
  bool fresh = false;  ///< whether each run's result is new floating-point memory
  void run() {
    result = once(next);
    next = (next + 1) % sets;
  }
};

[[nodiscard]] inline braid::Device device() { return braid::Device(braid::DeviceType::cuda, 0); }

/// Makes the work of the name. Throws ArgumentError for a name or a number of operands that there
/// is not.
[[nodiscard]] Work make_work(const std::string& kind,
                             const std::vector<std::vector<braid::Tensor>>& sets);
/// Microseconds of one of `count` repetitions of a bare call of the runtime, on `bytes` bytes.
/// Throws ArgumentError for an unknown name.
[[nodiscard]] double time_call(const std::string& what, std::size_t bytes, int count);

std::string& last_error();

/// f's value, or `failed` with the text kept.
template <class R, class F> [[nodiscard]] R guarded(R failed, F f) noexcept {
  try {
    return f();
  } catch (const std::exception& error) {
    last_error() = error.what();
  } catch (...) {
    last_error() = "an exception of no known type";
  }
  return failed;
}

inline constexpr double kFailed = std::numeric_limits<double>::quiet_NaN();

}  // namespace bench::gpu
