#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/tree.hpp>
#include <braid/parallel/process_communicator.hpp>

namespace braid::parallel::distributed {

/// A collective: throws ArgumentError on all ranks if their models differ, or `error` is not empty
/// on one of them. Returns the largest number of devices that a rank has.
std::size_t compare_models(ProcessCommunicator& ranks, const tree::Flat& module,
                           const std::string& error, std::size_t devices);

/// A collective: gives all ranks the values of `root`, in flat buffers. Without `counted` the
/// versions of the tensors do not change, so that graphs that have saved them stay valid. `name` is
/// that of the calls.
void broadcast_values(ProcessCommunicator& ranks, std::span<const Tensor> tensors, int root,
                      bool counted, std::string_view name = "module");

/// The defined tensors of these kinds, each once.
[[nodiscard]] std::vector<Tensor> tensors_of(const tree::Flat& module, bool parameters);

}  // namespace braid::parallel::distributed
