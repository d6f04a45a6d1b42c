#include <braid/parallel/scatter.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <braid/core/error.hpp>

#include "primitives/broadcast.hpp"
#include "primitives/pieces.hpp"

namespace braid::parallel {

namespace {

std::vector<std::int64_t> by_ceil(std::int64_t size, std::int64_t n) {
  const std::int64_t step = size / n + (size % n != 0);
  std::vector<std::int64_t> sizes;
  for (std::int64_t at = 0; at < size; at += sizes.back())
    sizes.push_back(std::min(step, size - at));
  return sizes;
}

std::vector<std::int64_t> balanced(std::int64_t size, std::int64_t n) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(std::min(size, n)), size / n);
  for (std::int64_t i = 0; i < size % n; ++i) sizes[static_cast<std::size_t>(i)] = size / n + 1;
  return sizes;
}

/// Rows in proportion to the weights by the method of largest remainders: whole rows first, the
/// rest to the largest fractions. Then each chunk without rows gets one.
std::vector<std::int64_t> weighted(std::int64_t size, const std::vector<double>& weights) {
  double total = 0;
  for (const double weight : weights) total += weight;
  std::vector<std::int64_t> sizes;
  std::vector<std::pair<double, std::size_t>> fractions;
  std::int64_t left = size;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double share = static_cast<double>(size) * (weights[i] / total);
    sizes.push_back(std::min(left, static_cast<std::int64_t>(share)));
    fractions.emplace_back(share - static_cast<double>(sizes.back()), i);
    left -= sizes.back();
  }
  std::ranges::stable_sort(fractions,
                           [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t i = 0; left > 0; ++i, --left) ++sizes[fractions[i % fractions.size()].second];
  const auto n = static_cast<std::int64_t>(sizes.size());
  if (size < n) return std::vector<std::int64_t>(static_cast<std::size_t>(size), 1);
  for (std::int64_t& rows : sizes)
    if (rows == 0) --*std::ranges::max_element(sizes), rows = 1;
  return sizes;
}

void check(std::int64_t size, std::size_t n, const ScatterOptions& options) {
  if (size < 0 || n < 1)
    throw ArgumentError(
        str("chunk_sizes: expected size >= 0 and n >= 1, got size ", size, " and n ", n));
  if (!options.chunk_sizes.empty() && !options.weights.empty())
    throw ArgumentError("scatter: expected chunk sizes or weights, got both");
  if (options.chunk_sizes.size() > n)
    throw ArgumentError(str("scatter: expected at most ", n,
                            " chunk sizes, one for each device, got ", options.chunk_sizes.size()));
  if (!options.weights.empty() && options.weights.size() != n)
    throw ArgumentError(str("scatter: expected ", n, " weights, one for each device, got ",
                            options.weights.size()));
  for (const double weight : options.weights)
    if (!(weight > 0) || !std::isfinite(weight))
      throw ArgumentError(str("scatter: expected weights that are positive numbers, got ", weight));
  if (options.chunk_sizes.empty()) return;
  std::int64_t sum = 0;
  for (const std::int64_t rows : options.chunk_sizes) {
    if (rows <= 0) throw ArgumentError(str("Chunk size must be positive, got ", rows));
    if (__builtin_add_overflow(sum, rows, &sum))
      throw ArgumentError("scatter: the sum of the chunk sizes is too large");
  }
  if (sum != size)
    throw ArgumentError(
        str("given chunk sizes don't sum up to the tensor's size (sum(chunk_sizes) == ", sum,
            ", but expected ", size, ")"));
}

}  // namespace

std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::size_t n,
                                      const ScatterOptions& options) {
  check(size, n, options);
  if (!options.chunk_sizes.empty()) return options.chunk_sizes;
  if (size == 0) return std::vector<std::int64_t>(n, 0);
  if (!options.weights.empty()) return weighted(size, options.weights);
  const auto devices = static_cast<std::int64_t>(n);
  return options.split == Split::balanced ? balanced(size, devices) : by_ceil(size, devices);
}

