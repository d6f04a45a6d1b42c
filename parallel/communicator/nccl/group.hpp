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

/// The part of one rank in a collective, or one end of a transfer from rank to rank.
struct Call {
  enum class Kind : std::uint8_t {
    broadcast,
    reduce,
    all_reduce,
    all_gather,
    reduce_scatter,
    send,
    recv
  };
  Kind kind;
  std::size_t rank;  ///< of this process's, from 0 on
  const void* send;
  void* recv;  ///< may be null if the rank gets no result of reduce
  /// in NCCL's terms: for all_gather and reduce_scatter the count of one rank's part
  std::size_t count;
  int type;
  int peer = 0;   ///< of send and recv: the other rank; of broadcast and reduce: the root
  int op = kSum;  ///< of a reduction
};

/// How the only rank of this process meets those of other processes.
struct Remote {
  UniqueId id{};  ///< of make_id(), of one rank
  int rank = 0, size = 1;
  Clock::time_point deadline;     ///< for the ranks to meet
  std::function<bool()> stopped;  ///< true if the group must end; called with locks held
  std::function<void()> idle;     ///< called again and again by a thread that waits
};

/// The non-blocking NCCL communicators of some devices, each with a separate stream: all ranks, or
/// one of several processes.
///
/// The submitting thread (submitter.hpp) makes all library calls except aborts. The program's
/// threads wait for it with a deadline. An error or a timeout ends the group: a separate thread
/// calls ncclCommAbort for all ranks, and the caller waits for it at most kAbortLimit. If that
/// thread does not return, the communicators are leaked and a warning says so. After that, run()
/// and check() throw; abort() and the destructor still work. Thread-safe.
class Group {
 public:
  /// The limits of an abort, of the wait for the streams after it, and of close(). The first two
  /// together are less than the second that is guaranteed to callers.
  static constexpr std::chrono::milliseconds kAbortLimit{400}, kDrainLimit{300}, kCloseLimit{5000};
  /// The part of kAbortLimit for which an abort waits for a running call, so that no call uses what
  /// the abort frees. A call that takes longer counts as hung.
  static constexpr std::chrono::milliseconds kWorkLimit{50};

  /// Requires one or more distinct CUDA devices. Throws as make_nccl_communicator.
  Group(std::vector<Device> devices, std::chrono::milliseconds timeout);
  /// One rank; the others are in other processes.
  Group(Device device, Remote remote, std::chrono::milliseconds timeout);
  /// Finalises and destroys the communicators within kCloseLimit, or aborts them.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] std::span<const Device> devices() const noexcept { return shared_->devices; }
  /// NCCL's version as ncclGetVersion returns it: 22809.
  [[nodiscard]] int version() const noexcept { return version_; }

  /// Runs the calls as one NCCL group, after the work on the current streams of the devices.
  /// Returns when the calls are done on all devices; under a DeferredWait, when they are queued and
  /// the current streams wait for them. Throws CommError and its subclasses, DeviceLostError,
  /// CudaError: see Communicator. Their texts begin with `op`.
  void run(const char* op, std::vector<Call> calls);
  /// Waits for the calls that were only queued, and throws what they would have thrown.
  void wait();
  /// The same with a deadline, and without a wait for the current streams.
  void run_until(Clock::time_point deadline, const char* op, std::vector<Call> calls);
  /// An id for the ranks of a group. Throws as the constructor.
  [[nodiscard]] static UniqueId make_id(Clock::time_point deadline,
                                        const std::function<bool()>& stopped);
  /// The stream of a rank of this process.
  [[nodiscard]] const std::shared_ptr<braid::Stream>& stream(std::size_t rank = 0) const {
    return shared_->streams[rank];
  }
  /// See Communicator.
  void check();
  void abort() noexcept;

 private:
  /// The state of the submitting thread. It stays alive when no caller waits for it any more.
  struct Shared : std::enable_shared_from_this<Shared> {
    Functions nccl;
    std::vector<Device> devices;
    std::vector<std::shared_ptr<braid::Stream>> streams;
    // by rank; null before and after use; atomic, because another thread may abort
    std::vector<Comm> comms;
    std::vector<Comm> made;  // by rank: where the library writes
    UniqueId id{};
    int first = 0, total = 0;  // the first rank here, and the number of all ranks
    bool elsewhere = false;    // the other ranks are in other processes
    // held by the submitting thread while it works; kill() waits for it, for kWorkLimit
    std::mutex working;
    std::atomic<bool> given_up{false};  // the group ends: no new work may begin
    // the work hung and another thread aborted its communicators: it must not call the library
    // again
    std::atomic<bool> taken{false};
    // no caller waits for the work any more, and its thread is not used again
    std::atomic<bool> left{false};
  };
  /// The result of a piece of work on the submitting thread.
  struct Answer {
    const char* function = nullptr;  // the first one that failed
    Result result = kSuccess;
    std::string detail;        // the library's text about it
    bool in_progress = false;  // of a call, or of a communicator that was polled
    std::exception_ptr error;  // of Braid's own calls
    int version = 0;
  };
  struct Late {};
  struct Stopped {};
  using Work = std::function<void(Shared&, Answer&)>;

  Answer ask(const char* op, Clock::time_point deadline, Work work);
  void run_locked(Clock::time_point deadline, const char* op, std::vector<Call> calls);
  void queue(Clock::time_point deadline, const char* op, std::vector<Call> calls);
  void finish(Clock::time_point deadline, const char* op);
  void await_ready(const char* op, Clock::time_point deadline);
  void await_streams(const char* op, Clock::time_point deadline);
  void initialise(Clock::time_point deadline);
  void start(Clock::time_point deadline);
  [[nodiscard]] const char* maker() const;  // what errors of its start begin with
  [[nodiscard]] bool stopped() const { return stop_ || (remote_.stopped && remote_.stopped()); }
  void rest() const {
    if (remote_.idle) remote_.idle();
  }
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
  Remote remote_;
  int version_ = 0;
  std::vector<std::unique_ptr<Event>> ends_;  // of a collective, by rank
  std::mutex mutex_;                          // one collective at a time
  std::uint64_t sequence_ = 0;                // of the latest collective
  const char* queued_ = nullptr;              // the latest one, if no caller has waited for it
  std::string stage_;                         // what the last wait was for
  mutable std::mutex state_mutex_;            // guards failure_
  std::string failure_;                       // the error that ended the group
  std::atomic<bool> stop_{false};
  std::mutex kill_mutex_;
  bool killed_ = false, leaked_ = false;
};

}  // namespace braid::parallel::nccl
