#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "simt/runtime/control.hpp"
#include "simt/runtime/streams.hpp"

namespace braid::simt::detail {

/// The call that fails: see fail_call.
struct FailingCall {
  std::uint64_t k = 0, seen = 0;
  cudaError_t code = cudaSuccess;
  bool persistent = false, fired = false;
  std::string function;
};

/// What tests choose for the emulation: failures, and the order in which operations run. Guarded by
/// the runtime's mutex.
struct Injection {
  /// Counts a call. Returns the error that is injected into it, or cudaSuccess.
  [[nodiscard]] cudaError_t count_call(const char* function);
  /// Returns the stream that runs next, one of `ready`, which it may sort.
  [[nodiscard]] StreamState* choose(std::vector<StreamState*>& ready);
  /// Removes the failure and resets the counts.
  void clear();

  FailingCall failing;
  const char* failed_function = "";  // of the last injected failure
  std::uint64_t call_count = 0;
  std::map<std::string, std::uint64_t, std::less<>> calls_of;  // by name

  StreamOrder order = StreamOrder::fifo;
  std::mt19937_64 random{1};
  std::uint64_t schedule = 0;           // see simt::schedule
  std::atomic<bool> peer_wrong{false};  // read by running copies
};

}  // namespace braid::simt::detail
