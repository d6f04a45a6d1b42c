#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "simt/location.hpp"
#include "simt/runtime/cuda_types.hpp"
#include "simt/runtime/operation.hpp"
#include "simt/runtime/streams.hpp"

// Stream capture, and graphs. A capture records operations instead of queueing them. A launch of
// the graph queues copies of them, in the order of the capture: the work of the stream on which the
// capture began goes to the stream of the launch, that of each other stream to one of the graph's
// own. So the checker sees the dependencies of the graph, and no others.
namespace braid::simt::detail {

/// A capture. Its streams have slots of their own: 0 is the stream on which it began.
struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Location begun;
  bool valid = true;
  std::vector<StreamPtr> streams;  ///< by slot
  std::vector<OpPtr> last;  ///< the last operation of each, or the record that it forked from
  std::vector<OpPtr> ops;   ///< in the order of the calls

  /// Appends an operation, after the stream's last one and `needs`.
  OpPtr add(const StreamState& stream, OpKind kind, const char* call, Location where,
            std::function<void(Op&)> run, const std::vector<OpPtr>& needs);
  /// Makes a stream a part of the capture.
  void fork(const StreamPtr& stream, const OpPtr& record);
  /// True if the work of every stream is ordered before the end of the first one's.
  [[nodiscard]] bool joined() const;
  /// Ends it: the streams queue their work again. Returns the operations.
  [[nodiscard]] std::vector<OpPtr> end();
};
using CapturePtr = std::shared_ptr<Capture>;

/// The operations of a capture that has ended, and where it began.
struct Graph {
  std::vector<OpPtr> ops;
  std::size_t slots = 1;
  Location captured;
};

/// A graph that can be launched.
struct GraphInstance {
  std::shared_ptr<const Graph> graph;
  std::vector<StreamPtr> branches;  ///< for the slots from 1 on
  OpPtr last;                       ///< the end of its latest launch, which the next one waits for
  Location created;
};

/// The captures that go on, and the graphs that exist. Guarded by the runtime's mutex.
struct Captures {
  std::vector<CapturePtr> active;
  std::map<std::uint64_t, std::shared_ptr<const Graph>> graphs;
  std::map<std::uint64_t, std::shared_ptr<GraphInstance>> instances;
  std::uint64_t next = kFirstHandle;
  void clear();
};

}  // namespace braid::simt::detail
