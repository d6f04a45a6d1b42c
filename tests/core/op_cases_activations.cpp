// Activations.
#include <braid/core/ops/activations.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"
#include "reference/activations.hpp"

namespace braid::test {

void add_activation_cases(std::vector<OpCase>& list) {
  using T = const Tensor&;
  using Kind = Input::Kind;
  const auto add = [&](const char* op, const char* variant, const char* torch, auto f, auto r,
                       Kind kind = Kind::value) {
    add_unary_cases(list, op, variant, torch, f, r, kind, all_dtypes(), Accuracy::tolerance);
  };
  const auto refused = [&](const char* op, const char* argument, auto call, const char* type,
                           const char* text) {
    BadInputs(list, op).of(argument).refused(type, text, call);
  };
  const auto with_errors = [&](const char* op, auto f) {
    bad_tensor(list, op, "x", f).too_large(f);
  };
  const auto x = [] { return on_device::ones({2}); };

  add("gelu", "", "F.gelu(x0)", [](T t) { return gelu(t); }, reference::gelu);
  add(
      "gelu", "tanh", "F.gelu(x0, approximate='tanh')", [](T t) { return gelu(t, "tanh"); },
      reference::gelu_tanh);
  with_errors("gelu", [](T t) { return gelu(t); });
  for (const char* word : {"", "erf", "Tanh"})
    refused(
        "gelu", "approximate", [x, word] { (void)gelu(x(), word); }, "ArgumentError",
        "gelu: expected approximate \"none\" or \"tanh\", got \"");
  add("silu", "", "F.silu(x0)", [](T t) { return silu(t); }, reference::silu);
  with_errors("silu", silu);
  add(
      "softplus", "", "F.softplus(x0)", [](T t) { return softplus(t); },
      [](double t) { return reference::softplus(t); });
  add(
      "softplus", "beta 2, threshold 1", "F.softplus(x0, 2, 1)",
      [](T t) { return softplus(t, 2, 1); }, [](double t) { return reference::softplus(t, 2, 1); });
  with_errors("softplus", [](T t) { return softplus(t); });
  for (const double beta : {0.0, -0.0, std::nan("")})
    refused(
        "softplus", "beta", [x, beta] { (void)softplus(x(), beta); }, "ArgumentError",
        "softplus: expected beta != 0, got ");
  add(
      "elu", "", "F.elu(x0)", [](T t) { return elu(t); },
      [](double t) { return reference::elu(t, 1); }, Kind::nonzero);
  add(
      "elu", "alpha 0.5", "F.elu(x0, 0.5)", [](T t) { return elu(t, 0.5); },
      [](double t) { return reference::elu(t, 0.5); }, Kind::nonzero);
  with_errors("elu", [](T t) { return elu(t); });
  add(
      "celu", "", "F.celu(x0)", [](T t) { return celu(t); },
      [](double t) { return reference::elu(t, 1); });
  add(
      "celu", "alpha 0.5", "F.celu(x0, 0.5)", [](T t) { return celu(t, 0.5); },
      [](double t) { return reference::elu(t, 0.5, 1, 2); }, Kind::nonzero);
  with_errors("celu", [](T t) { return celu(t); });
  for (const double alpha : {0.0, -0.0, std::nan("")})
    refused(
        "celu", "alpha", [x, alpha] { (void)celu(x(), alpha); }, "ArgumentError",
        "celu: expected alpha != 0, got ");
  constexpr double alpha = 1.6732632423543772848, scale = 1.0507009873554804934;
  add(
      "selu", "", "F.selu(x0)", selu,
      [=](double t) { return reference::elu(t, alpha * scale, scale); }, Kind::nonzero);
  with_errors("selu", selu);
  add(
      "leaky_relu", "", "F.leaky_relu(x0)", [](T t) { return leaky_relu(t); },
      [](double t) { return reference::leaky_relu(t, 0.01); }, Kind::nonzero);
  add(
      "leaky_relu", "slope 0.25", "F.leaky_relu(x0, 0.25)", [](T t) { return leaky_relu(t, 0.25); },
      [](double t) { return reference::leaky_relu(t, 0.25); }, Kind::nonzero);
  with_errors("leaky_relu", [](T t) { return leaky_relu(t); });
  add(
      "hardtanh", "", "F.hardtanh(x0)", [](T t) { return hardtanh(t); },
      [](double t) { return reference::cut_off(t, -1, 1); });
  add(
      "hardtanh", "-0.5 to 1.5", "F.hardtanh(x0, -0.5, 1.5)",
      [](T t) { return hardtanh(t, -0.5, 1.5); },
      [](double t) { return reference::cut_off(t, -0.5, 1.5); });
  with_errors("hardtanh", [](T t) { return hardtanh(t); });
  for (const double low : {1.0, 2.0, std::nan("")})
    refused(
        "hardtanh", "min_val", [x, low] { (void)hardtanh(x(), low); }, "ArgumentError",
        "hardtanh: expected min_val < max_val, got .* and 1");
  for (const double high : {-1.0, -2.0, std::nan("")})
    refused(
        "hardtanh", "max_val", [x, high] { (void)hardtanh(x(), -1, high); }, "ArgumentError",
        "hardtanh: expected min_val < max_val, got -1 and ");
  // At the sample's numbers, at most 2 in size, neither bound of these three would be met.
  const auto times_4 = [](auto f) { return [f](double t) { return f(4 * t); }; };
  add(
      "relu6", "", "F.relu6(4 * x0)", [](T t) { return relu6(mul(t, 4)); },
      times_4([](double t) { return reference::cut_off(t, 0, 6); }), Kind::nonzero);
  with_errors("relu6", [](T t) { return relu6(t); });
  add(
      "hardsigmoid", "", "F.hardsigmoid(4 * x0)", [](T t) { return hardsigmoid(mul(t, 4)); },
      times_4(reference::hardsigmoid));
  with_errors("hardsigmoid", [](T t) { return hardsigmoid(t); });
  add(
      "hardswish", "", "F.hardswish(4 * x0)", [](T t) { return hardswish(mul(t, 4)); },
      times_4(reference::hardswish));
  with_errors("hardswish", [](T t) { return hardswish(t); });
  add("mish", "", "F.mish(x0)", mish, reference::mish);
  with_errors("mish", mish);
  add("logsigmoid", "", "F.logsigmoid(x0)", logsigmoid, reference::logsigmoid);
  with_errors("logsigmoid", logsigmoid);
  add("softsign", "", "F.softsign(x0)", softsign, reference::softsign, Kind::nonzero);
  with_errors("softsign", softsign);
  // Integers times 4 would be cut to the type before they are float32.
  for (OpCase& c : list)
    if (c.torch.find("4 * x0") != std::string::npos) c.dtypes = floating_dtypes();
  const auto whole = [&](const char* op, const char* torch, auto f, auto r) {
    add(op, "whole numbers", torch, f, r, Kind::nonzero);
    list.back().dtypes = {DType::bool_, DType::uint8, DType::int32, DType::int64};
  };
  whole("relu6", "F.relu6(x0)", relu6, [](double t) { return reference::cut_off(t, 0, 6); });
  whole("hardsigmoid", "F.hardsigmoid(x0)", hardsigmoid, reference::hardsigmoid);
  whole("hardswish", "F.hardswish(x0)", hardswish, reference::hardswish);
  BadInputs(list, "softplus").free("threshold", "every number is one, NaN and infinities too");
  BadInputs(list, "elu").free("alpha", "every number is a factor");
  BadInputs(list, "leaky_relu").free("negative_slope", "every number is a factor");
}

}  // namespace braid::test
