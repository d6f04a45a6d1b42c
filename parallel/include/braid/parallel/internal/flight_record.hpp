#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <braid/core/dtype.hpp>
#include <braid/core/shape.hpp>

namespace braid::parallel::detail {

/// How far a call has come.
enum class FlightState : std::uint8_t {
  scheduled,  ///< queued on this rank
  started,    ///< entered: this rank waits for the others
  completed,
};

/// One call of a communicator, in a flight record. Times are nanoseconds since 1970; 0: not yet.
struct FlightEntry {
  std::int64_t record = 0;  ///< the number of the entry in this process, from 0 on
  int group = 0;            ///< index of FlightRecord::groups
  std::string op = {};      ///< `all_reduce`, `broadcast`, …, `barrier`, `split`, `send`, `recv`
  std::string name = {};    ///< what errors call the work, as `bucket 3`; may be empty
  /// A collective: its number in the group, from 1 on, the same on all ranks. A message: its number
  /// among those with the same sender, receiver and tag, from 1 on; 0: counted within the record.
  std::int64_t number = 0;
  int peer = -1, tag = 0;  ///< of a message: the other rank, as the group numbers it
  std::optional<Shape> in = {},
                       out = {};  ///< sizes; out: only where op and group do not determine it
  DType dtype = DType::float32;
  FlightState state = FlightState::scheduled;
  bool failed = false;
  std::int64_t created = 0, entered = 0, ended = 0;
  std::int64_t timeout_ms = 0;
};

/// The ranks of one communicator.
struct FlightGroup {
  std::string name = {};    ///< unique in the process, and the same on all its ranks: `0`, `0.1.2`
  std::string text = {};    ///< as `world`; the same on all its ranks
  std::string engine = {};  ///< `mpi`, `gloo`, `nccl`, `threads`
  std::vector<int> ranks = {};  ///< in the world, ascending or as the group orders them
  std::int64_t queued = 0, started = 0,
               completed = 0;  ///< the last number of a collective; 0: none
};

/// The last calls of all communicators of a process, oldest first.
struct FlightRecord {
  int rank = 0;             ///< in the world
  std::string reason = {};  ///< why it is written: the first error
  std::vector<FlightGroup> groups = {};
  std::vector<FlightEntry> entries = {};
};

/// Returns the record as PyTorch's analyzer of flight records reads it: a pickle of dictionaries,
/// lists, texts and numbers, without any class.
///
///     python -m torch.distributed.flight_recorder.fr_trace <folder>
///
/// Messages between two ranks are written as collectives of a group of these two, one for each
/// direction and tag: the analyzer takes them for calls of all ranks otherwise.
///
/// Throws    ArgumentError for an entry whose group or peer does not exist
[[nodiscard]] std::string flight_record_pickle(const FlightRecord& record);

/// Writes flight_record_pickle(record) to the file `<prefix><rank>`. The file appears completely or
/// not at all. Returns its path.
///
/// Throws    IoError
std::string write_flight_record(const std::string& prefix, const FlightRecord& record);

}  // namespace braid::parallel::detail
