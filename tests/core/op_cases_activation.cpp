#include "op_cases_activation.hpp"

#include <stdexcept>

#include <braid/core/ops/activation.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/activation.hpp"

namespace braid::test {
namespace {

constexpr double kAlpha = 1.6732632423543772848, kScale = 1.0507009873554804934;  // of selu

const Unary kActivations[] = {
    {"gelu", "", "F.gelu(x0)", [](T t) { return gelu(t); }, reference::gelu},
    {"gelu", "tanh", "F.gelu(x0, approximate='tanh')", [](T t) { return gelu(t, "tanh"); },
     reference::gelu_tanh},
    {"silu", "", "F.silu(x0)", silu, reference::silu},
    {"softplus", "", "F.softplus(x0)", [](T t) { return softplus(t); },
     [](double t) { return reference::softplus(t); }},
    {"softplus", "beta 2, threshold 1", "F.softplus(x0, 2, 1)",
     [](T t) { return softplus(t, 2, 1); }, [](double t) { return reference::softplus(t, 2, 1); }},
    {"elu", "", "F.elu(x0)", [](T t) { return elu(t); },
     [](double t) { return reference::elu(t, 1); }, Kind::nonzero},
    {"elu", "alpha 0.5", "F.elu(x0, 0.5)", [](T t) { return elu(t, 0.5); },
     [](double t) { return reference::elu(t, 0.5); }, Kind::nonzero},
    {"celu", "", "F.celu(x0)", [](T t) { return celu(t); },
     [](double t) { return reference::elu(t, 1); }},
    {"celu", "alpha 0.5", "F.celu(x0, 0.5)", [](T t) { return celu(t, 0.5); },
     [](double t) { return reference::elu(t, 0.5, 1, 2); }, Kind::nonzero},
    {"selu", "", "F.selu(x0)", selu,
     [](double t) { return reference::elu(t, kAlpha * kScale, kScale); }, Kind::nonzero},
    {"leaky_relu", "", "F.leaky_relu(x0)", [](T t) { return leaky_relu(t); },
     [](double t) { return reference::leaky_relu(t, 0.01); }, Kind::nonzero},
    {"leaky_relu", "slope 0.25", "F.leaky_relu(x0, 0.25)", [](T t) { return leaky_relu(t, 0.25); },
     [](double t) { return reference::leaky_relu(t, 0.25); }, Kind::nonzero},
    {"hardtanh", "", "F.hardtanh(x0)", [](T t) { return hardtanh(t); },
     [](double t) { return reference::cut_off(t, -1, 1); }},
    {"hardtanh", "-0.5 to 1.5", "F.hardtanh(x0, -0.5, 1.5)",
     [](T t) { return hardtanh(t, -0.5, 1.5); },
     [](double t) { return reference::cut_off(t, -0.5, 1.5); }},
    {"mish", "", "F.mish(x0)", mish, reference::mish},
    {"logsigmoid", "", "F.logsigmoid(x0)", logsigmoid, reference::logsigmoid},
    {"softsign", "", "F.softsign(x0)", softsign, reference::softsign, Kind::nonzero},
};
// The sample's numbers are at most 2 in magnitude and would reach neither bound of these three ops,
// so they are multiplied by 4. Integers times 4 would be reduced to the dtype before they become
// float32.
const Unary kTimes4[] = {
    {"relu6", "", "F.relu6(4 * x0)", [](T t) { return relu6(mul(t, 4)); },
     [](double t) { return reference::cut_off(4 * t, 0, 6); }, Kind::nonzero},
    {"hardsigmoid", "", "F.hardsigmoid(4 * x0)", [](T t) { return hardsigmoid(mul(t, 4)); },
     [](double t) { return reference::hardsigmoid(4 * t); }},
    {"hardswish", "", "F.hardswish(4 * x0)", [](T t) { return hardswish(mul(t, 4)); },
     [](double t) { return reference::hardswish(4 * t); }},
};
const Unary kOfWhole[] = {
    {"relu6", "whole numbers", "F.relu6(x0)", relu6,
     [](double t) { return reference::cut_off(t, 0, 6); }, Kind::nonzero},
    {"hardsigmoid", "whole numbers", "F.hardsigmoid(x0)", hardsigmoid, reference::hardsigmoid,
     Kind::nonzero},
    {"hardswish", "whole numbers", "F.hardswish(x0)", hardswish, reference::hardswish,
     Kind::nonzero},
};

// Where x / (1 - x) is positive; and of any number.
const Unary kLogits[] = {
    {"logit", "", "torch.logit(x0)", [](T t) { return logit(t); }, reference::logit,
     Kind::probability},
};
const Unary kClampedLogits[] = {
    {"logit", "eps 0.25", "torch.logit(x0, 0.25)", [](T t) { return logit(t, 0.25); },
     [](double t) { return reference::logit(reference::cut_off(t, 0.25, 0.75)); }},
};

/// The functions of the kernel that have parameters, which lie inside the range of x, and those
/// that no row of kActivations has.
const std::map<ActivationOp, ActivationCall> kActivationCalls{
    {ActivationOp::gelu_tanh, {0, 0, 0, reference::gelu_tanh}},
    {ActivationOp::softplus,
     {1.5, 2.5, 0, [](double t) { return reference::softplus(t, 1.5, 2.5); }}},
    {ActivationOp::elu,
     {1.5, 2.5, 0.75, [](double t) { return reference::elu(t, 1.5, 2.5, 0.75); }}},
    {ActivationOp::leaky_relu, {1.5, 0, 0, [](double t) { return reference::leaky_relu(t, 1.5); }}},
    {ActivationOp::hardtanh,
     {-1, 1.25, 0, [](double t) { return reference::cut_off(t, -1, 1.25); }}},
    {ActivationOp::clamp, {-1, 1.25, 0, [](double t) { return reference::cut_off(t, -1, 1.25); }}},
    {ActivationOp::hardsigmoid, {0, 0, 0, reference::hardsigmoid}},
    {ActivationOp::hardswish, {0, 0, 0, reference::hardswish}},
    {ActivationOp::logit,
     {0.375, 0.625, 0,
      [](double t) { return reference::logit(reference::cut_off(t, 0.375, 0.625)); }}},
};

std::map<ActivationOp, ActivationCall> all_activation_calls() {
  std::map<ActivationOp, ActivationCall> calls = kActivationCalls;
  const auto add = [&](const std::string& name, ActivationOp op) {
    for (const Unary& row : kActivations)
      if (row.op == name && row.variant[0] == 0)
        calls.try_emplace(op, ActivationCall{0, 0, 0, row.expected});
    if (!calls.contains(op))
      throw std::logic_error(name + ": expected it in kActivations or kActivationCalls");
  };
#define BRAID_ACTIVATION(name) add(#name, ActivationOp::name);
#include <braid/core/internal/activation.def>
  return calls;
}

}  // namespace

const ActivationCall& activation_call(ActivationOp op) {
  static const std::map<ActivationOp, ActivationCall> calls = all_activation_calls();
  return calls.at(op);
}

void add_activation_cases(Cases& list) {
  for (const Unary& a : kActivations) add_unary(list, a, kAll, Accuracy::tolerance);
  for (const Unary& a : kTimes4) add_unary(list, a, kFloats, Accuracy::tolerance);
  for (const Unary& a : kOfWhole) add_unary(list, a, kWhole, Accuracy::tolerance);
  for (const Unary& a : kLogits) add_unary(list, a, kFloats, Accuracy::tolerance);
  for (const Unary& a : kClampedLogits) add_unary(list, a, kAll, Accuracy::tolerance);
  for (const Unary& a : kActivations)
    if (a.variant[0] == 0) bad_tensor(list, a.op, a.call).too_large(a.call);
  for (const Unary& a : kOfWhole) bad_tensor(list, a.op, a.call).too_large(a.call);
  for (const Unary& a : kLogits) bad_tensor(list, a.op, a.call).too_large(a.call);
  const auto x = [] { return ones_of({2}); };
  for (const char* word : {"", "erf", "Tanh"})
    BadInputs(list, "gelu", "approximate")
        .is(kArgument, "approximate \"none\" or \"tanh\", got \"",
            [x, word] { return gelu(x(), word); });
  BadInputs(list, "softplus")
      .numbers("beta", {0.0, -0.0, kNan}, kArgument, "beta != 0, got ",
               [x](double beta) { return softplus(x(), beta); })
      .free("threshold", "every number is one, NaN and infinities too");
  BadInputs(list, "celu")
      .numbers("alpha", {0.0, -0.0, kNan}, kArgument, "alpha != 0, got ",
               [x](double alpha) { return celu(x(), alpha); });
  BadInputs(list, "hardtanh")
      .numbers("min_val", {1.0, 2.0, kNan}, kArgument, "min_val < max_val, got .* and 1",
               [x](double low) { return hardtanh(x(), low); })
      .numbers("max_val", {-1.0, -2.0, kNan}, kArgument, "min_val < max_val, got -1 and ",
               [x](double high) { return hardtanh(x(), -1, high); });
  BadInputs(list, "logit")
      .numbers("eps", {-0.125, 0.75, kNan}, kArgument, "0 <= eps <= 0.5, got ",
               [x](double eps) { return logit(x(), eps); });
  BadInputs(list, "elu").free("alpha", "every number is a factor");
  BadInputs(list, "leaky_relu").free("negative_slope", "every number is a factor");
  parameters(list,
             "celu(x alpha) elu(x alpha) gelu(x approximate) hardtanh(x min_val max_val) "
             "leaky_relu(x negative_slope) logit(x eps) softplus(x beta threshold)");
}

}  // namespace braid::test
