#pragma once
#include <memory>
#include <vector>

#include <braid/parallel/process_communicator.hpp>

namespace braid::parallel::detail {

/// Communicators of ranks that are threads of this process, one for each device: the same code as
/// between processes, over an engine that copies memory. For tests. With `nccl`, collectives on
/// GPUs run over NCCL; throws CommError if they cannot.
[[nodiscard]] std::vector<std::shared_ptr<ProcessCommunicator>> make_thread_communicators(
    const std::vector<Device>& devices, double timeout = 60, bool nccl = false);

}  // namespace braid::parallel::detail
