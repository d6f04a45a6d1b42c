#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/tree.hpp>
#include <braid/parallel/devices.hpp>

namespace braid::parallel {

/// How the rows of a batch are divided by default.
enum class Split : std::uint8_t {
  /// ceil(size / n) rows per chunk; the last chunk gets the rest. There may be fewer chunks than
  /// devices: 10 rows for 8 devices give five chunks of 2
  ceil,
  /// min(size, n) chunks whose sizes differ by at most 1, the larger ones first: 10 rows for 8
  /// devices give 2, 2 and six times 1
  balanced
};

/// How a tree is split. At most one of chunk_sizes and weights may be set.
struct ScatterOptions {
  int dim = 0;  ///< the dim along which tensors are split
  /// the same for each argument (element of a tuple); arguments beyond the list use `dim`
  std::vector<int> dims = {};
  Split split = Split::ceil;
  /// the number of rows of each chunk, for the first devices or all
  std::vector<std::int64_t> chunk_sizes = {};
  /// one per device, for devices of unequal speed: rows in proportion, at least one each if there
  /// are enough
  std::vector<double> weights = {};
};

/// Returns the rows of each chunk when `size` rows are split for n devices. 0 rows give n empty
/// chunks.
///
/// Throws    ArgumentError unless size >= 0 and n >= 1; for weights that are not n positive
///           numbers; and for wrong chunk sizes: `given chunk sizes don't sum up to the tensor's
///           size (sum(chunk_sizes) == 9, but expected 10)`, `Chunk size must be positive`, or more
///           of them than devices
///
///     parallel::chunk_sizes(10, 4);                                        // 3 3 3 1
///     parallel::chunk_sizes(10, 4, {.split = parallel::Split::balanced});  // 3 3 2 2
[[nodiscard]] std::vector<std::int64_t> chunk_sizes(std::int64_t size, std::size_t n,
                                                    const ScatterOptions& options = {});

namespace detail {
/// Returns the leaves of every device's tree: [device][leaf].
[[nodiscard]] std::vector<std::vector<Tensor>> scatter_leaves(const tree::Flat& flat,
                                                              std::span<const Device> devices,
                                                              const ScatterOptions& options);
/// The batch split into min(count, size) chunks by the balanced rule, for any number of devices; or
/// into chunks of these rows. Each device gets consecutive chunks; the numbers of chunks per device
/// differ by at most one.
struct VirtualReplicas {
  std::vector<std::vector<Tensor>> leaves;  ///< [virtual replica][leaf]
  std::vector<Device> devices;              ///< of each virtual replica
};
[[nodiscard]] VirtualReplicas scatter_to_virtual_replicas(const tree::Flat& flat,
                                                          std::span<const Device> devices,
                                                          std::size_t count,
                                                          const ScatterOptions& options,
                                                          std::span<const std::int64_t> rows = {});
/// Returns the dim along which a leaf is split: that of its argument if `dims` has it, else `dim`.
[[nodiscard]] int dim_of(const tree::Flat& flat, const tree::Leaf& leaf, int dim,
                         std::span<const int> dims);
void assign_leaves(const tree::Flat& flat, const std::vector<Tensor>& leaves);

/// Returns a copy of the tree with other tensors.
template <class T> T with_leaves(const T& like, const std::vector<Tensor>& leaves) {
  T copy = tree::share(like);
  assign_leaves(tree::flatten(copy), leaves);
  return copy;
}
/// Returns a copy of the tree for each list of tensors.
template <class T>
std::vector<T> with_each(const T& like, const std::vector<std::vector<Tensor>>& lists) {
  std::vector<T> copies;
  for (const std::vector<Tensor>& leaves : lists) copies.push_back(with_leaves(like, leaves));
  return copies;
}
}  // namespace detail

/// Splits every tensor of a tree along a dim and puts chunk i on devices[i]. Returns one tree of
/// the same type for each device that gets rows, possibly fewer than devices.
///
/// Shapes    by chunk_sizes; all tensors must give the same number of chunks. Tensors without
///           dimensions are copied to every device. Undefined tensors stay undefined. A tree
///           without tensors to split gives one tree, on devices[0]. Plain fields are copied into
///           every tree.
/// Device    inputs on any device; a chunk that is already on its device is a view, others are
///           copies
/// Gradient  the chunks' gradients, concatenated on the input's device, zeros for unused chunks;
///           for a tensor without dimensions the sum
/// Throws    ShapeError that names both leaves if their numbers of chunks differ; IndexError for a
///           wrong dim; DeviceError for a device that does not exist or is listed twice;
///           ArgumentError for an empty list of devices
///
///     const std::vector<Tensor> parts = parallel::scatter(x, devices());
///     const data::Labelled batch{images, labels};
///     const std::vector<data::Labelled> batches = parallel::scatter(batch, {"cuda:0", "cuda:1"});
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
