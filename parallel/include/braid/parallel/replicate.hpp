#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/scatter.hpp>

namespace braid::parallel {

namespace detail {
/// The leaves of every replica: [device][leaf].
[[nodiscard]] std::vector<std::vector<Tensor>> replicate_leaves(const tree::Flat& flat, std::span<const Device> devices);
}  // namespace detail

/// A replica of the module for each device. The module must be on devices[0].
///
/// Replica 0 shares storage with the module, so that what it writes in place (statistics in buffers) stays; the others have copies, in one flat buffer for
/// every 10 MiB of a type. Parameters that are tied are copied once and tied in each replica; plain fields are copied.
/// The replicas' tensors are no leaves and are flagged `is_replica`; without gradient recording, and for tensors that require none, they have no history.
///
/// Gradient  sums over the replicas, in the fixed order of Communicator::reduce, on devices[0]; a parameter that no replica used gets none
/// Throws    DeviceError `all tensors must be on devices[0]`, or for a device that does not exist or is there twice;
///           ArgumentError for an empty list of devices
template <class M>
[[nodiscard]] std::vector<M> replicate(const M& module, const DeviceList& devices) {
  check_tree<M>();
  std::vector<M> replicas;
  const std::vector<std::vector<Tensor>> copies = detail::replicate_leaves(tree::flatten(module), devices.list());
  replicas.reserve(copies.size());
  for (const std::vector<Tensor>& leaves : copies) replicas.push_back(detail::with_leaves(module, leaves));
  return replicas;
}

}  // namespace braid::parallel
