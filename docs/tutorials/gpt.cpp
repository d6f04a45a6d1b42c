// A small GPT learns to write Shakespeare, character by character, over all devices. Then it
// continues a prompt.
//   BRAID_CPU_DEVICES=2 BRAID_DATA=<folder with tinyshakespeare.txt> ./gpt
// --help lists the options.
#include <braid/braid.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace braid;

constexpr std::int64_t kHeads = 4;

struct Options : training::Options {
  std::int64_t characters = std::int64_t{1} << 40, layers = 4, width = 128, context = 128,
               length = 300, top_k = 20;
  double temperature = 0.8, bar = 2.6;
  std::string prompt = "the ";
  bool autocast = false, recompute = false;
};

/// Causal self-attention, then a feed-forward network; both are added to the residual stream.
struct Block : nn::Module {
  nn::LayerNorm norm1, norm2;
  nn::Linear qkv, projection, up, down;
  explicit Block(std::int64_t width)
      : norm1(width),
        norm2(width),
        qkv(width, 3 * width),
        projection(width, width),
        up(width, 4 * width),
        down(4 * width, width) {}
  Tensor operator()(const Tensor& x) const {
    // scaled_dot_product_attention of queries, keys and values from one product: [batch, positions,
    // 3, heads, width of a head]. Causal: no position attends to later ones.
    const Tensor parts =
        qkv(norm1(x)).reshape({x.size(0), x.size(1), 3, kHeads, x.size(2) / kHeads});
    const Tensor h = x + projection(packed_attention(parts, {}, 0, true).flatten(2));
    return h + down(linear_gelu(norm2(h), up.weight, up.bias, "tanh"));
  }
  BRAID_FIELDS(norm1, norm2, qkv, projection, up, down)
};

struct GPT : nn::Module {
  nn::Embedding characters, positions;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  bool recompute;
  GPT(std::int64_t vocabulary, const Options& o)
      : characters(vocabulary, o.width),
        positions(o.context, o.width),
        norm(o.width),
        head(o.width, vocabulary),
        recompute(o.recompute) {
    for (std::int64_t i = 0; i < o.layers; ++i) blocks.emplace_back(o.width);
    const NoGrad guard;
    nn::init::normal_(characters.weight, 0, 0.5);
    // learned; neighbouring positions start with similar values
    positions.weight.copy_(nn::PositionalEncoding(o.width, {.max_len = o.context}).pe.squeeze(1));
  }
  // [batch, positions] -> [batch, positions, vocabulary]
  Tensor operator()(const Tensor& text) const {
    Tensor h = characters(text) + positions.weight.narrow(0, 0, text.size(1));
    // checkpoint keeps only the input of a block, and runs the block again in the backward
    for (const Block& block : blocks) h = recompute ? checkpoint(block, h) : block(h);
    return head(norm(h));
  }
  BRAID_FIELDS(characters, positions, blocks, norm, head)
};

template <class Model> Tensor loss_of(const Model& model, const data::NextToken& batch) {
  return nn::cross_entropy(model(batch.input.to(best_device())).flatten(0, 1),
                           batch.target.to(best_device()).flatten());
}

/// Returns the mean of -log2 of the probability that the model gave to the next character.
template <class Model>
double bits_per_character(const Model& model, const data::TokenWindows& text) {
  const NoGrad guard;
  double sum = 0;
  for (const auto& batch : data::DataLoader(text, {.batch_size = 32})) {
    const Tensor loss = loss_of(model, batch);
    sum += loss.item<double>() * static_cast<double>(batch.input.size(0));
  }
  return sum / static_cast<double>(text.size()) / std::log(2.0);
}

/// Continues a text [1, characters]. The next character is sampled from the top_k most probable
/// ones. A lower temperature favours the most probable character more.
template <class Model> Tensor write(const Model& model, Tensor text, const Options& o) {
  const NoGrad guard;
  for (std::int64_t i = 0; i < o.length; ++i) {
    const Tensor seen = text.slice(1, std::max<std::int64_t>(0, text.size(1) - o.context),
                                   text.size(1)),
                 scores = model(seen).select(1, -1);
    const auto [best, which] = topk(scores / o.temperature, std::min(o.top_k, scores.size(1)));
    text = cat({text, gather(which, 1, multinomial(softmax(best), 1))}, 1);
  }
  return text;
}

