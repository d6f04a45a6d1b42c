#pragma once
#include <optional>

#include <braid/core/tensor.hpp>

// Copies with the elements in another order, or repeated. All are differentiable, any number of
// times. Negative dims count from the end; invalid ones throw IndexError.
namespace braid {

/// A copy with the elements of the dims in reverse order; without dims, a plain copy.
///
/// Gradient  dy, flipped
/// Throws    ShapeError for a dim named twice
///
///     flip(arange(3), {0});  // 2 1 0
[[nodiscard]] Tensor flip(const Tensor& x, const IntList& dims);
/// A copy with the elements shifted along each dim; those shifted past the end reappear at the
/// front. Without dims: one shift, of the flattened tensor.
///
/// Gradient  dy, rolled back
/// Throws    ShapeError if the lists differ in length
///
///     roll(arange(4), 1);  // 3 0 1 2
[[nodiscard]] Tensor roll(const Tensor& x, const IntList& shifts, const IntList& dims = {});
/// A copy that repeats the whole of x, times[d] times along dim d. If there are more numbers than
/// dims, dims are added on the left.
///
/// Gradient  dy summed over the copies
/// Throws    ShapeError for fewer numbers than dims, ArgumentError for a negative one
///
///     repeat(arange(2), {2});           // 0 1 0 1
///     repeat_interleave(arange(2), 2);  // 0 0 1 1
[[nodiscard]] Tensor repeat(const Tensor& x, const IntList& times);
/// A copy that repeats each element `times` times along dim; without a dim, of the flattened
/// tensor.
///
/// Gradient  dy summed over the copies
/// Throws    ArgumentError for times < 0
[[nodiscard]] Tensor repeat_interleave(const Tensor& x, std::int64_t times,
                                       std::optional<std::int64_t> dim = {});

}  // namespace braid
