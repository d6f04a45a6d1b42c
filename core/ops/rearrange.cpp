// Copies with rearranged elements: flip, roll, repeat, repeat_interleave.
#include <braid/core/ops/rearrange.hpp>

#include <algorithm>

#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/ops/join.hpp>

#include "common.hpp"

namespace braid {

Tensor flip(const Tensor& x, const IntList& dims) {
  const int rank = x.dim();
  bool turned[kMaxRank] = {};
  for (const std::int64_t dim : dims) {
    bool& one = turned[wrap_dim("flip", dim, rank)];
    if (one) throw ShapeError(str("flip: expected each dim once, got ", dims));
    one = true;
  }
  Tensor y = make_tensor(x.shape(), x.dtype(), x.device());
  if (y.numel()) {
    // Reads flipped dims from their end, with negative strides. All offsets are within x.
    Shape strides = x.strides();
    std::int64_t first = 0;
    for (int d = 0; d < rank; ++d) {
      if (!turned[d]) continue;
      first += (x.shape()[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
    CopyArgs args{x.dtype(),
                  x.dtype(),
                  y.id()->data(),
                  static_cast<const char*>(x.id()->data()) +
                      first * static_cast<std::int64_t>(size_of(x.dtype())),
                  {}};
    ops::fill_loop(args.loop, x.shape(), {&y.strides(), &strides}, 0);
    launch("flip", x.device(), &KernelTable::copy, args);
  }
  if (!needs_grad({x})) return y;
  return record("flip", {x}, y, [turned = Shape(dims.span())](const Tensor& dy) -> Grads {
    return {flip(dy, turned)};
  });
}

Tensor roll(const Tensor& x, const IntList& shifts, const IntList& dims) {
  if (dims.empty() && shifts.size() == 1)
    return x.dim() == 0 ? x.clone() : roll(x.reshape({-1}), shifts, {0}).reshape(x.shape());
  if (dims.size() != shifts.size())
    throw ShapeError(
        str("roll: expected a shift for each dim, got shifts ", shifts, " and dims ", dims));
  Tensor y = x;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const int d = wrap_dim("roll", dims[i], x.dim());
    const std::int64_t n = x.dim() == 0 ? 1 : x.shape()[d];
    if (n < 2) continue;
    const std::int64_t by = (shifts[i] % n + n) % n;
    if (by != 0) y = cat({y.narrow(d, n - by, by), y.narrow(d, 0, n - by)}, d);
  }
  return y.id() == x.id() ? x.clone() : y;
}

namespace {

/// Repeats dim d: as a whole ([a, b] → [a, b, a, b]), or with `each` element by element ([a, b] →
/// [a, a, b, b]).
Tensor repeated(const Tensor& x, int d, std::int64_t times, bool each) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < d; ++i) outer *= x.shape()[i];
  for (int i = d + 1; i < x.dim(); ++i) inner *= x.shape()[i];
  const std::int64_t n = x.shape()[d];
  Shape shape = x.shape();
  if (__builtin_mul_overflow(n, times, &shape[d]))
    throw ShapeError(str("repeat: expected at most 2^63 - 1 elements, got ", n, " times ", times));
  const Tensor rows = each ? x.reshape({outer * n, 1, inner}) : x.reshape({outer, 1, n * inner});
  return rows.expand({rows.shape()[0], times, rows.shape()[2]}).reshape(shape);
}

}  // namespace

Tensor repeat(const Tensor& x, const IntList& times) {
  const int count = static_cast<int>(std::min<std::size_t>(times.size(), kMaxRank + 1)),
            extra = count - x.dim();
  if (extra < 0)
    throw ShapeError(
        str("repeat: expected at least ", x.dim(), " numbers for ", x.shape(), ", got ", times));
  Shape shape = x.shape();
  for (int i = 0; i < extra; ++i) shape.insert(0, 1);
  Tensor y = x.reshape(shape);
  for (int d = count - 1; d >= 0; --d) {
    const std::int64_t n = times[static_cast<std::size_t>(d)];
    if (n < 0) throw ArgumentError(str("repeat: expected numbers >= 0, got ", times));
    if (n != 1) y = repeated(y, d, n, false);
  }
  return ops::own_copy(y, x);
}

Tensor repeat_interleave(const Tensor& x, std::int64_t times, std::optional<std::int64_t> dim) {
  const int d = wrap_dim("repeat_interleave", dim.value_or(0), dim ? x.dim() : 1);
  if (times < 0) throw ArgumentError(str("repeat_interleave: expected times >= 0, got ", times));
  return ops::own_copy(repeated(dim && x.dim() > 0 ? x : x.reshape({-1}), d, times, true), x);
}

}  // namespace braid
