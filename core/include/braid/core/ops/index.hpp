#pragma once
#include <optional>

#include <braid/core/ops/gather.hpp>
#include <braid/core/ops/masks.hpp>
#include <braid/core/tensor.hpp>

// Slices and rows by index. gather.hpp has the ops on single elements.
namespace braid {

/// Returns a copy of the slices of x along dim that an int64 index of rank 1 selects. Negative
/// indices count from the end. Of a scalar one index selects its element.
///
/// Gradient  each slice of dy is added to the slice of dx that it came from, in the order of the
///           index. On CUDA each sum is rounded once, and more than 256 slices are added in
///           another fixed order
/// Throws    IndexError for an index out of range; DTypeError unless the index is int64;
///           ShapeError; DeviceError
///
///     index_select(x, 0, tensor({0, 2}));  // rows 0 and 2; x[tensor({0, 2})] is the same
[[nodiscard]] Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index);
/// Returns the rows of a table that the index selects. The arguments are in ATen's order. PyTorch's
/// F.embedding has the index first; that order throws DTypeError here.
///
/// Shapes    weight [rows, width], index [..] int64 → [.., width]
/// Gradient  as index_select, to the whole weight (not sparse), except that row padding_idx gets
///           none. A negative padding_idx counts from the end
/// Throws    IndexError for an index outside [0, rows) or a padding_idx outside [-rows, rows);
///           DTypeError, ShapeError, DeviceError
[[nodiscard]] Tensor embedding(const Tensor& weight, const Tensor& index,
                               std::optional<std::int64_t> padding_idx = {});

}  // namespace braid