bool run(const Options& options) {
  const auto shakespeare = data::find_text("tinyshakespeare.txt", options.data);
  if (!shakespeare) print("No tinyshakespeare.txt here: sentences made by a program instead");
  const std::string text = shakespeare ? *shakespeare : data::synthetic_text(20'000);
  const data::CharVocabulary vocabulary(text);
  const Tensor tokens = vocabulary.encode(text).slice(0, 0, options.characters),
               prompt = vocabulary.encode(options.prompt).unsqueeze(0);
  const std::int64_t n = tokens.numel() * 9 / 10,
                     half = std::max<std::int64_t>(1, options.context / 2);
  const data::TokenWindows learned(tokens.slice(0, 0, n), options.context, half),
      unseen(tokens.slice(0, n, tokens.numel()), options.context, options.context);
  data::DataLoader loader(learned, {.batch_size = options.batch, .shuffle = true, .workers = 1});

  parallel::DataParallel model(GPT(vocabulary.size(), options));
  to(model, best_device());
  const std::vector<Tensor> weights = parameters(model);
  print(vocabulary.size(), " characters, ", training::summary(model).parameters, " parameters, ", n,
        " characters of text, devices: ", device_count());
  optim::AdamW optimizer(weights, {.lr = options.lr, .beta2 = 0.99, .weight_decay = 0.1});
  // Warm-up, then a half cosine.
  optim::OneCycleSchedule schedule(optimizer, {.max_lr = options.lr,
                                               .steps = options.epochs * loader.batches(),
                                               .pct_start = 0.05,
                                               .cycle_momentum = false});
  training::Checkpoint checkpoint(options.checkpoint, model, optimizer, schedule, loader);
  if (options.resume) checkpoint.load_latest();

  for (auto& batch : training::progress(loader, options, checkpoint)) {
    const Tensor loss = [&] {
      const Autocast mixed(DType::bfloat16, options.autocast);  // for the forward only
      return loss_of(model, batch);
    }();
    optimizer.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(weights, 1);
    optimizer.step();
    schedule.step();
    batch.report("loss", loss);
    if (batch.is_last_of_epoch()) checkpoint.save();
  }
  if (training::stop_requested() != 0) return false;
  const std::size_t peak = memory_stats(best_device()).peak;
  eval(model);
  const double bits = bits_per_character(model, unseen);
  print(vocabulary.decode(write(model, prompt.to(best_device()), options)));
  std::printf("%.3f bits per character on %d unseen ones, trained in %d MiB\n", bits,
              static_cast<int>(unseen.size() * options.context), static_cast<int>(peak >> 20));
  return bits < options.bar;
}

int main(int argc, char** argv) {
  try {
    Options options;
    static_cast<training::Options&>(options) = training::options(
        argc, argv, {.epochs = 2, .batch = 16, .lr = 3e-3},
        {{"characters", "N", "read the first N", &options.characters, 10},
         {"layers", "N", "of the network", &options.layers, 1},
         {"width", "N", "numbers that stand for a character; a multiple of 4", &options.width, 4},
         {"context", "N", "characters that it looks back", &options.context, 1},
         {"autocast", "", "products in bfloat16", &options.autocast},
         {"recompute", "", "less memory: blocks are computed again in the backward",
          &options.recompute},
         {"prompt", "TEXT", "what to go on with, after training", &options.prompt},
         {"length", "N", "characters to write", &options.length},
         {"temperature", "X",
          "0.1: nearly always the most likely character, 1: as often as it is likely",
          &options.temperature, 0.01},
         {"top_k", "N", "one of the N most likely", &options.top_k, 1},
         {"bar", "X", "fail above so many bits per character", &options.bar}});
    manual_seed(options.seed);
    return run(options) ? 0 : std::max(1, training::exit_status());
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}
