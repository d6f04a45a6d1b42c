#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

// What moves bytes between ranks: MPI, Gloo, or threads of one process. An engine works on host
// memory and is used by one thread, the communicator's. Everything else (queues, devices, 16-bit
// sums, checks, deadlines) is in communicator.cpp, once for all engines.
namespace braid::parallel::process {

/// The layout of the structs below. A module with another one is refused.
inline constexpr std::uint32_t kEngineVersion = 1;

// The structs that cross the border between the library and a module are plain C.
extern "C" {

enum BraidEngineKind : std::int32_t {
  kBraidBroadcast,  // in: count, on the root; out: count, on the others
  kBraidReduce,     // in: count; out: count, on the root; may be the same memory
  kBraidAllReduce,  // in: count; out: count; may be the same memory
  kBraidAllGather,  // in: count; out: count of each rank, or out_counts[r]; in may be part of out
  kBraidAllToAll,   // in_counts[r] elements go to rank r, out_counts[r] come from it
  kBraidSend,       // in: count
  kBraidRecv,       // out: count
};

/// sum, product, min, max. An engine reduces only uint8, int32, int64, float32 and float64, min and
/// max only of integers. For the other collectives, elements are bytes of `element_bytes`.
enum BraidEngineOp : std::int32_t { kBraidSum, kBraidProduct, kBraidMin, kBraidMax };

enum BraidEngineType : std::int32_t {
  kBraidUint8,
  kBraidInt32,
  kBraidInt64,
  kBraidFloat32,
  kBraidFloat64,
};

struct BraidEngineCall {
  std::int32_t kind, op, type, peer, tag;  // peer: the root, the receiver or the sender
  std::int32_t element_bytes;
  const void* in;
  void* out;
  std::int64_t count;
  const std::int64_t* in_counts;
  const std::int64_t* out_counts;
};

/// `stopped` is asked while an engine waits. Anything but 0: the engine stops waiting and returns
/// kBraidStopped. The engine must then not touch the call's memory again, or say in `may_write` of
/// its table that it may.
struct BraidEnginePoll {
  void* context;
  std::int32_t (*stopped)(void* context);
};

enum BraidEngineResult : std::int32_t { kBraidDone, kBraidStopped, kBraidFailed, kBraidPending };

/// A text that the library owns; an engine writes at most `capacity` bytes, with the final 0.
struct BraidEngineText {
  char* data;
  std::size_t capacity;
};

}  // extern "C"

/// An error of an engine has a text; being stopped has none.
struct EngineResult {
  BraidEngineResult result = kBraidDone;
  std::string text;
};

/// One rank's end of an engine.
class Engine {
 public:
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// Runs a collective and waits for it.
  virtual EngineResult run(const BraidEngineCall& call, const BraidEnginePoll& poll) = 0;
  /// Starts a send or recv, whose memory stays valid until test() says that it is done. Several may
  /// be open, and collectives may run meanwhile. Returns null for an error.
  virtual void* start(const BraidEngineCall& call, std::string& error) = 0;
  /// kBraidPending, or done or failed; then the request is gone. Does not wait.
  virtual EngineResult test(void* request) = 0;
  /// A collective of all ranks: an engine of those with the same color, null for a negative one.
  /// `id` is the same on all ranks and unique; `rank` and `size` are those in the new group.
  virtual std::unique_ptr<Engine> split(const std::string& id, int color, int rank, int size,
                                        const BraidEnginePoll& poll, EngineResult& result) = 0;
  /// Makes a running call return soon. Any thread may call it. No call is made afterwards.
  virtual void abort() noexcept = 0;
  /// True if after an error or stop the engine may still write to memory of unfinished calls.
  [[nodiscard]] virtual bool may_write() const noexcept { return false; }

 protected:
  Engine() = default;
};

}  // namespace braid::parallel::process
