#pragma once
#include <span>
#include <string_view>
#include <vector>

#include <braid/core/ops/composed.hpp>
#include <braid/core/ops/create.hpp>

// Functions of PyTorch that put tensors side by side, or their elements in another order: several
// ops in a row. Dtypes, gradients and errors that are not named follow from those that they call.
namespace braid {

/// All tensors, as views broadcast to their common shape.
///
/// Throws    ShapeError if there is none
[[nodiscard]] std::vector<Tensor> broadcast_tensors(std::span<const Tensor> list);
[[nodiscard]] std::vector<Tensor> broadcast_tensors(std::initializer_list<Tensor> list);
/// The coordinates of the points of a grid: for n vectors, n views of rank n. With "ij" vector i
/// varies along dim i; with "xy" the first two dims are exchanged.
///
/// Throws    ShapeError for a tensor of more than one dim; ArgumentError for no tensor, and for
///           another indexing
///
///     const auto grid = meshgrid({arange(2), arange(3)});  // two of shape [2, 3]
[[nodiscard]] std::vector<Tensor> meshgrid(std::span<const Tensor> list,
                                           std::string_view indexing = "ij");
[[nodiscard]] std::vector<Tensor> meshgrid(std::initializer_list<Tensor> list,
                                           std::string_view indexing = "ij");
/// All combinations of one element of each vector, one in a row: [product of the sizes, n]; of one
/// vector the vector.
[[nodiscard]] Tensor cartesian_prod(std::span<const Tensor> list);
[[nodiscard]] Tensor cartesian_prod(std::initializer_list<Tensor> list);
/// A matrix of zeros with these matrices along its diagonal; a vector is a row.
[[nodiscard]] Tensor block_diag(std::span<const Tensor> list);
[[nodiscard]] Tensor block_diag(std::initializer_list<Tensor> list);
/// Vectors as the columns of a matrix; matrices side by side.
[[nodiscard]] Tensor column_stack(std::span<const Tensor> list);
[[nodiscard]] Tensor column_stack(std::initializer_list<Tensor> list);
/// vstack.
[[nodiscard]] Tensor row_stack(std::span<const Tensor> list);
[[nodiscard]] Tensor row_stack(std::initializer_list<Tensor> list);
/// Along dim 2, of tensors made by atleast_3d.
[[nodiscard]] Tensor dstack(std::span<const Tensor> list);
[[nodiscard]] Tensor dstack(std::initializer_list<Tensor> list);
/// A vector becomes [1, n, 1], a matrix [m, n, 1].
[[nodiscard]] Tensor atleast_3d(const Tensor& x);

/// The rows and columns of the elements on and below (above) a diagonal of a matrix of this size:
/// int64 [2, count].
[[nodiscard]] Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const FactoryOptions& options = {});
[[nodiscard]] Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0,
                                  const FactoryOptions& options = {});

// The second form, as in ops/create.hpp.
template <detail::OptionsInLibTorchsForm O>
[[nodiscard]] Tensor tril_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset,
                                  const O& options) {
  return tril_indices(rows, columns, offset, detail::options_of(options));
}
template <detail::OptionsInLibTorchsForm O>
[[nodiscard]] Tensor triu_indices(std::int64_t rows, std::int64_t columns, std::int64_t offset,
                                  const O& options) {
  return triu_indices(rows, columns, offset, detail::options_of(options));
}

/// [.., c r², h, w] → [.., c, h r, w r]: channels become pixels; and back. Both copy.
///
/// Throws    ShapeError unless the sizes are multiples; ArgumentError for r < 1
/// Source    Shi et al. 2016, arXiv:1609.05158
[[nodiscard]] Tensor pixel_shuffle(const Tensor& x, std::int64_t upscale_factor);
[[nodiscard]] Tensor pixel_unshuffle(const Tensor& x, std::int64_t downscale_factor);
/// [n, g c, ..]: a copy with the channels of the groups in turn.
///
/// Throws    ShapeError unless groups divides the channels; ArgumentError for groups < 1
/// Source    Zhang et al. 2018, arXiv:1707.01083
[[nodiscard]] Tensor channel_shuffle(const Tensor& x, std::int64_t groups);
/// pad with a constant.
[[nodiscard]] Tensor constant_pad_nd(const Tensor& x, const IntList& padding,
                                     const Scalar& value = 0);
/// The indices of the elements that are not 0, one tensor for each dim.
[[nodiscard]] std::vector<Tensor> where(const Tensor& condition);

}  // namespace braid
