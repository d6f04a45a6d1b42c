// The errors of bfloat16 against float64 are those of PyTorch's: attention, a linear layer and a
// GPT block, their results and gradients. In a block, what is rounded between its ops is most of
// the error, and which of two right roundings is closer is chance.
#include <cmath>
#include <functional>
#include <iostream>

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
// Printed by tests/goldens/make_bfloat16_errors.py, of PyTorch 2.15.0: of kRounds draws.
const std::vector<Row> kRows{
    {"attention",
     {{0.00172703, 0.00579497},
      {0.00466606, 0.0278096},
      {0.00226925, 0.0169517},
      {0.00250424, 0.0194281}}},
    {"causal attention",
     {{0.00171716, 0.00590155},
      {0.00489477, 0.0323836},
      {0.00315937, 0.0399955},
      {0.00365345, 0.0585204}}},
    {"linear",
     {{0.151816, 0.5}, {0.0122096, 0.0625}, {0.0105767, 0.0622559}, {0.00466543, 0.015625}}},
    {"block",
     {{0.0229642, 0.203762},
      {0.108423, 1.906},
      {0.222896, 1.77073},
      {0.263467, 1.24974},
      {0.0321409, 0.23498},
      {0.053181, 0.314971}}}};
constexpr int kRounds = 16;

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

Case attention(bool causal, int r) {
  const Shape shape{1, 2, 128, 64};
  return {{numbers(shape, 1 + r), numbers(shape, 2 + r), numbers(shape, 3 + r)},
          numbers(shape, 4 + r),
          [causal](const std::vector<Tensor>& x) {
            return scaled_dot_product_attention(x[0], x[1], x[2], {}, 0, causal);
          }};
}
Case linear_layer(int r) {
  return {{numbers({96, 160}, 1 + r), numbers({136, 160}, 2 + r), numbers({136}, 3 + r)},
          numbers({96, 136}, 4 + r),
          [](const std::vector<Tensor>& x) { return linear(x[0], x[1], x[2]); }};
}
Case gpt_block(int r) {
  constexpr std::int64_t d = 64, n = 48;
  Case block{
      {numbers({n, d}, 1 + r)}, numbers({n, d}, 7 + r), [](const std::vector<Tensor>& w) {
        const Tensor qkv =
            linear(layer_norm(w[0], {d}), w[1]).reshape({n, 3, 2, d / 2}).permute({1, 2, 0, 3});
        const Tensor a = scaled_dot_product_attention(qkv[0].unsqueeze(0), qkv[1].unsqueeze(0),
                                                      qkv[2].unsqueeze(0), {}, 0, true)[0];
        const Tensor x = w[0] + linear(a.permute({1, 0, 2}).reshape({n, d}), w[2]);
        return x + linear(gelu(linear(layer_norm(x, {d}), w[3])), w[4]);
      }};
  const Shape weights[] = {{3 * d, d}, {d, d}, {4 * d, d}, {d, 4 * d}};
  for (std::int64_t i = 0; i < 4; ++i) block.inputs.push_back(numbers(weights[i], i + 2 + r) / 8);
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

// The error of a sum of roundings is the same for PyTorch and for Braid, but which of two right
// roundings of one draw is closer is chance: more rounds, less chance.
TEST_CASE("bfloat16: no further from float64 than PyTorch's", "[bfloat16]") {
  const std::function<Case(int)> cases[] = {[](int r) { return attention(false, r); },
                                            [](int r) { return attention(true, r); }, linear_layer,
                                            gpt_block};
  const bool host = here() == Device();
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    const std::size_t count = kRows[i].pytorch.size();
    std::vector<double> squares(count, 0), largest(count, 0);
    int rounds = 0;
    for (int r = 0; r < kRounds; ++r) {
      if (!host && !in_part(static_cast<std::size_t>(r))) continue;
      ++rounds;
      const Case of_round = cases[i](10 * r);
      const std::vector<Tensor> wide = results(of_round, DType::float64),
                                narrow = results(of_round, DType::bfloat16);
      for (std::size_t k = 0; k < count; ++k) {
        const Tensor e = narrow[k] - wide[k];
        squares[k] += mean(e * e).item<double>();
        largest[k] = std::max(largest[k], max(abs(e)).item<double>());
      }
    }
    const bool block = kRows[i].name == std::string("block"), all = rounds == kRounds;
    const double most = block ? (all ? 1.03 : 1.15) : (all ? 1.0001 : 1.05);
    double worst = 0;
    for (std::size_t k = 0; k < count; ++k) {
      INFO(kRows[i].name << ", result " << k);
      const Errors& theirs = kRows[i].pytorch[k];
      const double ratio = std::sqrt(squares[k] / rounds) / theirs.rms;
      CHECK(ratio <= most);
      CHECK(largest[k] <= 1.3 * theirs.largest);
      worst = std::max(worst, ratio);
    }
    std::cout << "SHOWS: bfloat16 on " << here() << ", " << kRows[i].name << ", " << rounds
              << " rounds: errors at most " << worst << " of PyTorch's\n";
  }
}

}  // namespace braid::test::on_device
