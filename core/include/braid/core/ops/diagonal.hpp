#pragma once
#include <braid/core/tensor.hpp>

// Diagonals and triangles of matrices. All are differentiable, any number of times.
namespace braid {

/// tril: the elements on and below a diagonal of each of the matrices [.., m, n], 0 elsewhere.
/// triu: those on and above it. The diagonal is the one that lies `diagonal` above the main one.
///
/// Gradient  the same part of dy
/// Throws    ShapeError for fewer than two dims
///
///     tril(ones({3, 3}));  // [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
[[nodiscard]] Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
[[nodiscard]] Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// A view of the diagonal that lies `offset` above the main one, in the matrices of dims a and b.
/// These two dims are removed; the diagonal becomes the last dim.
///
/// Throws    ShapeError for equal dims and for fewer than two dims
[[nodiscard]] Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t a = 0,
                              std::int64_t b = 1);
/// For a vector, the matrix with it on a diagonal; for a matrix, a copy of its diagonal.
///
/// Throws    ShapeError for another rank
[[nodiscard]] Tensor diag(const Tensor& x, std::int64_t offset = 0);

}  // namespace braid
