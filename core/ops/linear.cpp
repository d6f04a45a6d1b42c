// Linear layers: products with a bias and an epilogue, and their fused gradients.
#include <braid/core/ops/linear.hpp>

#include <array>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/reduce.hpp>

#include "activation.hpp"
#include "autograd/derivative.hpp"
#include "matmul.hpp"

namespace braid {
namespace {

/// Returns {dyᵀ x, Σ_rows dy}, neither of them empty, from one pass over dy. Recorded.
std::pair<Tensor, Tensor> weight_and_bias_grads(const Tensor& dy, const Tensor& x) {
  const ops::Product made("linear_backward", dy, true, x, false, {}, true);
  made.launch();
  if (!needs_grad({dy, x})) return {made.result(), made.sum_a()};
  const std::array<Tensor, 2> inputs{dy, x}, outputs{made.result(), made.sum_a()};
  record_many("linear_backward", inputs, outputs, dy.device(),
              [sdy = ops::saved_for({x}, dy), sx = ops::saved_for({dy}, x), shape = dy.shape()](
                  std::span<const Tensor> g, Needs needs) -> Grads {
                Tensor ddy, dx;
                if (needs[0])
                  ddy = g[0].defined() ? linear(sx.get(), g[0], g[1])
                                       : g[1].unsqueeze(0).expand(shape);
                if (needs[1] && g[0].defined())
                  dx = ops::recorded_product(sdy.get(), false, g[0], false);
                return {ddy, dx};
              });
  return {outputs[0], outputs[1]};
}

/// The matrix of the rows of x, which may have leading dims.
Tensor rows_of(const Tensor& x) {
  const std::int64_t last = x.shape()[x.dim() - 1];
  if (x.dim() == 2) return x;
  Shape leading = x.shape();
  leading[x.dim() - 1] = 1;
  return x.reshape({leading.numel(), last});
}

/// True if rows_of(x) is a view.
bool has_rows(const Tensor& x) {
  std::int64_t next = 0;  // the stride of the dim outside of those before
  for (int d = x.dim() - 2; d >= 0; --d) {
    if (x.shape()[d] == 1) continue;
    if (next != 0 && x.strides()[d] != next) return false;
    next = x.strides()[d] * x.shape()[d];
  }
  return true;
}

/// The backward of y = epilogue(z), z = x wᵀ + b. `kept` is y for relu, and z for gelu, which also
/// needs x, w and b if its gradient is recorded.
struct LinearGradient {
  Epilogue epilogue;
  SavedTensor x, weight, bias, kept;

  Grads operator()(const Tensor& dy, Needs needs) const {
    Grads grads = of_linear(rows_of(gradient_of_z(dy)), dy.shape(), needs);
    if (epilogue == Epilogue::add) grads.push_back(dy);
    return grads;
  }

  [[nodiscard]] bool derivative(autograd::Derivative& to) const {
    switch (epilogue) {
      case Epilogue::relu: to.epilogue = Epilogue::relu_backward; break;
      case Epilogue::gelu: to.epilogue = Epilogue::gelu_backward; break;
      case Epilogue::gelu_tanh: to.epilogue = Epilogue::gelu_tanh_backward; break;
      default: return false;
    }
    to.saved = kept.get();
    return true;
  }

 private:
  [[nodiscard]] Tensor gradient_of_z(const Tensor& dy) const {
    if (epilogue == Epilogue::none || epilogue == Epilogue::add || autograd::has_derivative())
      return dy;
    if (epilogue == Epilogue::relu) return ops::relu_backward(kept.get(), dy);
    // a recorded gradient depends on z, so z has to be computed with its graph
    const Tensor z = grad_enabled() ? linear(x.get(), weight.get(), bias.get()) : kept.get();
    return ops::gelu_backward(z, dy, epilogue == Epilogue::gelu_tanh);
  }

