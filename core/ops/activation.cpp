// Activations: one kernel computes f(x), or dy f'(x) if dy is given. The second derivatives, which
// only gradients of gradients need, consist of recorded ops.
#include <braid/core/ops/activation.hpp>

#include <cmath>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/internal/kernel_args/activation.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "activation.hpp"
#include "autograd/derivative.hpp"
#include "common.hpp"

namespace braid {
namespace {

/// Describes an activation. second(rule, x) computes f''(x); null if f'' is 0 almost everywhere.
struct Rule {
  const char* name;
  const char* backward;
  ActivationOp op;
  double a = 0, b = 0, c = 0;
  Tensor (*second)(const Rule& rule, const Tensor& x) = nullptr;
};

Tensor run(const char* name, const Rule& rule, const Tensor& x, const Tensor* dy,
           const Tensor& out) {
  if (out.numel() == 0) return out;
  ActivationArgs args;
  args.op = rule.op;
  args.dtype = x.dtype();
  args.out = out.id()->data();
  args.x = x.id()->data();
  args.dy = dy != nullptr ? dy->id()->data() : nullptr;
  args.a = rule.a;
  args.b = rule.b;
  args.c = rule.c;
  ops::fill_loop(args.loop, x.shape(), {out.id(), x.id(), dy != nullptr ? dy->id() : x.id()});
  launch(name, x.device(), &KernelTable::activation, args);
  return out;
}

Tensor pull_back(const Rule& rule, const Tensor& x, const Tensor& dy) {
  Tensor dx = run(rule.backward, rule, x, &dy, make_tensor(x.shape(), x.dtype(), x.device()));
  if (rule.second == nullptr) {  // the gradient for x is 0 almost everywhere
    if (!needs_grad({dy})) return dx;
    return record(rule.backward, {dy}, dx,
                  [rule, x = SavedTensor(x.detach())](const Tensor& g) -> Grads {
                    return {pull_back(rule, x.get(), g)};
                  });
  }
  if (!needs_grad({x, dy})) return dx;
  return record(
      rule.backward, {x, dy}, dx,
      [rule, sx = SavedTensor(x), sd = SavedTensor(dy)](const Tensor& g, Needs needs) -> Grads {
        const Tensor v = sx.get();
        return {needs[0] ? g * sd.get() * rule.second(rule, v) : Tensor(),
                needs[1] ? pull_back(rule, v, g) : Tensor()};
      });
}

/// The backward of an activation.
struct ActivationGradient {
  Rule rule;
  SavedTensor x;
  Grads operator()(const Tensor& dy) const {
    return {autograd::has_derivative() ? dy : pull_back(rule, x.get(), dy)};
  }
  [[nodiscard]] bool derivative(autograd::Derivative& to) const {
    if (rule.op == ActivationOp::gelu) to.epilogue = Epilogue::gelu_backward;
    else if (rule.op == ActivationOp::gelu_tanh) to.epilogue = Epilogue::gelu_tanh_backward;
    else return false;
    to.saved = x.get();
    return true;
  }
};

Tensor activate(const Rule& rule, const Tensor& a) {
  const Tensor x = ops::as_floating(a);
  Tensor y = run(rule.name, rule, x, nullptr, make_tensor(x.shape(), x.dtype(), x.device()));
  if (!needs_grad({x})) return y;
  return record(rule.name, {x}, y, ActivationGradient{rule, SavedTensor(x)});
}

// ---- second derivatives

constexpr double kRootTwoOverPi = 0.797884560802865355880, kCubic = 0.044715;

/// f'' = φ(x) (2 - x²), with φ the density of the normal distribution.
Tensor gelu_second(const Rule&, const Tensor& x) {
  const Tensor z = square(x);
  return mul(exp(mul(z, -0.5)), kRootTwoOverPi / 2) * sub(2, z);
}
/// With f = x s and s = sigmoid(w): s' = s (1 - s) w', so
/// f'' = s (1 - s) (2 w' + x w'' + x w'² (1 - 2 s)).
Tensor gelu_tanh_second(const Rule&, const Tensor& x) {
  constexpr double k = 2 * kRootTwoOverPi;
  const Tensor z = square(x), s = sigmoid(mul(x * add(mul(z, kCubic), 1), k));
  const Tensor first = mul(add(mul(z, 3 * kCubic), 1), k), second = mul(x, 6 * kCubic * k);
  return s * sub(1, s) * (mul(first, 2) + x * (second + square(first) * sub(1, mul(s, 2))));
}
Tensor silu_second(const Rule&, const Tensor& x) {
  const Tensor s = sigmoid(x);
  return s * sub(1, s) * add(x * sub(1, mul(s, 2)), 2);
}
Tensor softplus_second(const Rule& rule, const Tensor& x) {
  const Tensor z = mul(x, rule.a), s = sigmoid(z);
  return where(gt(z, rule.b), 0.0, mul(s * sub(1, s), rule.a));
}
Tensor elu_second(const Rule& rule, const Tensor& x) {
  // clamped, so that the branch that where() does not select stays finite
  const Tensor e = exp(mul(clamp(x, std::nullopt, 0), rule.c));
  return where(le(x, 0), mul(e, rule.a * rule.c * rule.c), 0.0);
}
Tensor hardswish_second(const Rule&, const Tensor& x) {
  return mul(logical_and(gt(x, -3), lt(x, 3)).to(x.dtype()), 1.0 / 3);
}
/// With t = tanh(softplus(x)) and s = sigmoid(x): t' = (1 - t²) s, so
/// f'' = t' (2 + x (1 - s) - 2 x s t).
Tensor mish_second(const Rule&, const Tensor& x) {
  const Tensor t = tanh(softplus(x)), s = sigmoid(x);
  return sub(1, square(t)) * s * (add(x * sub(1, s), 2) - mul(x * s * t, 2));
}
Tensor logsigmoid_second(const Rule&, const Tensor& x) {
  const Tensor s = sigmoid(x);
  return neg(s * sub(1, s));
}
Tensor softsign_second(const Rule&, const Tensor& x) {
  return mul(sign(x), -2) * pow(add(abs(x), 1), -3);
}

/// f' = 1 / (x (1 - x)) inside the bounds, so f'' = (2 x - 1) f'².
Tensor logit_second(const Rule& rule, const Tensor& x) {
  const Tensor second = add(mul(x, 2), -1) / square(x * sub(1, x));
  return where(logical_or(lt(x, rule.a), gt(x, rule.b)), 0.0, second);
}

void check_scale(const char* op, const char* name, double value) {
  if (value == 0 || std::isnan(value))
    throw ArgumentError(str(op, ": expected ", name, " != 0, got ", value));
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717,
                 kSeluScale = 1.0507009873554804934193349852946;

Rule gelu_rule(bool tanh) {
  if (tanh) return {"gelu", "gelu_backward", ActivationOp::gelu_tanh, 0, 0, 0, gelu_tanh_second};
  return {"gelu", "gelu_backward", ActivationOp::gelu, 0, 0, 0, gelu_second};
}

}  // namespace

bool ops::is_tanh(const char* op, std::string_view approximate) {
  if (approximate != "none" && approximate != "tanh")
    throw ArgumentError(
        str(op, ": expected approximate \"none\" or \"tanh\", got \"", approximate, '"'));
  return approximate == "tanh";
}
Tensor ops::gelu_backward(const Tensor& x, const Tensor& dy, bool tanh) {
  return pull_back(gelu_rule(tanh), x, dy);
}

Tensor gelu(const Tensor& x, std::string_view approximate) {
  return activate(gelu_rule(ops::is_tanh("gelu", approximate)), x);
}
Tensor silu(const Tensor& x) {
  return activate({"silu", "silu_backward", ActivationOp::silu, 0, 0, 0, silu_second}, x);
}
Tensor softplus(const Tensor& x, double beta, double threshold) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted full(detail::Precision::full);
    return softplus(full(x), beta, threshold);
  }
  check_scale("softplus", "beta", beta);
  return activate({"softplus", "softplus_backward", ActivationOp::softplus, beta, threshold, 0,
                   softplus_second},
                  x);
}
Tensor elu(const Tensor& x, double alpha) {
  return activate({"elu", "elu_backward", ActivationOp::elu, alpha, 1, 1, elu_second}, x);
}
Tensor celu(const Tensor& x, double alpha) {
  check_scale("celu", "alpha", alpha);
  return activate({"celu", "celu_backward", ActivationOp::elu, alpha, 1, 1 / alpha, elu_second}, x);
}
Tensor selu(const Tensor& x) {
  return activate({"selu", "selu_backward", ActivationOp::elu, kSeluAlpha * kSeluScale, kSeluScale,
                   1, elu_second},
                  x);
}
Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return activate({"leaky_relu", "leaky_relu_backward", ActivationOp::leaky_relu, negative_slope},
                  x);
}
Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  if (!(min_val < max_val))
    throw ArgumentError(
        str("hardtanh: expected min_val < max_val, got ", min_val, " and ", max_val));
  return activate({"hardtanh", "hardtanh_backward", ActivationOp::hardtanh, min_val, max_val}, x);
}
Tensor relu6(const Tensor& x) {
  return activate({"relu6", "relu6_backward", ActivationOp::hardtanh, 0, 6}, x);
}
Tensor hardsigmoid(const Tensor& x) {
  return activate({"hardsigmoid", "hardsigmoid_backward", ActivationOp::hardsigmoid}, x);
}
Tensor hardswish(const Tensor& x) {
  return activate(
      {"hardswish", "hardswish_backward", ActivationOp::hardswish, 0, 0, 0, hardswish_second}, x);
}
Tensor mish(const Tensor& x) {
  return activate({"mish", "mish_backward", ActivationOp::mish, 0, 0, 0, mish_second}, x);
}
Tensor logsigmoid(const Tensor& x) {
  return activate(
      {"logsigmoid", "logsigmoid_backward", ActivationOp::logsigmoid, 0, 0, 0, logsigmoid_second},
      x);
}
Tensor softsign(const Tensor& x) {
  return activate(
      {"softsign", "softsign_backward", ActivationOp::softsign, 0, 0, 0, softsign_second}, x);
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  if (eps && !(*eps >= 0 && *eps <= 0.5))
    throw ArgumentError(str("logit: expected 0 <= eps <= 0.5, got ", *eps));
  return activate({"logit", "logit_backward", ActivationOp::logit, eps ? *eps : -INFINITY,
                   eps ? 1 - *eps : INFINITY, 0, logit_second},
                  x);
}

namespace ops {

Tensor clamp_values(const Tensor& x, double low, double high) {
  if (std::isnan(low)) return mul(x, NAN);
  return activate({"clamp", "clamp_backward", ActivationOp::clamp, low, high}, x);
}
void clamp_in_place(const Tensor& t, double low, double high) {
  if (std::isnan(low)) return fill_values(t, NAN);
  (void)run("clamp_", {"clamp_", "clamp_", ActivationOp::clamp, low, high}, t, nullptr, t);
}

}  // namespace ops
}  // namespace braid