namespace detail {
namespace {

std::string said(const tree::Flat& flat, const tree::Leaf& leaf, int dim, std::size_t chunks) {
  const std::string path = flat.path(leaf);
  return str(chunks, " for '", path.empty() ? "input" : path, "' (size ", leaf.tensor->size(dim),
             ")");
}

}  // namespace

int dim_of(const tree::Flat& flat, const tree::Leaf& leaf, int dim, std::span<const int> dims) {
  if (dims.empty()) return dim;
  tree::Name name = leaf.name;
  for (std::int32_t at = leaf.parent; at > 0; at = flat.nodes[static_cast<std::size_t>(at)].parent)
    name = flat.nodes[static_cast<std::size_t>(at)].name;
  const bool argument = leaf.parent >= 0 && flat.nodes.front().type->form == tree::Form::tuple &&
                        static_cast<std::size_t>(name.index) < dims.size();
  return argument ? dims[static_cast<std::size_t>(name.index)] : dim;
}

namespace {

/// How the tensors of a tree are split. All tensors with dimensions must give this number of
/// chunks.
struct Cut {
  std::size_t chunks = 1;
  std::vector<int> dims;                         // [leaf]
  std::vector<std::vector<std::int64_t>> sizes;  // likewise
};

Cut cut_for(const tree::Flat& flat, std::size_t n, const ScatterOptions& options,
            const char* what) {
  Cut cut;
  cut.dims.resize(flat.leaves.size());
  cut.sizes.resize(flat.leaves.size());
  std::size_t decides = flat.leaves.size();
  for (std::size_t k = 0; k < flat.leaves.size(); ++k) {
    const tree::Leaf& leaf = flat.leaves[k];
    if (!leaf.tensor->defined() || leaf.tensor->dim() == 0) continue;
    cut.dims[k] =
        wrap_dim("scatter", dim_of(flat, leaf, options.dim, options.dims), leaf.tensor->dim());
    cut.sizes[k] = chunk_sizes(leaf.tensor->shape()[cut.dims[k]], n, options);
    if (decides == flat.leaves.size()) decides = k, cut.chunks = cut.sizes[k].size();
    if (cut.sizes[k].size() != cut.chunks)
      throw ShapeError(str("scatter: expected the same number of chunks along dim ", cut.dims[k],
                           " over ", n, " ", what, " for all tensors, got ",
                           said(flat, flat.leaves[decides], cut.dims[decides], cut.chunks), " and ",
                           said(flat, leaf, cut.dims[k], cut.sizes[k].size())));
  }
  return cut;
}

/// Puts chunk i of every tensor on used[i]. `separate`: as in Pieces; also, a tensor without
/// dimensions is copied like weights.
std::vector<std::vector<Tensor>> place(const tree::Flat& flat, Cut how,
                                       std::span<const Device> used, bool separate) {
  const std::vector<std::size_t> first = flat.first_of();
  std::vector<std::vector<Tensor>> parts(how.chunks, std::vector<Tensor>(flat.leaves.size()));
  for (std::size_t k = 0; k < flat.leaves.size(); ++k) {
    const Tensor& x = *flat.leaves[k].tensor;
    if (!x.defined()) continue;
    std::vector<Tensor> pieces;
    if (first[k] != k && how.dims[k] == how.dims[first[k]]) {  // the same tensor again, split alike
      for (auto& part : parts) part[k] = part[first[k]];
      continue;
    }
    if (x.dim() == 0 && separate) {
      for (std::vector<Tensor>& copy :
           broadcast_tensors(std::vector<Tensor>{x.to(used.front())}, used, {.fixed = true}))
        pieces.push_back(std::move(copy.front()));
    } else if (x.dim() == 0 || how.chunks == 1) {
      for (std::size_t i = 0; i < how.chunks; ++i) pieces.push_back(x.to(used[i]));
    } else {
      pieces = cut(
          x, {how.dims[k], false, separate, std::move(how.sizes[k]), {used.begin(), used.end()}});
    }
    for (std::size_t i = 0; i < how.chunks; ++i) parts[i][k] = std::move(pieces[i]);
  }
  return parts;
}

}  // namespace

std::vector<std::vector<Tensor>> scatter_leaves(const tree::Flat& flat,
                                                std::span<const Device> devices,
                                                const ScatterOptions& options) {
  if (devices.empty()) throw ArgumentError("scatter: expected at least one device, got none");
  check_devices("scatter", devices);
  Cut how = cut_for(flat, devices.size(), options, "devices");
  const std::span<const Device> used = devices.first(how.chunks);
  return place(flat, std::move(how), used, false);
}

VirtualReplicas scatter_to_virtual_replicas(const tree::Flat& flat, std::span<const Device> devices,
                                            std::size_t count, const ScatterOptions& options,
                                            std::span<const std::int64_t> rows) {
  ScatterOptions rule{options.dim, options.dims, Split::balanced, {rows.begin(), rows.end()}, {}};
  Cut how = cut_for(flat, rows.empty() ? count : rows.size(), rule, "virtual replicas");
  VirtualReplicas result;
  const std::vector<std::int64_t> owned =
      balanced(static_cast<std::int64_t>(how.chunks), static_cast<std::int64_t>(devices.size()));
  for (std::size_t i = 0; i < owned.size(); ++i)
    result.devices.insert(result.devices.end(), static_cast<std::size_t>(owned[i]), devices[i]);
  result.leaves = place(flat, std::move(how), result.devices, true);
  return result;
}

void assign_leaves(const tree::Flat& flat, const std::vector<Tensor>& leaves) {
  if (flat.leaves.size() != leaves.size())
    throw InternalError(
        str("assign_leaves: expected ", flat.leaves.size(), " tensors, got ", leaves.size()));
  for (std::size_t k = 0; k < leaves.size(); ++k) *flat.leaves[k].tensor = leaves[k];
}

}  // namespace detail
}  // namespace braid::parallel
