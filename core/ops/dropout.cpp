#include "dropout.hpp"

#include <braid/core/internal/kernel_args/dropout.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "common.hpp"
#include "random_streams.hpp"

namespace braid {
namespace ops {

void check_probability(const char* op, const char* name, double p) {
  if (!(p >= 0 && p <= 1)) throw ArgumentError(str(op, ": expected 0 <= ", name, " <= 1, got ", p));
}

Tensor dropout_by(const Tensor& input, double p, const RandomKey& key) {
  const Tensor x = input.contiguous();
  Tensor y = make_tensor(x.shape(), x.dtype(), x.device());
  if (x.numel()) {
    DropoutArgs args{x.dtype(),
                     x.id()->data(),
                     y.id()->data(),
                     1,
                     1,
                     1,
                     key.first_row,
                     key.seed,
                     key.stream,
                     drop_threshold(p),
                     drop_scale(p),
                     shift_of("dropout", key)};
    for (int d = 0; d < x.dim(); ++d)
      (d < key.dim ? args.outer : d == key.dim ? args.rows : args.inner) *= x.shape()[d];
    launch("dropout", x.device(), &KernelTable::dropout, args);
  }
  if (!needs_grad({x})) return y;
  return record("dropout", {x}, y,
                [p, key](const Tensor& dy) -> Grads { return {dropout_by(dy, p, key)}; });
}

namespace {

Tensor drop_channels(const char* op, const Tensor& x, double p, bool training, int spatial) {
  check_floating(op, x);
  check_probability(op, "p", p);
  if (x.dim() != spatial + 1 && x.dim() != spatial + 2)
    throw ShapeError(
        str(op, ": expected x of rank ", spatial + 1, " or ", spatial + 2, ", got ", x.shape()));
  if (!training || p == 0) return x;
  Shape channels = x.shape();
  for (int d = x.dim() - spatial; d < x.dim(); ++d) channels[d] = 1;
  return x * dropout_by(filled(channels, 1, x.dtype(), x.device()), p, next_random_key(channels));
}

}  // namespace
}  // namespace ops

Tensor dropout(const Tensor& x, double p, bool training) {
  ops::check_floating("dropout", x);
  ops::check_probability("dropout", "p", p);
  if (!training || p == 0) return x;
  return ops::dropout_by(x, p, next_random_key(x.shape()));
}

Tensor dropout1d(const Tensor& x, double p, bool training) {
  return ops::drop_channels("dropout1d", x, p, training, 1);
}
Tensor dropout2d(const Tensor& x, double p, bool training) {
  return ops::drop_channels("dropout2d", x, p, training, 2);
}

}  // namespace braid
