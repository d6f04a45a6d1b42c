#pragma once
#include <span>
#include <vector>

#include <braid/core/ops/diagonal.hpp>
#include <braid/core/ops/pad.hpp>
#include <braid/core/ops/rearrange.hpp>
#include <braid/core/tensor.hpp>

// Views: other arrangements of the same elements. More of them are members of Tensor; cat, stack
// and split by sizes are in join.hpp. Views share x's memory, as in PyTorch. All are
// differentiable, any number of times. Negative dims count from the end; invalid ones throw
// IndexError.
namespace braid {

/// Views of `size` elements along dim; the last one may be shorter. A dim of size 0 gives one empty
/// view.
///
/// Throws    ArgumentError for size < 1 and, as chunk and unbind do, for more than 2^24 views
///
///     for (const Tensor& part : split(x, 2)) print(part);
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim = 0);
/// Views of ceil(n / chunks) elements along dim, where n is its size; the last one may be shorter.
/// There are at most `chunks` of them. A dim of size 0 gives `chunks` empty ones.
///
/// Throws    ArgumentError for chunks < 1
[[nodiscard]] std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim = 0);
/// The views select(dim, i), for each i.
[[nodiscard]] std::vector<Tensor> unbind(const Tensor& x, std::int64_t dim = 0);

/// A view with dim source[i] moved to position destination[i]; the other dims keep their order.
///
/// Throws    ShapeError if the lists differ in length or name a dim twice
///
///     movedim(randn({2, 3, 4}), -1, 0);  // [4, 2, 3]
[[nodiscard]] Tensor movedim(const Tensor& x, const IntList& source, const IntList& destination);
[[nodiscard]] Tensor movedim(const Tensor& x, std::int64_t source, std::int64_t destination);
/// The same as transpose.
[[nodiscard]] Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b);
/// A view in which several dims, of the given sizes, replace dim. The product of the sizes must be
/// the size of dim; one of them may be -1.
///
/// Throws    ShapeError
[[nodiscard]] Tensor unflatten(const Tensor& x, std::int64_t dim, const Shape& sizes);
/// expand, view and reshape to the shape of another tensor.
[[nodiscard]] Tensor expand_as(const Tensor& x, const Tensor& other);
[[nodiscard]] Tensor view_as(const Tensor& x, const Tensor& other);
[[nodiscard]] Tensor reshape_as(const Tensor& x, const Tensor& other);
/// The members of Tensor with these names.
[[nodiscard]] inline Tensor reshape(const Tensor& x, const Shape& shape) {
  return x.reshape(shape);
}
[[nodiscard]] inline Tensor ravel(const Tensor& x) { return x.reshape(-1); }
[[nodiscard]] inline Tensor flatten(const Tensor& x, std::int64_t start = 0,
                                    std::int64_t end = -1) {
  return x.flatten(start, end);
}
[[nodiscard]] inline Tensor squeeze(const Tensor& x) { return x.squeeze(); }
[[nodiscard]] inline Tensor squeeze(const Tensor& x, std::int64_t dim) { return x.squeeze(dim); }
[[nodiscard]] inline Tensor unsqueeze(const Tensor& x, std::int64_t dim) {
  return x.unsqueeze(dim);
}
[[nodiscard]] inline Tensor transpose(const Tensor& x, std::int64_t a, std::int64_t b) {
  return x.transpose(a, b);
}
[[nodiscard]] inline Tensor t(const Tensor& x) { return x.t(); }
[[nodiscard]] inline Tensor permute(const Tensor& x, const IntList& dims) {
  return x.permute(dims);
}
[[nodiscard]] inline Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index) {
  return x.select(dim, index);
}
[[nodiscard]] inline Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start,
                                   std::int64_t length) {
  return x.narrow(dim, start, length);
}
[[nodiscard]] inline Tensor clone(const Tensor& x) { return x.clone(); }
[[nodiscard]] inline Tensor detach(const Tensor& x) { return x.detach(); }
[[nodiscard]] inline std::int64_t numel(const Tensor& x) { return x.numel(); }
[[nodiscard]] inline bool is_floating_point(const Tensor& x) { return x.is_floating_point(); }

/// The same as x.expand(shape): a view, with new dims on the left.
///
/// Throws    ShapeError unless x broadcasts to the shape
[[nodiscard]] Tensor broadcast_to(const Tensor& x, const Shape& shape);

}  // namespace braid
