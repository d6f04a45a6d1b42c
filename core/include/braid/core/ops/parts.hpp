#pragma once
#include <tuple>
#include <vector>

#include <braid/core/tensor.hpp>

// Parts of tensors, and copies of tensors with some parts replaced. All are made of other ops, and
// are differentiable.
namespace braid {

/// Views of n / sections elements along dim; the first n % sections of them have one more.
///
/// Throws    ArgumentError for sections < 1, IndexError for a dim that does not exist
///
///     tensor_split(arange(7), 3);  // [0, 1, 2], [3, 4], [5, 6]
[[nodiscard]] std::vector<Tensor> tensor_split(const Tensor& x, std::int64_t sections,
                                               std::int64_t dim = 0);
/// The same, cut before each of the indices: `[: i0], [i0 : i1], …`.
[[nodiscard]] std::vector<Tensor> tensor_split(const Tensor& x, const IntList& indices,
                                               std::int64_t dim = 0);
/// Equal parts along dim 0 (vsplit), dim 1, or dim 0 of a vector (hsplit), and dim 2 (dsplit).
///
/// Throws    ShapeError for too few dims; ArgumentError if sections does not divide the size
[[nodiscard]] std::vector<Tensor> vsplit(const Tensor& x, std::int64_t sections);
[[nodiscard]] std::vector<Tensor> hsplit(const Tensor& x, std::int64_t sections);
[[nodiscard]] std::vector<Tensor> dsplit(const Tensor& x, std::int64_t sections);

/// x with the parts `index` (int64, one dim) along dim replaced: by those of source, or by a value.
/// Of equal indices one part is kept, which one is not defined.
///
/// Shapes    source as x, but index.numel() along dim
/// Gradient  of x: 0 in the replaced parts; of source: those parts
[[nodiscard]] Tensor index_copy(const Tensor& x, std::int64_t dim, const Tensor& index,
                                const Tensor& source);
[[nodiscard]] Tensor index_fill(const Tensor& x, std::int64_t dim, const Tensor& index,
                                const Scalar& value);
/// x with x.select(dim, index), x.slice(dim, start, end, step) or x.diagonal(…) replaced by source,
/// which has the shape of that part.
[[nodiscard]] Tensor select_scatter(const Tensor& x, const Tensor& source, std::int64_t dim,
                                    std::int64_t index);
[[nodiscard]] Tensor slice_scatter(const Tensor& x, const Tensor& source, std::int64_t dim = 0,
                                   std::optional<std::int64_t> start = {},
                                   std::optional<std::int64_t> end = {}, std::int64_t step = 1);
[[nodiscard]] Tensor diagonal_scatter(const Tensor& x, const Tensor& source,
                                      std::int64_t offset = 0, std::int64_t dim1 = 0,
                                      std::int64_t dim2 = 1);

/// The elements of x, seen as one vector, at an index of any shape.
[[nodiscard]] Tensor take_along_dim(const Tensor& x, const Tensor& index);
/// Turns by 90°, k times, from the first towards the second of two dims.
///
/// Throws    ArgumentError unless dims are two different ones
[[nodiscard]] Tensor rot90(const Tensor& x, std::int64_t k = 1, const IntList& dims = {0, 1});
/// The sum over the dims along which a tensor of this shape would be broadcast to x's.
///
/// Throws    ShapeError if it cannot be broadcast so
[[nodiscard]] Tensor sum_to_size(const Tensor& x, const Shape& shape);
/// nonzero(x) as one vector of indices for each dim; of a scalar, as if it had one element.
[[nodiscard]] std::vector<Tensor> nonzero_numpy(const Tensor& x);

}  // namespace braid
