// The errors of bfloat16 against float64 are at most those of PyTorch's: attention, a linear layer
// and a GPT block, their results and gradients. In a block, what is rounded between its ops is most
// of the error. linear_add rounds less often. With the same ops as PyTorch's, which of two right
// roundings is closer is chance.
#include <cmath>
#include <functional>
#include <iostream>

#include <braid/core/ops/attention.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/norm.hpp>
#include <braid/core/safetensors.hpp>

#include "shorthand.hpp"
#include "support/tests_dir.hpp"

namespace braid::test::on_device {
namespace {

/// The errors of PyTorch's bfloat16, [draw, result], which goldens/make_bfloat16_errors.py wrote.
Tensor golden(const std::string& name) {
  static const Safetensors errors =
      load_safetensors(tests_dir() + "/goldens/bfloat16_errors.safetensors");
  return errors.at(name);
}
/// How many draws are compared. On emulated devices, where one takes seconds, there are few.
int draws_here() { return emulated() ? 16 : static_cast<int>(golden("linear.rms").size(0)); }

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
/// A block of PyTorch's ops, or of Braid's for layers with what follows them.
Case gpt_block(int r, bool fused) {
  constexpr std::int64_t d = 64, n = 48;
  Case block{
      {numbers({n, d}, 1 + r)}, numbers({n, d}, 7 + r), [fused](const std::vector<Tensor>& w) {
        const Tensor qkv =
            linear(layer_norm(w[0], {d}), w[1]).reshape({n, 3, 2, d / 2}).permute({1, 2, 0, 3});
        const Tensor a = scaled_dot_product_attention(qkv[0].unsqueeze(0), qkv[1].unsqueeze(0),
                                                      qkv[2].unsqueeze(0), {}, 0, true)[0]
                             .permute({1, 0, 2})
                             .reshape({n, d});
        const Tensor x = fused ? linear_add(a, w[2], {}, w[0]) : w[0] + linear(a, w[2]);
        const Tensor y = layer_norm(x, {d});
        return fused ? linear_add(linear_gelu(y, w[3]), w[4], {}, x)
                     : x + linear(gelu(linear(y, w[3])), w[4]);
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
// roundings of one draw is closer is chance: more draws, less chance.
TEST_CASE("bfloat16: no further from float64 than PyTorch's", "[bfloat16]") {
  struct Compared {
    const char *name, *pytorch;
    double most_of_few, most_of_part;  // on emulated devices: of all their draws, of a part
    std::function<Case(int)> at;
  };
  const Compared list[] = {
      {"attention", "attention", 1.0001, 1.05, [](int r) { return attention(false, r); }},
      {"causal attention", "causal attention", 1.0001, 1.05,
       [](int r) { return attention(true, r); }},
      {"linear", "linear", 1.0001, 1.05, linear_layer},
      {"a block", "block", 1.03, 1.1, [](int r) { return gpt_block(r, true); }},
      {"a block of PyTorch's ops", "block", 1.03, 1.1, [](int r) { return gpt_block(r, false); }}};
  for (const Compared& compared : list) {
    const std::string name = compared.pytorch;
    const auto rms = golden(name + ".rms"), far = golden(name + ".largest");
    const auto count = static_cast<std::size_t>(rms.size(1));
    std::vector<double> ours(count, 0), theirs(count, 0), largest(count, 0), allowed(count, 0);
    int draws = 0;
    for (int r = 0; r < draws_here(); ++r) {
      if (emulated() && !in_part(static_cast<std::size_t>(r))) continue;
      ++draws;
      const Case of_draw = compared.at(10 * r);
      const std::vector<Tensor> wide = results(of_draw, DType::float64),
                                narrow = results(of_draw, DType::bfloat16);
      for (std::size_t k = 0; k < count; ++k) {
        const Tensor e = narrow[k] - wide[k];
        const auto at = [&](const Tensor& x) {
          return x[r][static_cast<std::int64_t>(k)].item<double>();
        };
        ours[k] += mean(e * e).item<double>();
        theirs[k] += at(rms) * at(rms);
        largest[k] = std::max(largest[k], max(abs(e)).item<double>());
        allowed[k] = std::max(allowed[k], 1.3 * at(far));
      }
    }
    // 1, but for the order of sums
    const double most = !emulated()             ? on_cpu() ? 1.0001 : 1.001
                        : draws == draws_here() ? compared.most_of_few
                                                : compared.most_of_part;
    std::string ratios;
    for (std::size_t k = 0; k < count; ++k) {
      INFO(compared.name << ", result " << k);
      const double ratio = std::sqrt(ours[k] / theirs[k]);
      CHECK(ratio <= most);
      CHECK(largest[k] <= allowed[k]);
      ratios += str(k > 0 ? ", " : "", ratio);
    }
    std::cout << "SHOWS: bfloat16 on " << here() << ", " << compared.name << ", " << draws
              << " draws: errors " << ratios << " of PyTorch's\n";
  }
}

}  // namespace braid::test::on_device
