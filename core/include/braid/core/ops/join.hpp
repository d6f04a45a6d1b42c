#pragma once
#include <optional>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid {

/// Concatenates tensors along an existing dim. Dtypes are promoted (braid::promote), as in PyTorch.
/// Throws DeviceError unless all are on one device, ShapeError for scalars and unless all other
/// sizes are equal, ArgumentError for an empty list. Gradient: the slices of dy.
[[nodiscard]] Tensor cat(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor cat(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);
/// Concatenates tensors of one shape along a new dim. Throws as cat.
[[nodiscard]] Tensor stack(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor stack(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);
/// Views of sizes[0], sizes[1], … elements along dim. Throws ShapeError unless they sum to its
/// size.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes,
                                        std::int64_t dim = 0);

/// Slices of x along dim by an int64 index of rank 1; negative indices count from the end. Returns
/// a copy. Gradient: slices of dy added to the rows they came from, in the order of the index.
/// Throws IndexError for an index out of range, DTypeError unless the index is int64.
[[nodiscard]] Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// Rows of a table, selected by index. The arguments are in ATen's order; PyTorch's F.embedding has
/// the index first, which throws DTypeError here. Shapes: weight [rows, width], index [..] int64 →
/// [.., width]. Gradient: to the whole weight (not sparse); none to row padding_idx (a negative one
/// counts from the end). Throws IndexError for an index outside [0, rows) and a padding_idx outside
/// [-rows, rows); DTypeError, ShapeError, DeviceError.
[[nodiscard]] Tensor embedding(const Tensor& weight, const Tensor& index,
                               std::optional<std::int64_t> padding_idx = {});

}  // namespace braid