  /// One pass over dz computes dW and db. dx and dW are computed together, unless they have to be
  /// differentiated again. dx includes the derivative of the activation before, if it can.
  /// shape: that of y.
  [[nodiscard]] Grads of_linear(const Tensor& dz, Shape shape, Needs needs) const {
    Tensor matrix, w;
    if (needs[0]) {
      w = weight.get();
      shape[shape.rank() - 1] = w.shape()[1];  // of dx
    }
    if (needs[1]) matrix = rows_of(x.get());
    Tensor dx, dw, db;
    const bool sums = needs[1] && needs[2] && dz.shape()[1] > 0 && matrix.shape()[1] > 0;
    if (needs_grad({dz, matrix, w})) {
      if (needs[0]) dx = ops::recorded_product(dz, false, w, false).reshape(shape);
      if (sums) std::tie(dw, db) = weight_and_bias_grads(dz, matrix);
      else if (needs[1]) dw = ops::recorded_product(dz, true, matrix, false);
    } else {
      std::optional<ops::Product> of_x, of_weight;
      if (needs[0]) {
        of_x.emplace("linear_backward", dz, false, w, false);
        autograd::Derivative before;
        if (autograd::derivative_of_input(0, before) && before.saved.is_contiguous() &&
            before.saved.dtype() == dz.dtype()) {
          of_x->then(before.epilogue, before.saved);
          autograd::derivative_was_applied(0);
        }
        dx = of_x->result(shape);
      }
      if (needs[1]) {
        of_weight.emplace("linear_backward", dz, true, matrix, false, Tensor(), sums);
        dw = of_weight->result();
        db = of_weight->sum_a();
      }
      if (of_x && of_weight && dz.numel() > 0 && matrix.numel() > 0) {
        ops::Product::launch_pair(*of_x, *of_weight);
      } else {
        if (of_x) of_x->launch();
        if (of_weight) of_weight->launch();
      }
    }
    if (needs[2] && !db.defined()) db = sum(dz, {0});
    return {std::move(dx), std::move(dw), std::move(db)};
  }
};

/// Computes y = epilogue(x wᵀ + b) for x of any rank, whose operands are checked. Recorded.
Tensor linear_rows(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                   Epilogue epilogue, const Tensor& residual) {
  const Tensor x = has_rows(input) ? input : input.contiguous();
  const bool recorded = needs_grad({x, weight, bias, residual});
  Shape shape = x.shape();
  shape[x.dim() - 1] = weight.shape()[0];
  const auto computed = [&](Tensor& kept) {
    const NoGrad guard;
    ops::Product product(op, rows_of(x), false, weight, true, bias);
    Tensor y = product.result(shape);
    if (is_gelu(epilogue) && recorded) kept = make_tensor(shape, x.dtype(), x.device());
    if (epilogue == Epilogue::add) product.then(epilogue, residual.contiguous());
    else product.then(epilogue, kept);
    product.launch();
    return y;
  };
  Tensor z;
  Tensor y = computed(z);
  if (!recorded) return y;
  LinearGradient gradient{epilogue, {}, {}, {}, {}};
  if (is_gelu(epilogue)) {
    gradient.x = SavedTensor(x), gradient.weight = SavedTensor(weight);
    gradient.kept = SavedTensor(z), gradient.bias = SavedTensor(bias);
  } else {
    gradient.x = ops::saved_for({weight}, x), gradient.weight = ops::saved_for({x}, weight);
  }
  if (epilogue == Epilogue::relu) gradient.kept = SavedTensor::output(y);
  if (epilogue == Epilogue::add)
    return record(op, {x, weight, bias, residual}, std::move(y), std::move(gradient));
  return record(op, {x, weight, bias}, std::move(y), std::move(gradient));
}

void check_residual(const char* op, const Shape& shape, const Tensor& residual) {
  if (residual.shape() != shape)
    throw ShapeError(str(op, ": expected residual ", shape, ", got ", residual.shape()));
}

/// Checks the operands, then computes.
Tensor linear_with(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   Epilogue epilogue, const Tensor& residual = {}) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    const Tensor narrow = low(x);
    const bool widens = epilogue == Epilogue::add && residual.defined() &&
                        residual.is_floating_point() && residual.dtype() != narrow.dtype();
    if (!widens) return linear_with(op, narrow, low(weight), low(bias), epilogue, residual);
    const Tensor y = linear_with(op, narrow, low(weight), low(bias), Epilogue::none);
    check_residual(op, y.shape(), residual);
    return y + residual;
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
  if (is_gelu(epilogue)) ops::check_floating(op, x);
  if (epilogue == Epilogue::add) {
    (void)detail::defined(residual.impl());
    ops::check_device(op, x, residual);
    ops::check_dtype(op, x, residual);
    Shape shape = x.shape();
    shape[x.dim() - 1] = out;
    check_residual(op, shape, residual);
  }
  return linear_rows(op, x, weight, bias, epilogue, residual);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_with("linear", x, weight, bias, Epilogue::none);
}
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_with("linear_relu", x, weight, bias, Epilogue::relu);
}
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   std::string_view approximate) {
  return linear_with(
      "linear_gelu", x, weight, bias,
      ops::is_tanh("linear_gelu", approximate) ? Epilogue::gelu_tanh : Epilogue::gelu);
}
Tensor linear_add(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const Tensor& residual) {
  return linear_with("linear_add", x, weight, bias, Epilogue::add, residual);
}

}  // namespace braid
