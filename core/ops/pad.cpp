// Padding: adds elements before and after the elements of a dim, or removes some.
#include <algorithm>
#include <vector>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/shape.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// Returns the size of a dim of size n after padding. Negative numbers remove elements. Throws
/// ShapeError if the size is negative or overflows.
std::int64_t padded_size(std::int64_t n, std::int64_t before, std::int64_t after, const Tensor& x,
                         const Shape& sizes) {
  std::int64_t size = 0;
  // INT64_MIN is not a valid size, and cannot be negated
  const bool extreme = before == INT64_MIN || after == INT64_MIN;
  if (extreme || __builtin_add_overflow(n, before, &size) ||
      __builtin_add_overflow(size, after, &size) || size < 0)
    throw ShapeError(
        str("pad: expected sizes that leave a dim >= 0 of ", x.shape(), ", got ", sizes));
  return size;
}

/// Pads with a constant. The gradient is the inner part of dy, computed by a pad with negative
/// sizes.
Tensor pad_constant(const Tensor& x, const Shape& sizes, const Scalar& value) {
  Shape shape = x.shape();
  const auto before = [&](int d) {
    return x.dim() - 1 - d < sizes.rank() / 2 ? sizes[2 * (x.dim() - 1 - d)] : 0;
  };
  const auto after = [&](int d) {
    return x.dim() - 1 - d < sizes.rank() / 2 ? sizes[2 * (x.dim() - 1 - d) + 1] : 0;
  };
  for (int d = 0; d < x.dim(); ++d) shape[d] = padded_size(shape[d], before(d), after(d), x, sizes);
  Tensor y = ops::filled(shape, ops::fill_value("pad", value, x.dtype()), x.dtype(), x.device());
  Tensor to = y, from = x.detach();
  for (int d = 0; d < x.dim(); ++d) {
    const std::int64_t skip = before(d) < 0 ? std::min(-before(d), x.shape()[d]) : 0,
                       drop = after(d) < 0 ? std::min(-after(d), x.shape()[d] - skip) : 0;
    const std::int64_t length = std::min(x.shape()[d] - skip - drop, shape[d]);
    from = from.narrow(d, skip, length);
    to = to.narrow(d, std::min(std::max<std::int64_t>(before(d), 0), shape[d] - length), length);
  }
  ops::copy_values(to, from);
  if (!needs_grad({x})) return y;
  Shape back = sizes;
  for (int i = 0; i < back.rank(); ++i) back[i] = -back[i];
  return record("pad", {x}, y, [back](const Tensor& dy) -> Grads { return {pad(dy, back)}; });
}

/// Returns the index of the element of n that position i repeats; i may be < 0 or >= n.
std::int64_t source(PadMode mode, std::int64_t i, std::int64_t n) {
  switch (mode) {
    case PadMode::reflect: return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    case PadMode::replicate: return std::clamp<std::int64_t>(i, 0, n - 1);
    default: return i < 0 ? i + n : i >= n ? i - n : i;
  }
}

Tensor pad_dim(const Tensor& x, int d, std::int64_t before, std::int64_t after, PadMode mode,
               const Shape& sizes) {
  const std::int64_t n = x.shape()[d], most = mode == PadMode::reflect    ? n - 1
                                              : mode == PadMode::circular ? n
                                              : n > 0                     ? INT64_MAX
                                                                          : 0;
  if (before < 0 || after < 0 || before > most || after > most)
    throw ShapeError(str("pad: expected sizes from 0 to ", std::max<std::int64_t>(most, 0),
                         " for dim ", d, " of ", x.shape(), ", got ", sizes));
  const std::int64_t size = padded_size(n, before, after, x, sizes);
  const Tensor index = make_tensor({size}, DType::int64, Device());
  auto* const at = static_cast<std::int64_t*>(index.id()->data());
  for (std::int64_t i = 0; i < size; ++i) at[i] = source(mode, i - before, n);
  return index_select(x, d, index.to(x.device()));
}

}  // namespace

Tensor pad(const Tensor& x, const Shape& sizes, PadMode mode, const Scalar& value) {
  if (sizes.rank() % 2 != 0 || sizes.rank() / 2 > x.dim())
    throw ShapeError(
        str("pad: expected two numbers for each of at most ", x.dim(), " dims, got ", sizes));
  if (mode == PadMode::constant) return pad_constant(x, sizes, value);
  Tensor y = x;
  for (int k = 0; k < sizes.rank() / 2; ++k)
    if (sizes[2 * k] != 0 || sizes[2 * k + 1] != 0)
      y = pad_dim(y, x.dim() - 1 - k, sizes[2 * k], sizes[2 * k + 1], mode, sizes);
  return y.id() == x.id() ? x.clone() : y;
}

}  // namespace braid
