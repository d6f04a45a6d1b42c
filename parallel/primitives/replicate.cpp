#include <braid/parallel/replicate.hpp>

#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/nn/internal/marks.hpp>
#include <braid/parallel/internal/replicated_parameters.hpp>

#include "primitives/broadcast.hpp"

namespace braid::parallel::detail {

std::vector<std::vector<Tensor>> replicate_leaves(const tree::Flat& flat,
                                                  std::span<const Device> devices,
                                                  const Replication& how) {
  if (devices.empty()) throw ArgumentError("replicate: expected at least one device, got none");
  if (!how.virtual_replicas) check_devices("replicate", devices);
  constexpr std::size_t kNone = ~std::size_t{0};
  const std::vector<std::size_t> first = flat.first_of();
  // the defined tensors that are copied, each once
  std::vector<Tensor> tensors;
  std::vector<std::size_t> at(flat.leaves.size(), kNone);  // leaf → tensor, or replicated parameter
  std::size_t parameters = 0;
  const auto is_replicated = [&](std::size_t k) {
    return how.parameters && flat.leaves[k].kind == tree::Kind::parameter;
  };
  for (std::size_t k = 0; k < flat.leaves.size(); ++k) {
    const tree::Leaf& leaf = flat.leaves[k];
    if (!leaf.tensor->defined()) continue;
    if (leaf.tensor->device() != devices[0])
      throw DeviceError(str("all tensors must be on devices[0]: expected ", devices[0], ", got '",
                            flat.path(leaf), "' on ", leaf.tensor->device()));
    if (first[k] == k && is_replicated(k)) {
      at[k] = parameters++;
    } else if (first[k] == k) {
      at[k] = tensors.size();
      // Contiguous like the copies elsewhere, so that a virtual replica's ops do not depend on its
      // device.
      tensors.push_back(how.virtual_replicas && leaf.kind == tree::Kind::parameter
                            ? leaf.tensor->contiguous()
                            : *leaf.tensor);
    } else {
      at[k] = at[first[k]];
    }
  }
  if (how.parameters) how.parameters->refresh(distinct_parameters(flat));
  std::vector<std::vector<Tensor>> copies = broadcast_tensors(tensors, devices,
                                                              {.cache = how.cache,
                                                               .bucket_bytes = how.bucket_bytes,
                                                               .fixed = how.virtual_replicas,
                                                               .take = how.take});
  // Each replica needs separate memory for in-place writes. The first one on a device uses the
  // copies themselves.
  for (std::size_t rank = 1; how.virtual_replicas && rank < devices.size(); ++rank) {
    if (std::find(devices.begin(), devices.begin() + static_cast<std::ptrdiff_t>(rank),
                  devices[rank]) == devices.begin() + static_cast<std::ptrdiff_t>(rank))
      continue;
    for (std::size_t k = 0; k < flat.leaves.size(); ++k)
      if (flat.leaves[k].kind != tree::Kind::parameter && at[k] != kNone && first[k] == k &&
          !copies[rank][at[k]].requires_grad())
        copies[rank][at[k]] = copies[rank][at[k]].clone();
  }
  std::vector<std::vector<Tensor>> leaves(devices.size(), std::vector<Tensor>(flat.leaves.size()));
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    for (std::size_t k = 0; k < tensors.size(); ++k) {
      copies[rank][k].id()->marks = tensors[k].id()->marks;
      nn::detail::set_mark(copies[rank][k], nn::detail::Mark::replica);
    }
    for (std::size_t k = 0; k < flat.leaves.size(); ++k)
      if (at[k] != kNone)
        leaves[rank][k] =
            is_replicated(k) ? how.parameters->parameters()[rank][at[k]] : copies[rank][at[k]];
  }
  return leaves;
}

}  // namespace braid::parallel::detail
