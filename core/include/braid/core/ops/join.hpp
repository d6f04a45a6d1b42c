#pragma once
#include <optional>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

namespace braid {

/// Joins tensors along an existing dim. Dtypes are promoted (braid::promote), as PyTorch's are; one
/// device (else DeviceError), equal other sizes (else ShapeError). Empty list: ArgumentError.
/// Gradient: the slices of dy.
[[nodiscard]] Tensor cat(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor cat(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);
/// Joins tensors of one shape along a new dim.
[[nodiscard]] Tensor stack(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor stack(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);
/// Views of `sizes` elements along dim, which must sum to its size.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes,
                                        std::int64_t dim = 0);

/// Slices of x along dim by an int64 index of rank 1; negative indices count from the end. A copy.
/// Gradient: slices of dy added to the rows they came from, in order. Throws IndexError for an
/// index out of range, DTypeError unless the index is int64.
[[nodiscard]] Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// Rows of a table, in ATen's order of arguments; PyTorch's F.embedding has the index first, which
/// is a DTypeError here. Shapes: weight [rows, width], index [..] int64 → [.., width]. Gradient: to
/// the weight, dense; none to row padding_idx (negative: counted from the end). Throws IndexError
/// for an index outside [0, rows) and a padding_idx outside [-rows, rows); DTypeError, ShapeError,
/// DeviceError.
[[nodiscard]] Tensor embedding(const Tensor& weight, const Tensor& index,
                               std::optional<std::int64_t> padding_idx = {});

}  // namespace braid
