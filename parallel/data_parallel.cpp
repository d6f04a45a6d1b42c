#include <braid/parallel/data_parallel.hpp>

#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>

namespace braid::parallel::detail {
namespace {

const char* kind_name(tree::Kind kind) {
  switch (kind) {
    case tree::Kind::parameter:
      return "parameter";
    case tree::Kind::buffer:
      return "buffer";
    case tree::Kind::tensor:
      break;
  }
  return "tensor";
}

}  // namespace

void RandomSplit::add(const tree::Flat& input) {
  RandomForward::Part part{parts_.size(), dim_, 0, 0};
  if (!parts_.empty()) part.first_row = parts_.back().first_row + parts_.back().rows;
  for (const tree::Leaf& leaf : input.leaves) {
    if (!leaf.tensor->defined()) continue;
    const int rank = leaf.tensor->dim(), dim = dim_ < 0 ? dim_ + rank : dim_;
    if (dim < 0 || dim >= rank) continue;
    part.rows = leaf.tensor->shape()[dim];
    break;
  }
  parts_.push_back(part);
}

RandomSplit::Scope::~Scope() {
  std::uint64_t most = split_.used_.load();
  while (most < forward_.used() && !split_.used_.compare_exchange_weak(most, forward_.used())) {
  }
}

void check_group(const char* op, std::span<const Device> devices, const DataParallelOptions& options) {
  check_devices(op, devices);
  if (options.output_device) (void)device_context(*options.output_device);  // throws for a device that does not exist
}

void check_placement(const tree::Flat& module, Device first) {
  for (const tree::Leaf& leaf : module.leaves)
    if (leaf.tensor->defined() && leaf.tensor->device() != first)
      throw DeviceError(str("module must have its parameters and buffers on device ", first, " (device_ids[0]) but found one of them on device: ",
                            leaf.tensor->device(), " (", kind_name(leaf.kind), " '", module.path(leaf), "')"));
}

bool all_on(const tree::Flat& flat, Device device) {
  for (const tree::Leaf& leaf : flat.leaves)
    if (leaf.tensor->defined() && leaf.tensor->device() != device) return false;
  return true;
}

void cannot_gather(const char* signature) {
  throw ArgumentError(
      str("gather: expected a tree of tensors from every replica, got ", braid::detail::short_type_name(signature), "; with one device any output is fine"));
}

}  // namespace braid::parallel::detail
