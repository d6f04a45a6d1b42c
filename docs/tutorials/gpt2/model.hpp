#pragma once
// GPT-2 (Radford et al. 2019): its sizes, and the model, whose parts have Hugging Face's names.
#include <braid/braid.hpp>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpt2 {

using namespace braid;

/// The sizes of a model.
struct Config {
  std::int64_t layers = 12, width = 768, heads = 12, vocabulary = 50257, positions = 1024;
  double dropout = 0;      ///< of the embeddings, of attention, and before each sum of a block
  bool recompute = false;  ///< blocks are computed again in the backward, which saves memory
};

/// Returns the sizes that a name stands for: gpt2 (124 million parameters), medium (355), large
/// (774), xl (1558), or tiny, for tests. Throws ArgumentError for another name.
inline Config config_of(std::string_view name) {
  if (name == "gpt2") return {};
  if (name == "medium") return {.layers = 24, .width = 1024, .heads = 16};
  if (name == "large") return {.layers = 36, .width = 1280, .heads = 20};
  if (name == "xl") return {.layers = 48, .width = 1600, .heads = 25};
  if (name == "tiny")
    return {.layers = 2, .width = 32, .heads = 2, .vocabulary = 257, .positions = 64};
  throw ArgumentError(str("gpt2: expected gpt2, medium, large, xl or tiny, got ", name));
}

/// The keys and values of the tokens so far, for each block: [batch, heads, tokens, width of a
/// head]. With them a model computes only the new tokens.
struct Cache {
  std::vector<std::pair<Tensor, Tensor>> blocks;
  [[nodiscard]] std::int64_t tokens() const { return blocks.empty() ? 0 : blocks[0].first.size(2); }
};

/// Returns x + dropout(layer(y), p), the end of a part of a block. Without dropout it is one op,
/// which rounds once.
inline Tensor add_layer(const Tensor& x, const nn::Linear& layer, const Tensor& y, double p) {
  if (p > 0) return x + braid::dropout(layer(y), p, true);
  return linear_add(y, layer.weight, layer.bias, x);
}

/// x + causal self-attention of the normalised x, y.
struct Attention : nn::Module {
  nn::Linear c_attn, c_proj;
  std::int64_t heads;
  double dropout;
  explicit Attention(const Config& c)
      : c_attn(c.width, 3 * c.width),
        c_proj(c.width, c.width),
        heads(c.heads),
        dropout(c.dropout) {}

  Tensor operator()(const Tensor& x, const Tensor& y) const {
    const double p = training ? dropout : 0;
    return add_layer(x, c_proj, packed_attention(parts_of(y), {}, p, true).flatten(2), p);
  }
  /// The same, where x follows the tokens of the cache, which gets its keys and values.
  Tensor operator()(const Tensor& x, const Tensor& y, std::pair<Tensor, Tensor>& cache) const {
    const Tensor parts = parts_of(y).permute({2, 0, 3, 1, 4}), &q = parts[0];
    auto& [keys, values] = cache;
    const std::int64_t before = keys.defined() ? keys.size(2) : 0, n = x.size(1);
    keys = before == 0 ? parts[1] : cat({keys, parts[1]}, 2);
    values = before == 0 ? parts[2] : cat({values, parts[2]}, 2);
    // query i sees the keys 0 … before + i
    Tensor seen;
    if (before > 0 && n > 1)
      seen = ones({n, before + n}, {.device = x.device(), .dtype = DType::bool_}).tril(before);
    const Tensor mixed = scaled_dot_product_attention(q, keys, values, seen, 0, before == 0);
    return add_layer(x, c_proj, mixed.transpose(1, 2).flatten(2), 0);
  }
  BRAID_FIELDS(c_attn, c_proj)

 private:
  /// Queries, keys and values from one product: [batch, positions, 3, heads, width of a head].
  [[nodiscard]] Tensor parts_of(const Tensor& x) const {
    return c_attn(x).reshape({x.size(0), x.size(1), 3, heads, x.size(2) / heads});
  }
};

