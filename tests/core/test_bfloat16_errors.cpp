// The errors of bfloat16 against float64 are those of PyTorch's: attention, a linear layer and a
// GPT block, their results and gradients. In a block, what is rounded between its ops is most of
// the error, and which of two right roundings is closer is chance.
#include <functional>

#include <braid/core/ops/attention.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/norm.hpp>

#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

struct Errors {
  double rms, largest;
};
struct Row {
  const char* name;
  std::vector<Errors> pytorch;  // of the result, then of the gradient of each input
};
// Printed by tests/goldens/make_bfloat16_errors.py, of PyTorch 2.15.0.
const std::vector<Row> kRows{
    {"attention",
     {{0.0017451, 0.00543201},
      {0.00482051, 0.0239591},
      {0.00213792, 0.0143681},
      {0.00247435, 0.0131758}}},
    {"causal attention",
     {{0.00171418, 0.00590155},
      {0.00528222, 0.0323836},
      {0.00322666, 0.0399955},
      {0.00363876, 0.0404866}}},
    {"linear",
     {{0.153367, 0.5}, {0.012316, 0.0622559}, {0.0105986, 0.0610352}, {0.00378962, 0.015625}}},
    {"block",
     {{0.0225892, 0.0938531},
      {0.0801244, 0.480373},
      {0.198577, 0.781368},
      {0.253897, 0.943431},
      {0.0295865, 0.1469},
      {0.0544866, 0.207509}}}};

/// The script's inputs, which bfloat16 represents exactly.
Tensor numbers(const Shape& shape, std::int64_t seed) {
  std::vector<double> v(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<double>((static_cast<std::int64_t>(i) * 7919 + seed * 104729) % 509 % 253 -
                               126) /
           64;
  return tensor(v).reshape(shape).to(here());
}

using Function = std::function<Tensor(const std::vector<Tensor>&)>;
struct Case {
  std::vector<Tensor> inputs;
  Tensor dy;
  Function f;
};

Case attention(bool causal) {
  const Shape shape{1, 2, 128, 64};
  return {{numbers(shape, 1), numbers(shape, 2), numbers(shape, 3)},
          numbers(shape, 4),
          [causal](const std::vector<Tensor>& x) {
            return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, causal);
          }};
}
Case linear_layer() {
  return {{numbers({96, 160}, 1), numbers({136, 160}, 2), numbers({136}, 3)},
          numbers({96, 136}, 4),
          [](const std::vector<Tensor>& x) { return linear(x[0], x[1], x[2]); }};
}
Case gpt_block() {
  constexpr std::int64_t d = 64, n = 48;
  Case block{
      {numbers({n, d}, 1)}, numbers({n, d}, 7), [](const std::vector<Tensor>& w) {
        const Tensor qkv =
            linear(layer_norm(w[0], {d}), w[1]).reshape({n, 3, 2, d / 2}).permute({1, 2, 0, 3});
        const Tensor a = scaled_dot_product_attention(qkv[0].unsqueeze(0), qkv[1].unsqueeze(0),
                                                      qkv[2].unsqueeze(0), {}, 0, true)[0];
        const Tensor x = w[0] + linear(a.permute({1, 0, 2}).reshape({n, d}), w[2]);
        return x + linear(gelu(linear(layer_norm(x, {d}), w[3])), w[4]);
      }};
  const Shape weights[] = {{3 * d, d}, {d, d}, {4 * d, d}, {d, 4 * d}};
  for (std::int64_t i = 0; i < 4; ++i) block.inputs.push_back(numbers(weights[i], i + 2) / 8);
  return block;
}

/// The result and the gradients in a dtype, as float64.
std::vector<Tensor> results(const Case& c, DType dtype) {
  std::vector<Tensor> leaves, list;
  for (const Tensor& x : c.inputs) leaves.push_back(x.to(dtype).detach().set_requires_grad(true));
  const Tensor y = c.f(leaves);
  y.backward(c.dy.to(dtype));
  list.push_back(y.detach().to(DType::float64));
  for (const Tensor& x : leaves) list.push_back(x.grad().to(DType::float64));
  return list;
}

}  // namespace

TEST_CASE("bfloat16: as far from float64 as PyTorch's", "[bfloat16]") {
  const Case cases[] = {attention(false), attention(true), linear_layer(), gpt_block()};
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const std::vector<Tensor> wide = results(cases[i], DType::float64),
                              narrow = results(cases[i], DType::bfloat16);
    for (std::size_t k = 0; k < wide.size(); ++k) {
      INFO(kRows[i].name << ", result " << k);
      const Tensor e = narrow[k] - wide[k];
      const Errors& theirs = kRows[i].pytorch[k];
      const double chance = kRows[i].name == std::string("block") ? 1.2 : 1.05;
      CHECK(std::sqrt(mean(e * e).item<double>()) <= chance * theirs.rms);
      CHECK(max(abs(e)).item<double>() <= 1.3 * theirs.largest);
    }
  }
}

}  // namespace braid::test::on_device
