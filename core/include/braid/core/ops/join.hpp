#pragma once
#include <span>
#include <vector>

#include <braid/core/ops/index.hpp>  // so that this header declares index_select too
#include <braid/core/tensor.hpp>

namespace braid {

/// Concatenates tensors along an existing dim. Dtypes are promoted (braid::promote), as in PyTorch.
///
/// Gradient  the slices of dy
/// Throws    DeviceError unless all are on one device, ShapeError for scalars and unless all other
///           sizes are equal, ArgumentError for an empty list
///
///     cat({ones({2, 3}), zeros({2, 1})}, 1);  // [2, 4]
[[nodiscard]] Tensor cat(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor cat(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);
/// Concatenates tensors of one shape along a new dim.
///
/// Throws    as cat
///
///     stack({ones({3}), zeros({3})});  // [2, 3]
[[nodiscard]] Tensor stack(std::span<const Tensor> tensors, std::int64_t dim = 0);
[[nodiscard]] Tensor stack(std::initializer_list<Tensor> tensors, std::int64_t dim = 0);
/// Views of sizes[0], sizes[1], … elements along dim.
///
/// Throws    ShapeError unless they sum to its size
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, const IntList& sizes,
                                        std::int64_t dim = 0);

}  // namespace braid