/// x + a feed-forward network of the normalised x, y.
struct Mlp : nn::Module {
  nn::Linear c_fc, c_proj;
  double dropout;
  explicit Mlp(const Config& c)
      : c_fc(c.width, 4 * c.width), c_proj(4 * c.width, c.width), dropout(c.dropout) {}
  Tensor operator()(const Tensor& x, const Tensor& y) const {
    return add_layer(x, c_proj, linear_gelu(y, c_fc.weight, c_fc.bias, "tanh"),
                     training ? dropout : 0);
  }
  BRAID_FIELDS(c_fc, c_proj)
};

/// Attention, then a feed-forward network, each of a normalised input and added to it.
struct Block : nn::Module {
  nn::LayerNorm ln_1;
  Attention attn;
  nn::LayerNorm ln_2;
  Mlp mlp;
  explicit Block(const Config& c) : ln_1(c.width), attn(c), ln_2(c.width), mlp(c) {}

  Tensor operator()(const Tensor& x) const {
    const Tensor h = attn(x, ln_1(x));
    return mlp(h, ln_2(h));
  }
  Tensor operator()(const Tensor& x, std::pair<Tensor, Tensor>& cache) const {
    const Tensor h = attn(x, ln_1(x), cache);
    return mlp(h, ln_2(h));
  }
  BRAID_FIELDS(ln_1, attn, ln_2, mlp)
};

/// GPT-2. There is no weight for the head: it is that of the token embedding.
///
/// Shapes    tokens [batch, n] int64, n <= positions → logits [batch, n, vocabulary]
/// Starts    normal with standard deviation 0.02, divided by √(2 layers) for the last product of
///           each sum; biases 0
/// Throws    ShapeError if n > positions
struct GPT2 : nn::Module {
  nn::Embedding wte, wpe;  // of tokens and of positions
  std::vector<Block> h;
  nn::LayerNorm ln_f;
  Config config;

  explicit GPT2(const Config& c)
      : wte(c.vocabulary, c.width), wpe(c.positions, c.width), ln_f(c.width), config(c) {
    if (c.heads < 1 || c.width % c.heads != 0)
      throw ArgumentError(
          str("gpt2: expected a width that ", c.heads, " heads divide, got ", c.width));
    for (std::int64_t i = 0; i < c.layers; ++i) h.emplace_back(c);
    const double small = 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers));
    for (const auto& [name, p] : named_parameters(*this)) {
      if (p.dim() == 2) nn::init::normal_(p, 0, name.ends_with("c_proj.weight") ? small : 0.02);
      else if (name.ends_with("bias")) nn::init::zeros_(p);
    }
  }

  Tensor operator()(const Tensor& tokens) const {
    Tensor x = embedded(tokens, 0);
    if (config.dropout > 0) x = dropout(x, config.dropout, training);
    for (const Block& block : h) x = config.recompute ? checkpoint(block, x) : block(x);
    return linear(ln_f(x), wte.weight);
  }
  /// Returns the logits of tokens that follow those of the cache, and adds them to the cache.
  Tensor operator()(const Tensor& tokens, Cache& cache) const {
    Tensor x = embedded(tokens, cache.tokens());
    cache.blocks.resize(h.size());
    for (std::size_t i = 0; i < h.size(); ++i) x = h[i](x, cache.blocks[i]);
    return linear(ln_f(x), wte.weight);
  }
  BRAID_FIELDS(wte, wpe, h, ln_f)

 private:
  [[nodiscard]] Tensor embedded(const Tensor& tokens, std::int64_t before) const {
    if (tokens.dim() != 2 || before + tokens.size(1) > config.positions)
      throw ShapeError(str("gpt2: expected tokens [batch, n] with n <= ", config.positions - before,
                           ", got ", tokens.shape()));
    return wte(tokens) + wpe.weight.narrow(0, before, tokens.size(1));
  }
};

/// The loss of the next tokens, where the logits are: with DataParallel no device gets the logits
/// of another one.
struct WithLoss : nn::Module {
  GPT2 transformer;
  explicit WithLoss(GPT2&& model) : transformer(std::move(model)) {}
  LossSum operator()(const Tensor& input, const Tensor& target) const {
    return cross_entropy(sum_and_count, transformer(input).flatten(0, 1), target.flatten());
  }
  BRAID_FIELDS(transformer)
};

}  // namespace gpt2
