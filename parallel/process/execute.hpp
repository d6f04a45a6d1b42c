#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/dtype.hpp>
#include <braid/parallel/process_communicator.hpp>

#include "process/engine.hpp"

namespace braid::parallel::process {

/// Thrown by Collectives when the poll stopped the engine.
struct Stopped {};

/// The collectives on host memory, made of those of an engine. Sums of up to kGathered bytes of all
/// ranks, sums of 16-bit floats, and min and max of floats are added here, in the tree of
/// reduce_host; the engine adds the others. In both cases all ranks get the same bits.
///
/// Throws    CommError with the engine's text, Stopped
class Collectives {
 public:
  static constexpr std::size_t kGathered = 64 * 1024;

  Collectives(HostEngine& engine, const BraidEnginePoll& poll) : engine_(engine), poll_(poll) {}

  void broadcast(void* data, std::size_t bytes, int root);
  void reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op, int root);
  void all_reduce(const void* in, void* out, std::int64_t count, DType dtype, ReduceOp op);
  void all_gather(const void* in, void* out, std::size_t bytes);
  void reduce_scatter(const void* in, void* out, std::int64_t part, DType dtype, ReduceOp op);
  void all_to_all(const void* in, void* out, std::span<const std::int64_t> in_counts,
                  std::span<const std::int64_t> out_counts, std::size_t element_bytes);

 private:
  void run(const BraidEngineCall& call);
  /// Reduces elements [at, at + n): each rank adds a part of them. The results go to all ranks, or
  /// to the root if that is not -1.
  void reduce_block(const char* in, char* out, std::int64_t n, DType dtype, ReduceOp op, int root);
  [[nodiscard]] std::size_t ranks() const { return static_cast<std::size_t>(engine_.size()); }
  char* scratch(std::size_t bytes);

  HostEngine& engine_;
  BraidEnginePoll poll_;
  std::vector<char> scratch_;
};

}  // namespace braid::parallel::process
