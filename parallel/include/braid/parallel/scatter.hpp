#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/devices.hpp>

namespace braid::parallel {

/// Rows of each chunk when `size` rows are cut for n devices: ceil(size / n) each, the last one what is left. There may be fewer chunks than devices:
/// 10 rows for 8 devices give five chunks of 2. No rows give n empty chunks. Throws ArgumentError unless size >= 0 and n >= 1.
[[nodiscard]] std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::size_t n);

namespace detail {
/// The leaves of every device's tree: [device][leaf].
[[nodiscard]] std::vector<std::vector<Tensor>> scatter_leaves(const tree::Flat& flat, std::span<const Device> devices, int dim);
void assign_leaves(const tree::Flat& flat, std::span<const Tensor> leaves);

/// A copy of the tree with other tensors.
template <class T>
T with_leaves(const T& like, std::span<const Tensor> leaves) {
  T copy = tree::share(like);
  assign_leaves(tree::flatten(copy), leaves);
  return copy;
}
}  // namespace detail

/// Cuts every tensor of a tree along `dim` and puts chunk i on devices[i].
/// Gives one tree of the same type for each device that gets rows, maybe fewer than devices.
///
/// Shapes    by chunk_sizes; all tensors must give the same number of chunks. Tensors without dimensions go to every device as they are;
///           undefined ones stay so. A tree that has nothing to cut gives one tree, on devices[0]. Plain fields are copied into every tree.
/// Device    inputs on any; a chunk that is on its device already is a view, the others are copies
/// Gradient  the chunks' gradients, joined on the input's device, zeros for unused chunks; of a tensor without dimensions the sum
/// Throws    ShapeError that names both leaves if their numbers of chunks differ; IndexError for a wrong dim;
///           DeviceError for a device that does not exist or is there twice; ArgumentError for an empty list of devices
template <class T>
[[nodiscard]] std::vector<T> scatter(const T& input, const DeviceList& devices, int dim = 0) {
  check_tree<T>();
  std::vector<T> parts;
  for (const std::vector<Tensor>& leaves : detail::scatter_leaves(tree::flatten(input), devices.list(), dim))
    parts.push_back(detail::with_leaves(input, leaves));
  return parts;
}

}  // namespace braid::parallel
