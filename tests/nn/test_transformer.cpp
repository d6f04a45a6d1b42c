// Attention and Transformer layers compared with PyTorch's (goldens/transformer.txt): state dicts
// by name, outputs, gradients; masks, errors, positional encoding.
#include <braid/braid.hpp>

#include "refused.hpp"
#include "support/golden.hpp"
#include "support/on_device.hpp"
#include "support/sanitized.hpp"
#include "trees.hpp"

namespace braid::test::on_device {
namespace {

using braid::testing::difference;
using braid::testing::Goldens;

const Goldens& goldens() {
  static const Goldens file("transformer.txt", here());
  return file;
}

/// Returns the golden state dict of `prefix`, without the prefix in its names.
StateDict state_of(const std::string& prefix) {
  StateDict dict;
  for (const auto& [name, t] : goldens().tensors())
    if (name.rfind(prefix + ".state.", 0) == 0)
      dict.set(name.substr(prefix.size() + 7), goldens().tensor(name));
  return dict;
}

/// Loads PyTorch's state, and compares the output and all gradients.
template <class M, class F>
void check_golden(const std::string& name, M model, std::size_t count, F call) {
  INFO(name);
  to(model, here(), DType::float64);
  CHECK(load_state_dict(model, state_of(name)).loaded == state_of(name).size());
  eval(model);
  std::vector<Tensor> x;
  for (std::size_t i = 0; i < count; ++i)
    x.push_back(goldens().tensor(str(name, ".x", i)).requires_grad_());
  const Tensor y = call(model, x);
  CHECK(difference(y.detach(), goldens().tensor(name + ".y")) == "");
  y.backward(goldens().tensor(name + ".dy"));
  for (std::size_t i = 0; i < count; ++i)
    CHECK(difference(x[i].grad(), goldens().tensor(str(name, ".dx", i))) == "");
  for (const auto& [path, p] : named_parameters(model)) {
    if (!goldens().has(name + ".grad." + path)) continue;
    INFO(path);
    REQUIRE(p.grad().defined());
    CHECK(difference(p.grad(), goldens().tensor(name + ".grad." + path)) == "");
  }
}

Tensor causal_mask(std::int64_t n) { return lt(arange(n).unsqueeze(1), arange(n)); }
Tensor padding() {
  const Tensor mask = zeros({2, 3}, {.dtype = DType::bool_});
  mask[1][2].fill_(1);
  return mask;
}

}  // namespace

TEST_CASE("MultiheadAttention: as PyTorch's, with its state", "[nn][attention]") {
  using Inputs = const std::vector<Tensor>&;
  using M = const nn::MultiheadAttention&;
  check_golden("self", nn::MultiheadAttention(4, 2), 1,
               [](M m, Inputs x) { return m(x[0], x[0], x[0]); });
  check_golden("causal", nn::MultiheadAttention(4, 2, {.batch_first = true}), 1,
               [](M m, Inputs x) { return m(x[0], x[0], x[0], {.is_causal = true}); });
  check_golden("causal", nn::MultiheadAttention(4, 2, {.batch_first = true}), 1,
               [](M m, Inputs x) { return m(x[0], x[0], x[0], {.attn_mask = causal_mask(3)}); });
  check_golden("masks", nn::MultiheadAttention(4, 2, {.batch_first = true}), 1, [](M m, Inputs x) {
    return m(x[0], x[0], x[0],
             {.key_padding_mask = padding(), .attn_mask = goldens().tensor("added")});
  });
  check_golden("cross", nn::MultiheadAttention(4, 2, {.bias = false}), 2,
               [](M m, Inputs x) { return m(x[0], x[1], x[1]); });
  check_golden("weights", nn::MultiheadAttention(4, 2), 2,
               [](M m, Inputs x) { return m.with_weights(x[0], x[1], x[1]).second; });
}

TEST_CASE("Transformer: encoder and decoder as PyTorch's, with their state", "[nn][attention]") {
  for (const bool pre : {false, true}) {
    nn::TransformerOptions options{.dim_feedforward = 3, .norm_first = pre};
    if (pre) options.activation = nn::TransformerActivation::gelu;
    const std::string name = pre ? "pre" : "post";
    check_golden(
        "encoder." + name,
        nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2, options), 1, nn::LayerNorm(4)), 1,
        [](const nn::TransformerEncoder& m, const std::vector<Tensor>& x) {
          return m(x[0], {.key_padding_mask = padding(), .attn_mask = causal_mask(3)});
        });
    check_golden("decoder." + name,
                 nn::TransformerDecoder(nn::TransformerDecoderLayer(4, 2, options), 1), 2,
                 [](const nn::TransformerDecoder& m, const std::vector<Tensor>& x) {
                   return m(x[0], x[1], {.is_causal = true});
                 });
  }
}

