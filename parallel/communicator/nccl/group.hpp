#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <braid/core/stream.hpp>

#include "communicator/nccl/submitter.hpp"
#include "communicator/nccl/table.hpp"

namespace braid::parallel::nccl {

/// One rank's part in a collective.
struct Call {
  enum class Kind : std::uint8_t { broadcast, reduce, all_reduce, all_gather, reduce_scatter };
  Kind kind;
  std::size_t rank;
  const void* send;
  void* recv;  ///< may be null where reduce gives the rank nothing
  /// as the library counts: all_gather and reduce_scatter by the part of a rank
  std::size_t count;
  int type;
};

/// NCCL's communicators of some devices, non-blocking ones, each with a stream of its own. The root
/// is rank 0, sums are the reduction.
///
/// All calls of the library are made by the submitting thread (submitter.hpp); the threads of the
/// program wait, with a deadline. What goes wrong, or takes too long, ends the group:
/// ncclCommAbort, for all ranks, from one thread that is waited for at most kAbortLimit. Where that
/// does not come back, the communicators are leaked and a warning says so. Then nothing works any
/// more but check, abort and the destructor. Any thread may call.
class Group {
 public:
  /// What an abort may take, and the wait for the streams after it: together less than the second
  /// that a caller is promised.
  static constexpr std::chrono::milliseconds kAbortLimit{400}, kDrainLimit{300}, kCloseLimit{5000};
  /// The part of kAbortLimit that an abort waits for a call that is under way, so that nobody uses
  /// what it frees; a call that takes longer hangs.
  static constexpr std::chrono::milliseconds kWorkLimit{50};

  /// Distinct CUDA devices, one or more. Throws as make_nccl_communicator.
  Group(std::vector<Device> devices, std::chrono::milliseconds timeout);
  /// Finalises and destroys the communicators, within kCloseLimit, or aborts them.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] std::span<const Device> devices() const noexcept { return shared_->devices; }
  /// NCCL's, as ncclGetVersion counts: 22809.
  [[nodiscard]] int version() const noexcept { return version_; }

  /// The calls as one group of the library, after what the current streams of the devices hold;
  /// done on all of them when it returns. Throws CommError and its kin, DeviceLostError, CudaError:
  /// see Communicator. `op` stands first in their texts.
  void run(const char* op, std::vector<Call> calls);
  /// See Communicator.
  void check();
  void abort() noexcept;

 private:
  /// What the submitting thread uses, also when nobody waits for it any more.
  struct Shared : std::enable_shared_from_this<Shared> {
    Functions nccl;
    std::vector<Device> devices;
    std::vector<std::shared_ptr<braid::Stream>> streams;
    // by rank; null before and after. As atomics: an abort comes from another thread
    std::vector<Comm> comms;
    std::vector<Comm> made;  // by rank: where the library writes
    // held by the submitting thread while it works: who ends the communicators waits for it, for
    // kWorkLimit
    std::mutex working;
    std::atomic<bool> given_up{false};  // the group ends: the work must begin nothing more
    // the work hung, and its communicators were aborted behind its back: it must not call the
    // library at all
    std::atomic<bool> taken{false};
    // whoever waited for the work has gone, and its thread is not used any more
    std::atomic<bool> left{false};
  };
  /// What came of a piece of work on the submitting thread.
  struct Answer {
    const char* function = nullptr;  // the first that failed
    Result result = kSuccess;
    std::string detail;        // what the library says of it
    bool in_progress = false;  // of a call, or a communicator that was asked
    std::exception_ptr error;  // of our own calls
    int version = 0;
  };
  struct Late {};
  struct Stopped {};
  using Work = std::function<void(Shared&, Answer&)>;

  Answer ask(const char* op, Clock::time_point deadline, Work work);
  void await_ready(const char* op, Clock::time_point deadline);
  void await_streams(const char* op, Clock::time_point deadline);
  void initialise(Clock::time_point deadline);
  [[noreturn]] void fail(const char* op, const std::exception_ptr& error);
  [[noreturn]] void fail_as(const char* op);
  void require_working(const char* op) const;
  void kill() noexcept;
  void drain() noexcept;
  void close() noexcept;
  [[nodiscard]] std::string names() const;

  static void note(Shared& shared, Answer& answer, const char* function, Result result, Comm comm);
  template <class Body> static void in_group(Shared& shared, Answer& answer, const Body& body);
  static void publish(Shared& shared, std::size_t rank);
  static void abort_all(Shared& shared);
  static void poll(Shared& shared, Answer& answer);
  static void poll_briefly(Shared& shared, Answer& answer);

  std::shared_ptr<Shared> shared_;
  std::chrono::milliseconds timeout_;
  int version_ = 0;
  std::vector<std::unique_ptr<Event>> ends_;  // of a collective, by rank
  std::mutex mutex_;                          // one collective at a time
  std::uint64_t sequence_ = 0;                // of the latest
  std::string stage_;                         // what was waited for last
  mutable std::mutex state_mutex_;            // of failure_
  std::string failure_;                       // what ended the group
  std::atomic<bool> stop_{false};
  std::mutex kill_mutex_;
  bool killed_ = false, leaked_ = false;
};

}  // namespace braid::parallel::nccl
