#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/dtype.hpp>
#include <braid/parallel/process_communicator.hpp>

#include "process/engine.hpp"

namespace braid::parallel::process {

/// Thrown by Collectives when the poll stopped the engine.
struct Stopped {};

/// Memory that is kept between calls, so that its pages are there: large ones, which a message
/// between processes pins faster.
class Scratch {
 public:
  /// At least this many bytes; what was in it may be lost.
  char* get(std::size_t bytes);

 private:
  Tensor data_;
  std::size_t size_ = 0;
};

/// The collectives on host memory, made of those of an engine. Sums of up to kGathered bytes of all
/// ranks are gathered and added on every rank. Of larger ones each rank adds a part, in the tree of
/// reduce_host, and the parts are gathered. Only where these parts would be small, the engine adds,
/// if it has the type and op. In all cases all ranks get the same bits.
///
/// Throws    CommError with the engine's text, Stopped
class Collectives {
 public:
  static constexpr std::size_t kGathered = 64 * 1024;

  Collectives(HostEngine& engine, const BraidEnginePoll& poll, Scratch& scratch)
      : engine_(engine), poll_(poll), scratch_(scratch) {}

  void broadcast(void* data, std::size_t bytes, int root);
  void reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op, int root);
  void all_reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op);
  void all_gather(const void* in, void* out, std::size_t bytes);
  void reduce_scatter(const void* in, void* out, std::int64_t part, DType dtype, ReduceOp op);
  void all_to_all(const void* in, void* out, std::span<const std::int64_t> in_counts,
                  std::span<const std::int64_t> out_counts, std::size_t element_bytes,
                  bool skips_own = false);

 private:
  void run(const BraidEngineCall& call);
  /// All-reduce by the engine's kBraidReducePieces.
  void reduce_pieces(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op);
  /// Reduces elements [at, at + n): each rank adds a part of them. The results go to all ranks, or
  /// to the root if that is not -1.
  void reduce_block(const char* in, char* out, std::int64_t n, DType dtype, ReduceOp op, int root);
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(engine_.size()); }

  HostEngine& engine_;
  BraidEnginePoll poll_;
  Scratch& scratch_;
};

}  // namespace braid::parallel::process
