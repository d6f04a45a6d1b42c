#pragma once
#include "simt/nccl/communicator.hpp"

struct ncclComm;

namespace braid::simt::nccl {

/// A call of one of the library's functions: counted, and, where the fault says so, held up or made
/// to fail.
class Entry {
 public:
  /// `comm` is the communicator that is used, for the rule of one thread at a time; null where
  /// there is none or the call may come from any thread.
  explicit Entry(ncclComm* comm = nullptr);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  /// ncclSuccess, or what the call has to return.
  [[nodiscard]] Result result() const noexcept { return result_; }

 private:
  ncclComm* comm_;
  Result result_ = kSuccess;
};

/// What holds from the faulty call on; asking counts as its showing.
[[nodiscard]] bool answers_in_progress();
[[nodiscard]] bool answers_remote_error();
/// True for the one collective that is to stall.
[[nodiscard]] bool take_stall();
void hang_after_abort();
void misuse(const std::string& text);
[[nodiscard]] Sum sum_order();
[[nodiscard]] int version();

}  // namespace braid::simt::nccl
