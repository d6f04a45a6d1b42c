#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

// Other arrangements of the same elements. More of them are members of Tensor; cat, stack and split
// by sizes are in join.hpp. Views share x's memory, as PyTorch's do; all are differentiable, any
// number of times. Negative dims count from the end; wrong ones are an IndexError.
namespace braid {

/// Views of `size` elements along dim, the last one shorter if they do not fit. A dim of size 0
/// gives one empty view. Throws ArgumentError for size < 1 and, as chunk and unbind, for more than
/// 2^24 views.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
/// Views of ceil(n / chunks) elements along dim: at most `chunks` of them, perhaps fewer; of a dim
/// of size 0 `chunks` empty ones. Throws ArgumentError for chunks < 1.
[[nodiscard]] std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);
/// select(dim, i) for each i.
[[nodiscard]] std::vector<Tensor> unbind(const Tensor& x, std::int64_t dim = 0);

/// A view with dim source[i] at place destination[i], the others in their order. Throws ShapeError
/// for lists of two lengths or with a dim twice.
[[nodiscard]] Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
[[nodiscard]] Tensor movedim(const Tensor& x, std::int64_t source, std::int64_t destination);
/// transpose by another name.
[[nodiscard]] Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b);
/// A view with dim cut in `sizes`, whose product is its size; one of them may be -1. Throws
/// ShapeError.
[[nodiscard]] Tensor unflatten(const Tensor& x, std::int64_t dim, const Shape& sizes);
/// expand, view and reshape to the shape of another tensor.
[[nodiscard]] Tensor expand_as(const Tensor& x, const Tensor& other);
[[nodiscard]] Tensor view_as(const Tensor& x, const Tensor& other);
[[nodiscard]] Tensor reshape_as(const Tensor& x, const Tensor& other);
/// A view of x with its shape and x's broadcast together; expand with dims on the left. Throws
/// ShapeError.
[[nodiscard]] Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// A copy with the order of the dims' elements turned round; no dims: x's copy. Gradient: dy,
/// flipped. Throws ShapeError for a dim named twice.
[[nodiscard]] Tensor flip(const Tensor& x, const Shape& dims);
/// A copy with the elements of each dim moved on by its shift, those at the end coming back in
/// front. No dims: one shift, of the flattened tensor. Gradient: dy, rolled back. Throws ShapeError
/// for lists of two lengths.
[[nodiscard]] Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims = {});
/// x side by side with itself, times[d] times along dim d; more numbers than x has dims add dims on
/// the left. Gradient: dy summed over the copies. Throws ShapeError for fewer numbers than dims,
/// ArgumentError for a negative one.
[[nodiscard]] Tensor repeat(const Tensor& x, const Shape& times);
/// Each element `times` times after itself along dim; without a dim, of the flattened tensor.
/// Gradient: dy summed over the copies. Throws ArgumentError for times < 0.
[[nodiscard]] Tensor repeat_interleave(const Tensor& x, std::int64_t times,
                                       std::optional<std::int64_t> dim = {});

/// What stands around the elements that pad keeps.
enum class PadMode : std::uint8_t {
  constant,   ///< one number
  reflect,    ///< the elements mirrored at the first and last one, which are not repeated
  replicate,  ///< the first and last element
  circular    ///< the other end's elements
};
/// x with elements before and after: `sizes` holds two numbers a dim, from the last dim on, as
/// PyTorch's pad. With `constant` negative numbers cut elements off.
///
/// Shapes    at most two numbers a dim, an even number of them; reflect needs fewer than the dim
///           has, circular not more. (PyTorch pads no batches and channels with the last three
///           modes; here any dims.)
/// Types     all; value is what the dtype holds of it
/// Gradient  dy where the elements went, summed over repeated ones
/// Throws    ShapeError, DTypeError for a value that the dtype cannot hold
[[nodiscard]] Tensor pad(const Tensor& x, const Shape& sizes, PadMode mode = PadMode::constant,
                         const Scalar& value = 0);

/// The elements on and below (above) the diagonal that lies `diagonal` above the main one, of each
/// of the matrices [.., m, n]; 0 elsewhere. Gradient: the same part of dy. Throws ShapeError for
/// fewer than two dims.
[[nodiscard]] Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
[[nodiscard]] Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// A view of the diagonal `offset` above the main one of the matrices that dims a and b make; it
/// becomes the last dim.
/// Throws ShapeError for equal dims and for fewer than two.
[[nodiscard]] Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t a = 0,
                              std::int64_t b = 1);
/// The matrix with a vector on its diagonal; of a matrix, its diagonal. Throws ShapeError for
/// another rank.
[[nodiscard]] Tensor diag(const Tensor& x, std::int64_t offset = 0);

}  // namespace braid
