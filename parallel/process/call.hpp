#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <braid/core/stream.hpp>
#include <braid/core/tensor.hpp>
#include <braid/parallel/process_communicator.hpp>

#include "process/store.hpp"

namespace braid::parallel::process {

enum class CallKind : std::uint8_t {
  broadcast,
  reduce,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  barrier,
  split,
  send,
  recv,
  function,
};
[[nodiscard]] const char* name_of(CallKind kind) noexcept;
[[nodiscard]] const char* name_of(ReduceOp op) noexcept;
/// True for the calls of all ranks, which are numbered.
[[nodiscard]] inline bool is_collective(CallKind kind) noexcept { return kind < CallKind::send; }

/// Contiguous memory of a device. Null: none.
struct Memory {
  void* data = nullptr;
  Device device;
  std::size_t bytes = 0;
};

/// One call of the communicator, from its start until it is complete.
struct Call {
  CallKind kind = CallKind::barrier;
  ReduceOp op = ReduceOp::sum;
  DType dtype = DType::uint8;
  int peer = 0, tag = 0;   // peer: the root, the receiver or the sender
  Shape shape;             // of the input, the same on all ranks
  std::int64_t count = 0;  // elements of the input (recv: of the output)
  Memory in, out;
  std::vector<std::int64_t> in_counts, out_counts;  // of all_to_all
  std::string name;
  std::function<void()> function;

  int rank = 0;              // of this process in the group
  std::uint64_t record = 0;  // in the flight record
  std::uint64_t number = 0;  // of a collective, from 1 on
  Clock::time_point queued, entered, completed;
  Tensor kept_in, kept_out;                   // so that the memory lives until the call is complete
  std::vector<std::unique_ptr<Event>> ready;  // when the devices' earlier work is done
  std::shared_ptr<Work::State> work;
  std::vector<char> staged;      // of a send or receive on a device
  bool checked_failure = false;  // the headers of the ranks differ
  bool nccl = false;             // runs over NCCL

  /// `all_reduce(bucket 3, 25 MiB)`
  [[nodiscard]] std::string text() const;
};

/// `3 bytes`, `12 KiB`, `25 MiB`
[[nodiscard]] std::string bytes_text(std::size_t bytes);
/// `rank 2`, `ranks 0, 1, 3`, `ranks 0 to 6, 8`
[[nodiscard]] std::string ranks_text(std::span<const int> ranks);
/// `10.2 s`
[[nodiscard]] std::string seconds_text(double seconds);

}  // namespace braid::parallel::process

namespace braid::parallel {

struct Work::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;         // with the mutex
  std::exception_ptr error;  // with the mutex
  std::thread::id worker;    // the communicator's thread, which must not wait for its own work

  /// The first call counts.
  void complete(std::exception_ptr failure) noexcept;
};

}  // namespace braid::parallel
