// A word-level language model over all devices. Two LSTM layers predict the next word and carry
// their state from one window of text to the next.
//   BRAID_CPU_DEVICES=2 BRAID_DATA=<folder with wikitext2-test.txt and -valid.txt> ./word_lm
// --help lists the options.
#include <braid/braid.hpp>

#include <cmath>
#include <cstdio>

using namespace braid;

constexpr std::int64_t kVocabulary = 10'000, kLayers = 2, kWindow = 35;

struct Options : training::Options {
  std::int64_t words = std::int64_t{1} << 40, width = 200;
  double bar = 195;
};

// Time is dim 0 of words and scores, and layers are dim 0 of the state. The batch is dim 1 of all
// of them; DataParallel splits and gathers along it.
struct Output {
  Tensor scores;  // [time, batch, vocabulary]
  nn::LSTMState state;
  BRAID_FIELDS(scores, state)
};

struct WordModel : nn::Module {
  nn::Embedding encoder;
  nn::LSTM rnn;
  nn::Linear decoder;
  nn::Dropout drop{0.2};
  WordModel(std::int64_t words, std::int64_t width)
      : encoder(words, width),
        rnn(width, width, {.num_layers = kLayers, .dropout = 0.2}),
        decoder(width, words) {
    nn::init::uniform_(encoder.weight, -0.1, 0.1);
    nn::init::uniform_(decoder.weight, -0.1, 0.1);
    nn::init::zeros_(decoder.bias);
  }
  Output operator()(const Tensor& words, const nn::LSTMState& state) const {
    const nn::LSTMOutput h = rnn(drop(encoder(words)), state);
    return {decoder(drop(h.output)), h.state()};
  }
  BRAID_FIELDS(encoder, rnn, decoder, drop)
};

/// The state before the first word.
nn::LSTMState nothing(std::int64_t batch, std::int64_t width) {
  const Tensor zero = zeros({kLayers, batch, width}, {.device = best_device()});
  return {zero, zero};
}

Tensor loss_of(const Tensor& scores, const Tensor& target) {
  return nn::cross_entropy(scores.flatten(0, 1), target.to(best_device()).flatten());
}

/// Returns the perplexity: the effective number of words between which the model chooses.
template <class Model>
double perplexity(const Model& model, const data::TokenStreams& text, nn::LSTMState state) {
  const NoGrad guard;
  double sum = 0, count = 0;
  for (const auto& [input, target] : text) {
    auto [scores, next] = model(input.to(best_device()), state);
    const Tensor loss = loss_of(scores, target);
    sum += loss.item<double>() * static_cast<double>(target.numel());
    count += static_cast<double>(target.numel());
    state = next;
  }
  return std::exp(sum / count);
}

/// Returns the perplexity of a model that knows only word frequencies. Each count is increased by
/// one, so that no word is impossible.
double unigram_perplexity(const Tensor& training, const Tensor& unseen, std::int64_t words) {
  const Tensor counts = scatter_add(ones({words}), 0, training, ones({training.numel()}));
  return std::exp(-log(counts / counts.sum())[unseen].mean().item<double>());
}

bool run(const Options& options) {
  const auto known = data::find_text("wikitext2-test.txt", options.data),
             other = data::find_text("wikitext2-valid.txt", options.data);
  if (!known || !other)
    print(
        "No wikitext2-test.txt and wikitext2-valid.txt here: sentences made by a program instead");
  const std::string text = known && other ? *known : data::synthetic_text(20'000),
                    unseen_text = known && other ? *other : data::synthetic_text(5'000, 1);
  const data::WordVocabulary vocabulary(text, kVocabulary);
  const Tensor training = vocabulary.encode(text).slice(0, 0, options.words),
               unseen = vocabulary.encode(unseen_text).slice(0, 0, options.words);
  data::TokenStreams pages(training, options.batch, kWindow);
  const data::TokenStreams unseen_pages(unseen, options.batch, kWindow);

  parallel::DataParallel model(WordModel(vocabulary.size(), options.width), devices(), {.dim = 1});
  to(model, best_device());
  const std::vector<Tensor> weights = parameters(model);
  optim::Adam optimizer(weights, {.lr = options.lr});
  print(vocabulary.size(), " words, ", training::summary(model).parameters, " parameters, ",
        training.numel(), " words of text, devices: ", device_count());
  std::printf("perplexity on %d unseen words: %.1f by counting words\n",
              static_cast<int>(unseen.numel()),
              unigram_perplexity(training, unseen, vocabulary.size()));

  double reached = 0;
  nn::LSTMState state;
  for (auto& batch : training::progress(pages, options)) {
    if (batch.batch_of_epoch() == 0) state = nothing(options.batch, options.width);
    auto [scores, next] = model(batch.input.to(best_device()), state);
    const Tensor loss = loss_of(scores, batch.target);
    optimizer.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(weights, 0.25);
    optimizer.step();
    // the state is kept, but gradients do not cross windows
    state = {next.h.detach(), next.c.detach()};
    batch.report("loss", loss);
    if (!batch.is_last_of_epoch()) continue;
    eval(model);
    reached = perplexity(model, unseen_pages, nothing(options.batch, options.width));
    train(model);
    std::printf("perplexity on %d unseen words: %.1f after epoch %d\n",
                static_cast<int>(unseen.numel()), reached, static_cast<int>(batch.epoch()) + 1);
    std::fflush(stdout);
  }
  return reached > 0 && reached <= options.bar;
}

int main(int argc, char** argv) {
  try {
    Options options;
    static_cast<training::Options&>(options) = training::options(
        argc, argv, {.epochs = 4, .batch = 20, .lr = 2e-3},
        {{"words", "N", "read the first N words of each text", &options.words, 1},
         {"width", "N", "numbers that stand for a word, and that a layer remembers", &options.width,
          1},
         {"bar", "X", "fail above this perplexity", &options.bar}});
    if (!options.checkpoint.empty())
      throw ArgumentError("--checkpoint: expected none: the state would have to be stored too");
    manual_seed(options.seed);
    return run(options) ? 0 : 1;
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}
