#pragma once
// The C interface of libbraid_bench, which table.py calls by ctypes, in the same process as
// PyTorch. Handles are pointers. A failure returns null, NaN or -1, and bb_error() returns the
// reason. Not thread-safe.
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/internal/backend.hpp>

#define BRAID_BENCH_API extern "C" __attribute__((visibility("default")))

namespace bench::gpu {

/// A piece of work that is timed. It keeps its operands, uses the sets of operands in turn, and
/// keeps its last result.
struct Work {
  std::function<braid::Tensor(std::size_t)> once;  ///< argument: index of the set of operands
  std::size_t sets = 1, next = 0;
  braid::Tensor result;
  bool fresh = false;  ///< each run's result is new floating-point memory
  void run() {
    result = once(next);
    next = (next + 1) % sets;
  }
};

[[nodiscard]] inline braid::Device device() { return braid::Device(braid::DeviceType::cuda, 0); }

/// Creates the work of this name. Throws ArgumentError if the name is unknown or the number of
/// operands is wrong.
[[nodiscard]] Work make_work(const std::string& kind,
                             const std::vector<std::vector<braid::Tensor>>& sets);
/// Returns a training step of a GPT-2, for make_work.
[[nodiscard]] Work gpt2_step(const std::vector<braid::Tensor>& operands, const std::string& config,
                             std::int64_t context);
/// Returns the time in us of a direct call of the CUDA runtime on `bytes` bytes: the mean of
/// `count` repetitions (`copy`: the median). Throws ArgumentError for an unknown name.
[[nodiscard]] double time_call(const std::string& what, std::size_t bytes, int count);

std::string& last_error();

/// Returns f(), or `failed` after an exception, whose text is stored in last_error().
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
