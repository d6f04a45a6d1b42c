#pragma once
#include <memory>

#include <braid/nn/training/checkpoint.hpp>
#include <braid/parallel/process.hpp>

namespace braid::parallel {

/// Returns what joins the checkpoints of the processes of a job. The checkpoint keeps the
/// communicator alive; save and load are then collectives. The other ranks wait while rank 0
/// writes: the timeout of the process must allow for that.
///
/// Throws    ArgumentError for a null communicator
///
///     training::Checkpoint checkpoint(
///         {.folder = "runs/digits", .ranks = parallel::checkpoint_ranks(process)}, model,
///         optimizer, loader);
[[nodiscard]] training::CheckpointRanks checkpoint_ranks(
    std::shared_ptr<ProcessCommunicator> communicator);
[[nodiscard]] inline training::CheckpointRanks checkpoint_ranks(const Process& process) {
  return checkpoint_ranks(process.shared_communicator());
}

}  // namespace braid::parallel
