#include <braid/parallel/scatter.hpp>

#include <braid/core/error.hpp>

#include "primitives/pieces.hpp"

namespace braid::parallel {

std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::size_t n) {
  if (size < 0 || n < 1) throw ArgumentError(str("chunk_sizes: expected size >= 0 and n >= 1, got size ", size, " and n ", n));
  if (size == 0) return std::vector<std::int64_t>(n, 0);
  const auto devices = static_cast<std::int64_t>(n);
  const std::int64_t step = size / devices + (size % devices != 0);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < size; at += sizes.back()) sizes.push_back(std::min(step, size - at));
  return sizes;
}

namespace detail {
namespace {

std::string said(const tree::Flat& flat, const tree::Leaf& leaf, int dim, std::size_t chunks) {
  const std::string path = flat.path(leaf);
  return str(chunks, " for '", path.empty() ? "input" : path, "' (size ", leaf.tensor->size(dim), ")");
}

}  // namespace

std::vector<std::vector<Tensor>> scatter_leaves(const tree::Flat& flat, std::span<const Device> devices, int dim) {
  if (devices.empty()) throw ArgumentError("scatter: expected at least one device, got none");
  check_devices("scatter", devices);
  // How many chunks: what all tensors with dimensions agree on.
  std::vector<std::vector<std::int64_t>> sizes(flat.leaves.size());
  const tree::Leaf* decides = nullptr;
  std::size_t chunks = 1;
  for (std::size_t k = 0; k < flat.leaves.size(); ++k) {
    const tree::Leaf& leaf = flat.leaves[k];
    if (!leaf.tensor->defined() || leaf.tensor->dim() == 0) continue;
    sizes[k] = chunk_sizes(leaf.tensor->shape()[wrap_dim("scatter", dim, leaf.tensor->dim())], devices.size());
    if (!decides) decides = &leaf, chunks = sizes[k].size();
    if (sizes[k].size() != chunks)
      throw ShapeError(str("scatter: expected the same number of chunks along dim ", dim, " over ", devices.size(), " devices for all tensors, got ",
                           said(flat, *decides, dim, chunks), " and ", said(flat, leaf, dim, sizes[k].size())));
  }
  const std::span<const Device> used = devices.first(chunks);
  const std::vector<std::size_t> first = flat.first_of();
  std::vector<std::vector<Tensor>> parts(chunks, std::vector<Tensor>(flat.leaves.size()));
  for (std::size_t k = 0; k < flat.leaves.size(); ++k) {
    const Tensor& x = *flat.leaves[k].tensor;
    if (!x.defined()) continue;
    if (first[k] != k) {  // the same tensor again
      for (auto& part : parts) part[k] = part[first[k]];
    } else if (x.dim() == 0 || chunks == 1) {
      for (std::size_t i = 0; i < chunks; ++i) parts[i][k] = x.to(used[i]);
    } else {
      std::vector<Tensor> pieces = cut(x, {wrap_dim("scatter", dim, x.dim()), false, std::move(sizes[k]), {used.begin(), used.end()}});
      for (std::size_t i = 0; i < chunks; ++i) parts[i][k] = std::move(pieces[i]);
    }
  }
  return parts;
}

void assign_leaves(const tree::Flat& flat, std::span<const Tensor> leaves) {
  if (flat.leaves.size() != leaves.size()) throw InternalError(str("assign_leaves: expected ", flat.leaves.size(), " tensors, got ", leaves.size()));
  for (std::size_t k = 0; k < leaves.size(); ++k) *flat.leaves[k].tensor = leaves[k];
}

}  // namespace detail
}  // namespace braid::parallel
