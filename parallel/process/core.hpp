#pragma once
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "process/call.hpp"
#include "process/engine.hpp"
#include "process/execute.hpp"
#include "process/flight_record.hpp"
#include "process/monitor.hpp"
#include "process/nccl_rank.hpp"

namespace braid::parallel::process {

struct CoreOptions {
  Device device;
  double timeout = 600;
  bool check_collectives = true;
  bool waits_at_end = false;             // the engine's orderly end waits for all ranks
  bool nccl = false;                     // collectives on GPUs run over NCCL, which all ranks have
  std::string engine_name;               // "threads", "mpi", "gloo"
  std::shared_ptr<Store> store;          // of the ranks of the engine
  std::vector<int> ranks;                // in the world; empty: this is the world
  std::string group = "0";               // its name in the flight record
  std::shared_ptr<FlightRecord> record;  // of the process; null: a new one
};

/// What a communicator and its thread share. The thread takes the calls from a queue and runs them
/// in order; sends and receives only start there, and complete in any order.
class Core : public std::enable_shared_from_this<Core> {
 public:
  Core(std::unique_ptr<HostEngine> engine, CoreOptions options);
  /// Starts the threads.
  void start();
  /// Runs what is queued, then ends the thread. After a failure the queue is empty. A thread that
  /// an engine does not let go is left behind, with what it needs: after a failure, or if the end
  /// takes longer than a collective may, which is one. Not `orderly`: other ranks may wait for this
  /// one for ever, so that it must not wait for them.
  void stop(bool orderly) noexcept;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] const CoreOptions& options() const noexcept { return options_; }
  [[nodiscard]] const FlightRecord& record() const noexcept { return *options_.record; }
  [[nodiscard]] Monitor& monitor() noexcept { return *monitor_; }

  /// Queues a call, and numbers it if it is a collective. Throws the failure of the communicator.
  std::shared_ptr<Work::State> add(std::shared_ptr<Call> call);
  /// Null for a negative color.
  std::shared_ptr<Core> split(int color, int key);

 private:
  struct OpenCall {
    std::shared_ptr<Call> call;
    void* request;
  };

  void loop();
  void run(const std::shared_ptr<Call>& call);
  void run_collective(Call& call, Collectives& collectives);
  /// Runs a collective over NCCL. The first one makes the NCCL communicator of the ranks.
  void run_nccl(Call& call, Collectives& collectives);
  void check(Call& call, Collectives& collectives);
  void check_counts(const Call& call, Collectives& collectives);
  void start_message(const std::shared_ptr<Call>& call);
  /// Completes sends and receives that are done. Returns whether some are still open.
  bool look_at_messages();
  void finish(Call& call, std::exception_ptr failure) noexcept;
  /// Fails because of a call, and completes it with the failure of the communicator.
  void fail(Call& call, FailureKind kind, const std::string& reason) noexcept;
  void on_failure() noexcept;
  /// Ends the wait for a thread that an engine does not let go. Called by the monitor's thread.
  void watch() noexcept;
  static std::int32_t poll(void* core) noexcept;
  [[nodiscard]] double seconds_of(const Call& call) const;

  // memory of the host for what is on a device
  const void* to_host(const Memory& memory, std::vector<char>& staged);
  void to_device(const Memory& memory, const void* from);
  Stream& stream_of(Device device);

  std::unique_ptr<HostEngine> engine_;  // used by the thread only, but for abort()
  CoreOptions options_;                 // not changed after construction
  const int rank_, size_;
  int record_group_ = 0;
  std::unique_ptr<Monitor> monitor_;

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  std::deque<std::shared_ptr<Call>> queue_;                 // with the mutex
  std::shared_ptr<Call> current_;                           // with the mutex
  std::vector<std::weak_ptr<Core>> children_;               // with the mutex
  std::thread::id worker_;                                  // with the mutex
  std::uint64_t number_ = 0;                                // with the mutex
  bool stopping_ = false, running_ = false;                 // with the mutex
  bool orderly_ = true;                                     // with the mutex
  Clock::time_point failed_at_ = Clock::time_point::max();  // with the mutex
  Clock::time_point ends_at_ = Clock::time_point::max();    // the engine, with the mutex

  // of the thread
  std::vector<OpenCall> messages_;
  bool looking_ = false;
  Clock::time_point deadline_;
  std::vector<char> staged_in_, staged_out_;
  std::unique_ptr<NcclRank> nccl_;  // null before the first collective on a GPU
  Scratch scratch_;
  std::map<Device, std::shared_ptr<Stream>> streams_;
  std::vector<std::shared_ptr<Call>> kept_;  // their memory may still be written
};

}  // namespace braid::parallel::process
