#pragma once
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>

// Other arrangements of the same elements. More of them are members of Tensor; cat, stack and split
// by sizes are in join.hpp. Views share x's memory, as in PyTorch. All are differentiable, any
// number of times. Negative dims count from the end; invalid ones throw IndexError.
namespace braid {

/// Views of `size` elements along dim; the last one may be shorter. A dim of size 0 gives one empty
/// view. Throws ArgumentError for size < 1 and, as chunk and unbind do, for more than 2^24 views.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
/// Views of ceil(n / chunks) elements along dim, where n is its size; the last one may be shorter.
/// There are at most `chunks` of them. A dim of size 0 gives `chunks` empty ones. Throws
/// ArgumentError for chunks < 1.
[[nodiscard]] std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);
/// The views select(dim, i), for each i.
[[nodiscard]] std::vector<Tensor> unbind(const Tensor& x, std::int64_t dim = 0);

/// A view with dim source[i] moved to position destination[i]; the other dims keep their order.
/// Throws ShapeError if the lists differ in length or name a dim twice.
[[nodiscard]] Tensor movedim(const Tensor& x, const Shape& source, const Shape& destination);
[[nodiscard]] Tensor movedim(const Tensor& x, std::int64_t source, std::int64_t destination);
/// The same as transpose.
[[nodiscard]] Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b);
/// A view in which several dims, of the given sizes, replace dim. The product of the sizes must be
/// the size of dim; one of them may be -1. Throws ShapeError.
[[nodiscard]] Tensor unflatten(const Tensor& x, std::int64_t dim, const Shape& sizes);
/// expand, view and reshape to the shape of another tensor.
[[nodiscard]] Tensor expand_as(const Tensor& x, const Tensor& other);
[[nodiscard]] Tensor view_as(const Tensor& x, const Tensor& other);
[[nodiscard]] Tensor reshape_as(const Tensor& x, const Tensor& other);
/// The same as x.expand(shape): a view, with new dims on the left. Throws ShapeError unless x
/// broadcasts to the shape.
[[nodiscard]] Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// A copy with the elements of the dims in reverse order; without dims, a plain copy. Gradient: dy,
/// flipped. Throws ShapeError for a dim named twice.
[[nodiscard]] Tensor flip(const Tensor& x, const Shape& dims);
/// A copy with the elements shifted along each dim; those shifted past the end reappear at the
/// front. Without dims: one shift, of the flattened tensor. Gradient: dy, rolled back. Throws
/// ShapeError if the lists differ in length.
[[nodiscard]] Tensor roll(const Tensor& x, const Shape& shifts, const Shape& dims = {});
/// A copy that repeats the whole of x, times[d] times along dim d. If there are more numbers than
/// dims, dims are added on the left. Gradient: dy summed over the copies. Throws ShapeError for
/// fewer numbers than dims, ArgumentError for a negative one.
[[nodiscard]] Tensor repeat(const Tensor& x, const Shape& times);
/// A copy that repeats each element `times` times along dim; without a dim, of the flattened
/// tensor. Gradient: dy summed over the copies. Throws ArgumentError for times < 0.
[[nodiscard]] Tensor repeat_interleave(const Tensor& x, std::int64_t times,
                                       std::optional<std::int64_t> dim = {});

/// What pad adds around x.
enum class PadMode : std::uint8_t {
  constant,   ///< one value
  reflect,    ///< the elements mirrored at the first and last one, which are not repeated
  replicate,  ///< the first and last element, repeated
  circular    ///< the elements of the opposite end
};
/// x with elements added before and after. `sizes` holds two numbers per dim, beginning with the
/// last dim, as in PyTorch's pad. With `constant`, negative numbers remove elements.
///
/// Shapes    an even number of sizes, at most two per dim. In the last three modes no size may be
///           negative; for reflect they must also be smaller than the dim, for circular not larger
///           than it. (PyTorch does not pad batches and channels in the last three modes; here any
///           dim can be padded.)
/// Types     all; value is converted to x's dtype
/// Gradient  dy at the positions of x's elements, summed where they are repeated
/// Throws    ShapeError, DTypeError for a value that the dtype cannot hold
[[nodiscard]] Tensor pad(const Tensor& x, const Shape& sizes, PadMode mode = PadMode::constant,
                         const Scalar& value = 0);

/// tril: the elements on and below a diagonal of each of the matrices [.., m, n], 0 elsewhere.
/// triu: those on and above it. The diagonal is the one that lies `diagonal` above the main one.
/// Gradient: the same part of dy. Throws ShapeError for fewer than two dims.
[[nodiscard]] Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
[[nodiscard]] Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// A view of the diagonal that lies `offset` above the main one, in the matrices of dims a and b.
/// These two dims are removed; the diagonal becomes the last dim. Throws ShapeError for equal dims
/// and for fewer than two dims.
[[nodiscard]] Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t a = 0,
                              std::int64_t b = 1);
/// For a vector, the matrix with it on a diagonal; for a matrix, its diagonal. Throws ShapeError
/// for another rank.
[[nodiscard]] Tensor diag(const Tensor& x, std::int64_t offset = 0);

}  // namespace braid
