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
inline constexpr std::uint32_t kEngineVersion = 2;

// The structs that cross the border between the library and a module are plain C.
extern "C" {

enum BraidEngineKind : std::int32_t {
  kBraidBroadcast,  // in: count, on the root; out: count, on the others
  kBraidReduce,     // in: count; out: count, on the root; may be the same memory
  kBraidAllReduce,  // in: count; out: count; may be the same memory
  kBraidAllGather,  // in: count; out: count of each rank, or out_counts[r]; in may be part of out
  kBraidAllToAll,   // in_counts[r] elements go to rank r, out_counts[r] come from it
  kBraidReducePieces,  // as kBraidAllReduce, with sums of the library; only of kBraidLinkPieces
  kBraidSend,          // in: count
  kBraidRecv,          // out: count
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

/// Names of the DTypes, for errors.
inline constexpr const char* kBraidDTypes[] = {"bool",    "uint8",    "int32",   "int64",
                                               "float16", "bfloat16", "float32", "float64"};

/// What sums parts for kBraidReducePieces: parts[r], of rank r, and `out` have `count` elements.
/// `out` may be one of the parts.
struct BraidEngineReducer {
  void* context;
  void (*combine)(void* context, const void* const* parts, void* out, std::int64_t count);
};

/// What is between the ranks of an engine, the same on all of them.
enum BraidEngineLink : std::int32_t {
  kBraidLinkPlain,   // nothing is known
  kBraidLinkMemory,  // all ranks are on this host, and a message is a copy of memory
  kBraidLinkPieces,  // a network, over which many messages may be on their way
};

struct BraidEngineCall {
  // op: of a send or recv the DType of its tensor; peer: the root, the receiver or the sender
  std::int32_t kind, op, type, peer, tag;
  std::int32_t element_bytes;
  std::int32_t skips_own;  // kBraidAllToAll: 1: the rank's own part need not be copied
  const void* in;
  void* out;
  std::int64_t count;
  const std::int64_t* in_counts;
  const std::int64_t* out_counts;
  const BraidEngineReducer* reducer;
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

/// Rank 0's store, for engines that need it to meet. 0: done; 1: an error, as a text. `get` waits
/// for the key up to `seconds`; it sets `size` to that of the value, which it writes to `value`.
struct BraidEngineStore {
  void* context;
  std::int32_t (*set)(void* context, const char* key, const void* value, std::size_t size,
                      BraidEngineText error);
  std::int32_t (*get)(void* context, const char* key, double seconds, void* value,
                      std::size_t capacity, std::size_t* size, BraidEngineText error);
};

struct BraidEngineOpen {
  std::int32_t rank, size;  // -1: the engine says
  const char* address;      // numeric, of this host's interface to use
  double timeout;           // seconds
  std::int64_t largest;     // elements that one call of the engine's library takes; 0: its limit
  BraidEngineStore store;
};

/// What a module exports: `const BraidEngineTable* braid_engine()`. Handles are opaque. run and
/// test return a BraidEngineResult. abort may be called from any thread, the others from one at a
/// time.
struct BraidEngineTable {
  std::uint32_t version;
  std::int32_t may_write;                 // see HostEngine::may_write
  const char* name;                       // "mpi"
  void (*library)(BraidEngineText text);  // "Open MPI 4.1.4"
  void* (*open)(const BraidEngineOpen* options, BraidEngineText error);
  std::int32_t (*rank)(void* engine);
  std::int32_t (*size)(void* engine);
  std::int32_t (*link)(void* engine);  // a BraidEngineLink
  std::int32_t (*run)(void* engine, const BraidEngineCall* call, const BraidEnginePoll* poll,
                      BraidEngineText error);
  void* (*start)(void* engine, const BraidEngineCall* call, BraidEngineText error);
  std::int32_t (*test)(void* engine, void* request, BraidEngineText error);
  // null without a text for a negative color
  void* (*split)(void* engine, const char* id, std::int32_t color, std::int32_t rank,
                 std::int32_t size, BraidEngineText error);
  void (*abort)(void* engine);
  void (*close)(void* engine, std::int32_t orderly);  // 0: other ranks may be gone
};

}  // extern "C"

/// An error of an engine has a text; being stopped has none.
struct EngineResult {
  BraidEngineResult result = kBraidDone;
  std::string text;
};

/// One rank's end of an engine.
class HostEngine {
 public:
  virtual ~HostEngine() = default;
  HostEngine(const HostEngine&) = delete;
  HostEngine& operator=(const HostEngine&) = delete;

  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] virtual int size() const noexcept = 0;
  [[nodiscard]] virtual BraidEngineLink link() const noexcept { return kBraidLinkPlain; }
  /// Runs a collective and waits for it.
  virtual EngineResult run(const BraidEngineCall& call, const BraidEnginePoll& poll) = 0;
  /// Starts a send or recv, whose memory stays valid until test() says that it is done. Several may
  /// be open, and collectives may run meanwhile. Returns null for an error.
  virtual void* start(const BraidEngineCall& call, std::string& error) = 0;
  /// kBraidPending, or done or failed; then the request is gone. Does not wait.
  virtual EngineResult test(void* request) = 0;
  /// Forgets a request that is not complete, after abort().
  virtual void drop(void* /*request*/) noexcept {}
  /// A collective of all ranks: an engine of those with the same color, null for a negative one.
  /// `id` is the same on all ranks and unique; `rank` and `size` are those in the new group.
  virtual std::unique_ptr<HostEngine> split(const std::string& id, int color, int rank, int size,
                                            const BraidEnginePoll& poll, EngineResult& result) = 0;
  /// Makes a running call return soon. Any thread may call it. No call is made afterwards.
  virtual void abort() noexcept = 0;
  /// Before the end: other ranks may be gone, so that nothing may wait for them.
  virtual void leave_at_once() noexcept {}
  /// True if after an error or stop the engine may still write to memory of unfinished calls.
  [[nodiscard]] virtual bool may_write() const noexcept { return false; }

 protected:
  HostEngine() = default;
};

}  // namespace braid::parallel::process
