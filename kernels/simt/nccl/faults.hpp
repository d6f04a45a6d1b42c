#pragma once
#include "simt/nccl/communicator.hpp"

struct ncclComm;

namespace braid::simt::nccl {

/// A call of one of the library's functions. It is counted, and delayed or made to fail if the
/// injected fault says so.
class Entry {
 public:
  /// `comm` is the communicator that is used, to check that one thread uses it at a time. It is
  /// null if there is none, or if any thread may make the call.
  explicit Entry(ncclComm* comm = nullptr);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  /// Returns ncclSuccess, or what the call must return.
  [[nodiscard]] Result result() const noexcept { return result_; }

 private:
  ncclComm* comm_;
  Result result_ = kSuccess;
};

/// Return true from the faulty call on. Once one has returned true, failed() is true.
[[nodiscard]] bool answers_in_progress();
[[nodiscard]] bool answers_remote_error();
/// Returns true for the one collective that must stall.
[[nodiscard]] bool take_stall();
void hang_after_abort();
void misuse(const std::string& text);
[[nodiscard]] Sum sum_order();
[[nodiscard]] int version();

}  // namespace braid::simt::nccl