TEST_CASE("MultiheadAttention: weights of float16 do not overflow before they are scaled",
          "[nn][attention]") {
  nn::MultiheadAttention m = home(nn::MultiheadAttention(64, 1, {.batch_first = true}));
  {
    const NoGrad guard;
    m.in_proj_weight.zero_();
    m.in_proj_bias.fill_(32);  // q k^T is 65536
  }
  const Tensor x = ones({1, 4, 64}, {.device = here()});
  const Autocast guard(DType::float16);
  const Tensor weights = m.with_weights(x, x, x).second.detach();
  CHECK(weights.to_vector<double>() == std::vector<double>(16, 0.25));
}

TEST_CASE(
    "MultiheadAttention: apart, packed and with weights agree; without batch; masks of each head",
    "[nn][attention]") {
  nn::MultiheadAttention m = home(nn::MultiheadAttention(6, 3, {.batch_first = true}));
  const Tensor x = random_tensor({2, 5, 6}, DType::float32, here(), 1), other = x.clone();
  const Tensor packed = m(x, x, x).detach();
  CHECK(allclose(m(x, other, other).detach(), packed, 1e-5, 1e-6));
  CHECK(allclose(m(x, other, x.clone()).detach(), packed, 1e-5, 1e-6));
  const auto [y, weights] = m.with_weights(x, x, x, {.is_causal = true});
  CHECK(allclose(y.detach(), m(x, x, x, {.is_causal = true}).detach(), 1e-5, 1e-6));
  CHECK(allclose(weights.sum({2}).detach(), ones({2, 5}), 1e-5, 1e-6));
  CHECK(weights.detach()[0][0].to_vector<float>()[1] == 0);
  CHECK(allclose(m(x[0], x[0], x[0]).detach(), packed[0], 1e-5, 1e-6));
  const Tensor heads = zeros({6, 5, 5}, {.dtype = DType::bool_});
  heads[4].copy_(causal_mask(5));  // of batch 1, head 1
  const Tensor masked = m(x, x, x, {.attn_mask = heads}).detach();
  CHECK_SAME_BITS(masked[0], packed[0]);
  CHECK_FALSE(allclose(masked[1], packed[1], 1e-3, 1e-3));
  // With both masks, a key is visible if neither hides it.
  const Tensor pad = zeros({2, 5}, {.dtype = DType::bool_});
  pad[0][4].fill_(1);
  const Tensor both = m(x, x, x, {.key_padding_mask = pad, .is_causal = true}).detach();
  CHECK(allclose(both[1], m(x, x, x, {.is_causal = true}).detach()[1], 1e-5, 1e-6));
  CHECK(allclose(both, m(x, x, x, {.key_padding_mask = pad, .attn_mask = causal_mask(5)}).detach(),
                 1e-6, 1e-7));
}

TEST_CASE("Transformer: layers are copies; dropout only in training; state by PyTorch's names",
          "[nn][attention]") {
  const nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 3});
  nn::TransformerEncoder encoder(layer, 2);
  const Names names = keys(state_dict(encoder));
  CHECK(names.size() == 24);
  CHECK(names[0] == "layers.0.self_attn.in_proj_weight");
  CHECK(names[3] == "layers.0.self_attn.out_proj.bias");
  CHECK(names[4] == "layers.0.linear1.weight");
  CHECK(names[23] == "layers.1.norm2.bias");
  CHECK(encoder.layers[0].linear1.weight.id() != encoder.layers[1].linear1.weight.id());
  encoder = home(std::move(encoder));
  const Tensor x = random_tensor({3, 2, 4}, DType::float32, here(), 1);
  CHECK_FALSE(equal(encoder(x).detach(), encoder(x).detach()));
  eval(encoder);
  CHECK_SAME_BITS(encoder(x).detach(), encoder(x).detach());
}

TEST_CASE("PositionalEncoding: sines and cosines, in both orders", "[nn][attention]") {
  nn::PositionalEncoding first =
                             home(nn::PositionalEncoding(5, {.max_len = 7, .batch_first = true})),
                         second = home(nn::PositionalEncoding(5, {.max_len = 7}));
  eval(first);
  eval(second);
  const Tensor y = first(zeros({2, 4, 5}));
  const std::vector<float> v = y.to_vector<float>();
  for (std::size_t t = 0; t < 4; ++t)
    for (std::size_t i = 0; i < 5; ++i) {
      const double angle =
          static_cast<double>(t) / std::pow(10000.0, static_cast<double>(i / 2 * 2) / 5);
      CHECK(std::fabs(v[5 * t + i] - (i % 2 == 0 ? std::sin(angle) : std::cos(angle))) < 1e-6);
    }
  CHECK_SAME_BITS(second(zeros({4, 2, 5})).transpose(0, 1).contiguous(), y);
  CHECK(first.pe.shape() == Shape{1, 7, 5});
  CHECK(second.pe.shape() == Shape{7, 1, 5});
  CHECK_THROWS_TEXT(ShapeError,
                    "PositionalEncoding: expected x [batch, n, 5] with n <= 7, got [2, 8, 5]",
                    first(zeros({2, 8, 5})));
  CHECK_THROWS_TEXT(ArgumentError, "PositionalEncoding: expected d_model >= 1*",
                    nn::PositionalEncoding(0));
}

