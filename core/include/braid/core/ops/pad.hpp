#pragma once
#include <cstdint>

#include <braid/core/tensor.hpp>

namespace braid {

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
///
///     pad(x, {1, 2});                          // the last dim: 1 element before, 2 after
///     pad(x, {1, 1, 2, 2}, PadMode::reflect);  // 1 around the last dim, 2 around the one before
///     pad(x, {0, -1});                         // without the last element
[[nodiscard]] Tensor pad(const Tensor& x, const IntList& sizes, PadMode mode = PadMode::constant,
                         const Scalar& value = 0);

}  // namespace braid
