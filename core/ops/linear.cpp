// Linear layers: products with a bias and an activation, and their fused gradients.
#include <braid/core/ops/linear.hpp>

#include <array>
#include <span>
#include <tuple>
#include <utility>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>

#include "matmul.hpp"

namespace braid {
namespace {

/// Returns {dyᵀ x, Σ_rows dy}, neither of them empty, from one pass over dy. Recorded.
std::pair<Tensor, Tensor> weight_and_bias_grads(const Tensor& dy, const Tensor& x) {
  const ops::Product made("linear_backward", dy, true, x, false, {}, Activation::none, true);
  made.launch();
  if (!needs_grad({dy, x})) return {made.result(), made.sum_a()};
  const std::array<Tensor, 2> inputs{dy, x}, outputs{made.result(), made.sum_a()};
  record_many("linear_backward", inputs, outputs, dy.device(),
              [sdy = SavedTensor(dy), sx = SavedTensor(x)](std::span<const Tensor> g,
                                                           Needs needs) -> Grads {
                Tensor ddy, dx;
                if (needs[0])
                  ddy = g[0].defined() ? linear(sx.get(), g[0], g[1])
                                       : g[1].unsqueeze(0).expand(sdy.get().shape());
                if (needs[1] && g[0].defined())
                  dx = ops::recorded_product(sdy.get(), false, g[0], false);
                return {ddy, dx};
              });
  return {outputs[0], outputs[1]};
}

/// Returns the gradients of z = x wᵀ + b. One pass over dz computes dW and db. dx and dW are
/// computed together, unless they have to be differentiated again.
Grads linear_grads(const Tensor& dz, const SavedTensor& saved_x, const SavedTensor& saved_weight,
                   Needs needs) {
  Tensor x, weight, dx, dw, db;
  if (needs[0]) weight = saved_weight.get();
  if (needs[1]) x = saved_x.get();
  const bool sums = needs[1] && needs[2] && dz.shape()[1] > 0 && x.shape()[1] > 0;
  if (needs[0] && needs[1] && dz.numel() > 0 && x.numel() > 0 && !needs_grad({dz, x, weight})) {
    const ops::Product input("linear_backward", dz, false, weight, false);
    const ops::Product other("linear_backward", dz, true, x, false, {}, Activation::none, sums);
    ops::Product::launch_pair(input, other);
    dx = input.result(), dw = other.result(), db = other.sum_a();
  } else {
    if (needs[0]) dx = ops::recorded_product(dz, false, weight, false);
    if (sums) std::tie(dw, db) = weight_and_bias_grads(dz, x);
    else if (needs[1]) dw = ops::recorded_product(dz, true, x, false);
  }
  if (needs[2] && !db.defined()) db = sum(dz, {0});
  return {std::move(dx), std::move(dw), std::move(db)};
}

/// Computes y = activation(x wᵀ + b) for a matrix x. Recorded.
Tensor linear_rows(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   Activation activation) {
  Tensor y = ops::product(op, x, false, weight, true, bias, activation);
  if (!needs_grad({x, weight, bias})) return y;
  if (activation == Activation::none)
    return record(
        op, {x, weight, bias}, y,
        [sx = SavedTensor(x), sw = SavedTensor(weight)](const Tensor& dy, Needs needs) -> Grads {
          return linear_grads(dy, sx, sw, needs);
        });
  return record(op, {x, weight, bias}, y,
                [sx = SavedTensor(x), sw = SavedTensor(weight), sy = SavedTensor::output(y)](
                    const Tensor& dy, Needs needs) -> Grads {
                  return linear_grads(ops::relu_backward(sy.get(), dy), sx, sw, needs);
                });
}

/// The same for x of any rank, whose leading dims become rows. Checks the operands.
Tensor linear_with(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   Activation activation) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return linear_with(op, low(x), low(weight), low(bias), activation);
  }
  ops::check_matmul(op, x, weight);
  if (weight.dim() != 2)
    throw ShapeError(str(op, ": expected weight [out, in], got ", weight.shape()));
  const std::int64_t in = weight.shape()[1], out = weight.shape()[0];
  if (x.dim() == 0 || x.shape().back() != in)
    throw ShapeError(
        str(op, ": expected x [.., ", in, "] for weight ", weight.shape(), ", got ", x.shape()));
  if (bias.defined()) {
    ops::check_device(op, x, bias);
    ops::check_dtype(op, x, bias);
    if (bias.shape() != Shape{out})
      throw ShapeError(str(op, ": expected bias [", out, "] for weight ", weight.shape(), ", got ",
                           bias.shape()));
  }
  if (x.dim() == 2) return linear_rows(op, x, weight, bias, activation);
  Shape shape = x.shape();
  shape[x.dim() - 1] = 1;
  const std::int64_t rows = shape.numel();
  shape[x.dim() - 1] = out;
  return linear_rows(op, x.reshape({rows, in}), weight, bias, activation).reshape(shape);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_with("linear", x, weight, bias, Activation::none);
}
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_with("linear_relu", x, weight, bias, Activation::relu);
}

}  // namespace braid
