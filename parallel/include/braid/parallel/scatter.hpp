#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/devices.hpp>

namespace braid::parallel {

/// How the rows of a batch are shared out when nothing else is said.
enum class Split : std::uint8_t {
  /// ceil(size / n) rows each, the last one what is left, maybe fewer chunks than devices: 10 rows
  /// for 8 devices are five chunks of 2
  ceil,
  /// min(size, n) chunks whose sizes differ by 1 at most, the larger ones first: 10 rows for 8
  /// devices are 2, 2 and six times 1
  balanced
};

/// How a tree is cut. Of chunk_sizes and weights one at most.
struct ScatterOptions {
  int dim = 0;  ///< that tensors are cut along
  /// the same for each argument, which is an element of a tuple; those beyond the list are cut
  /// along `dim`
  std::vector<int> dims = {};
  Split split = Split::ceil;
  /// the rows themselves, for the first devices, or all
  std::vector<std::int64_t> chunk_sizes = {};
  /// one a device, for devices of unequal speed: rows in proportion, at least one each where there
  /// are enough
  std::vector<double> weights = {};
};

/// Rows of each chunk when `size` rows are cut for n devices. No rows give n empty chunks.
/// Throws ArgumentError unless size >= 0 and n >= 1; for chunk sizes `given chunk sizes don't sum
/// up to the tensor's size (sum(chunk_sizes) == 9, but expected 10)`, `Chunk size must be
/// positive`, or more of them than devices; for weights that are not n positive numbers.
[[nodiscard]] std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::size_t n,
                                                    const ScatterOptions& options = {});

namespace detail {
/// The leaves of every device's tree: [device][leaf].
[[nodiscard]] std::vector<std::vector<Tensor>> scatter_leaves(const tree::Flat& flat,
                                                              std::span<const Device> devices,
                                                              const ScatterOptions& options);
/// The batch in min(shards, size) chunks by the balanced rule, whatever the number of devices; each
/// device gets as many consecutive ones, or one more.
struct Shards {
  std::vector<std::vector<Tensor>> leaves;  ///< [shard][leaf]
  std::vector<Device> devices;              ///< of each shard
};
[[nodiscard]] Shards scatter_shards(const tree::Flat& flat, std::span<const Device> devices,
                                    std::size_t shards, const ScatterOptions& options);
/// The dim that a leaf is cut along: of its argument, where `dims` says.
[[nodiscard]] int dim_of(const tree::Flat& flat, const tree::Leaf& leaf, int dim,
                         std::span<const int> dims);
void assign_leaves(const tree::Flat& flat, std::span<const Tensor> leaves);

/// A copy of the tree with other tensors.
template <class T> T with_leaves(const T& like, std::span<const Tensor> leaves) {
  T copy = tree::share(like);
  assign_leaves(tree::flatten(copy), leaves);
  return copy;
}
/// A copy for each list of tensors.
template <class T>
std::vector<T> with_each(const T& like, const std::vector<std::vector<Tensor>>& lists) {
  std::vector<T> copies;
  for (const std::vector<Tensor>& leaves : lists) copies.push_back(with_leaves(like, leaves));
  return copies;
}
}  // namespace detail

/// Cuts every tensor of a tree along a dim and puts chunk i on devices[i].
/// Gives one tree of the same type for each device that gets rows, maybe fewer than devices.
///
/// Shapes    by chunk_sizes; all tensors must give the same number of chunks. Tensors without
///           dimensions go to every device as they are;
///           undefined ones stay so. A tree that has nothing to cut gives one tree, on devices[0].
///           Plain fields are copied into every tree.
/// Device    inputs on any; a chunk that is on its device already is a view, the others are copies
/// Gradient  the chunks' gradients, joined on the input's device, zeros for unused chunks; of a
///           tensor without dimensions the sum
/// Throws    ShapeError that names both leaves if their numbers of chunks differ; IndexError for a
///           wrong dim;
///           DeviceError for a device that does not exist or is there twice; ArgumentError for an
///           empty list of devices
template <class T>
[[nodiscard]] std::vector<T> scatter(const T& input, const DeviceList& devices,
                                     const ScatterOptions& options) {
  check_tree<T>();
  return detail::with_each(input,
                           detail::scatter_leaves(tree::flatten(input), devices.list(), options));
}
template <class T>
[[nodiscard]] std::vector<T> scatter(const T& input, const DeviceList& devices, int dim = 0) {
  return scatter(input, devices, ScatterOptions{.dim = dim});
}

}  // namespace braid::parallel