TEST_CASE("attention layers: a float mask beside a query of autocast", "[nn][attention]") {
  manual_seed(2);
  nn::TransformerEncoder encoder =
      home(nn::TransformerEncoder(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 4}), 2));
  const EvalGuard guard(encoder);
  const Tensor x = random_tensor({5, 2, 8}), hidden = triu(ones({5, 5}), 1),
               mask = masked_fill(zeros({5, 5}), hidden > 0, -INFINITY);
  const Tensor want = encoder(x, {.attn_mask = mask});
  const Autocast autocast(DType::bfloat16);
  const Tensor low = x.to(DType::bfloat16);
  CHECK_CLOSE(encoder(low, {.attn_mask = mask}).to(DType::float32), array_of(want),
              (Tolerance{0.05, 0.05}));
}

TEST_CASE("attention layers: bad inputs", "[nn][attention][errors]") {
  refuses<ArgumentError>("")({
      {"MultiheadAttention: expected embed_dim >= 1 that num_heads >= 1 divides, got 6 and 4",
       [] { nn::MultiheadAttention(6, 4); }},
      {"MultiheadAttention: *got 6 and 0", [] { nn::MultiheadAttention(6, 0); }},
      {"MultiheadAttention: *got -6 and 2", [] { nn::MultiheadAttention(-6, 2); }},
      {"MultiheadAttention: expected 0 <= dropout <= 1, got 2",
       [] { nn::MultiheadAttention(6, 2, {.dropout = 2}); }},
      {"TransformerEncoder: expected num_layers >= 0, got -1",
       [] {
         nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2, {.dim_feedforward = 3}), -1);
       }},
      {"TransformerEncoder: expected num_layers <= 10000, got 1000000000",
       [] {
         nn::TransformerEncoder(nn::TransformerEncoderLayer(4, 2, {.dim_feedforward = 3}),
                                1'000'000'000);
       }},
      {"PositionalEncoding: expected d_model >= 1 and max_len >= 0 whose product is below 2^61, "
       "got 4 and 4611686018427387904",
       [] { nn::PositionalEncoding(4, {.max_len = std::int64_t{1} << 62}); }},
      {"PositionalEncoding: *got 0 and 5", [] { nn::PositionalEncoding(0, {.max_len = 5}); }},
  });
#if !BRAID_SANITIZED  // a sanitizer ends the process if such an allocation fails
  CHECK_THROWS_TEXT(OutOfMemoryError, "expected 17592186044416 free bytes",
                    nn::PositionalEncoding(4, {.max_len = std::int64_t{1} << 40}));
#endif
  const nn::MultiheadAttention m = home(nn::MultiheadAttention(4, 2, {.batch_first = true}));
  const Tensor x = ones({2, 3, 4}), wide = zeros({3, 3}, {.dtype = DType::float64}),
               pad = zeros({2, 4}, {.dtype = DType::bool_});
  refuses<ShapeError>("MultiheadAttention: expected ")({
      {"query of rank 3 that ends in 4, got [2, 3, 5]", [&] { return m(ones({2, 3, 5}), x, x); }},
      {"key of rank 3*", [&] { return m(x, ones({3, 4}), x); }},
      {"key and value of one shape*", [&] { return m(x, x, ones({2, 4, 4})); }},
      {"key_padding_mask [2, 3], got [2, 4]",
       [&] { return m(x, x, x, {.key_padding_mask = pad}); }},
      {"attn_mask [3, 3] or [4, 3, 3], got [2, 3, 3]",
       [&] { return m(x, x, x, {.attn_mask = zeros({2, 3, 3})}); }},
  });
  refuses<DTypeError>("MultiheadAttention: expected ")({
      {"key_padding_mask of bool, got float32",
       [&] { return m(x, x, x, {.key_padding_mask = zeros({2, 3})}); }},
      {"attn_mask of bool or float32, got float64",
       [&] { return m(x, x, x, {.attn_mask = wide}); }},
  });
}

}  // namespace braid::test::on_device
