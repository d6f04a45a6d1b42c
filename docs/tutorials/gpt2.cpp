// GPT-2: writes text with the weights of Hugging Face's hub, and trains on text or tokens, over all
// devices.
//   ./gpt2 --weights model.safetensors --vocab vocab.json --merges merges.txt --prompt "Once upon"
//   ./gpt2 --weights … --vocab … --merges … --train mine.txt --save mine.safetensors --autocast
//   ./gpt2 --config tiny --train any.txt --prompt "the "     (a small model of bytes)
// --help lists the options.
#include <braid/braid.hpp>

#include <chrono>
#include <cstdio>

#include "gpt2/generate.hpp"
#include "gpt2/text.hpp"
#include "gpt2/training.hpp"
#include "gpt2/weights.hpp"

using namespace braid;

struct Options : training::Options {
  std::string config = "gpt2", weights, save, vocab, merges, train, prompt, tokens;
  gpt2::TrainerOptions trainer;
  gpt2::GenerateOptions generate;
  std::int64_t context = 1024, warm_up = -1, bench = 0;
  double dropout = 0, bar = 1e9;
  bool recompute = false;
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Trains for options.epochs. Returns the loss: of the last tenth of the tokens, which it has not
/// seen, or of the last batch if they are too few.
double train(gpt2::GPT2& model, const Tensor& tokens, Options o) {
  const std::int64_t n = tokens.numel() * 9 / 10, context = o.context;
  const data::TokenWindows learned(tokens.slice(0, 0, n), context, context);
  data::DataLoader loader(learned, {.batch_size = o.batch, .shuffle = true, .workers = 1});
  o.trainer.lr = o.lr;
  o.trainer.steps = o.epochs * loader.batches();
  o.trainer.warm_up = o.warm_up < 0 ? o.trainer.steps / 20 : o.warm_up;
  gpt2::Trainer trainer(std::move(model), o.trainer);
  training::Checkpoint checkpoint(o.checkpoint, trainer.parts(), trainer.optimizer(),
                                  trainer.schedule(), loader);
  if (o.resume) checkpoint.load_latest();
  Tensor loss;
  std::int64_t done = 0;  // tokens since the first step, which allocates memory
  double start = 0;
  for (auto& batch : training::progress(loader, o, checkpoint)) {
    if (loss.defined()) done += batch.input.numel();
    loss = trainer.step(batch);
    if (done == 0) synchronize(best_device()), start = seconds();
    batch.report("loss", loss);
    if (batch.is_last_of_epoch()) checkpoint.save();
  }
  synchronize(best_device());
  if (done > 0)
    std::printf("%.0f tokens/s in %d MiB\n", static_cast<double>(done) / (seconds() - start),
                static_cast<int>(memory_stats(best_device()).peak >> 20));
  double value = loss.defined() ? loss.item<double>() : 0;
  if (tokens.numel() - n > context) {
    const data::TokenWindows unseen(tokens.slice(0, n, tokens.numel()), context, context);
    double sum = 0;
    for (const auto& batch : data::DataLoader(unseen, {.batch_size = o.batch}))
      sum += trainer.loss(batch) * static_cast<double>(batch.input.size(0));
    value = sum / static_cast<double>(unseen.size());
    std::printf("loss %.4f on %lld unseen tokens\n", value,
                static_cast<long long>(unseen.size() * context));
  }
  model = std::move(trainer.model());
  return value;
}

/// Times steps with random tokens.
void bench(gpt2::GPT2&& model, const Options& o) {
  const std::int64_t vocabulary = model.config.vocabulary;
  gpt2::Trainer trainer(std::move(model), o.trainer);
  const Tensor tokens = randint(0, vocabulary, {o.batch, o.context + 1}).to(best_device());
  const data::NextToken batch{tokens.narrow(1, 0, o.context), tokens.narrow(1, 1, o.context)};
  for (int i = 0; i < 2; ++i) (void)trainer.step(batch);
  synchronize(best_device());
  const double start = seconds();
  for (std::int64_t i = 0; i < o.bench; ++i) (void)trainer.step(batch);
  synchronize(best_device());
  const double one = (seconds() - start) / static_cast<double>(o.bench);
  std::printf("%.2f ms a step, %.0f tokens/s, %d MiB\n", 1e3 * one,
              static_cast<double>(batch.input.numel()) / one,
              static_cast<int>(memory_stats(best_device()).peak >> 20));
}

bool run(Options o) {
  gpt2::Config config = gpt2::config_of(o.config);
  config.dropout = o.dropout;
  config.recompute = o.recompute;
  if (o.vocab.empty() != o.merges.empty())
    throw ArgumentError("gpt2: expected --vocab and --merges, got one of them");
  const data::BytePairVocabulary bpe =
      o.vocab.empty() ? data::BytePairVocabulary() : data::BytePairVocabulary(o.vocab, o.merges);
  StateDict weights;
  if (!o.weights.empty()) {
    weights = load_safetensors(o.weights).tensors;
    for (const std::string prefix : {"", "transformer."}) {
      const Tensor *wte = weights.find(prefix + "wte.weight"),
                   *wpe = weights.find(prefix + "wpe.weight");
      if (wte != nullptr && wte->dim() == 2) config.vocabulary = wte->size(0);
      if (wpe != nullptr && wpe->dim() == 2) config.positions = wpe->size(0);
    }
  } else if (o.config == "tiny") {
    config.vocabulary = bpe.size();
  }
  const bool of_text = !o.prompt.empty() || (!o.train.empty() && !o.train.ends_with(".npy") &&
                                             !o.train.ends_with(".bin"));
  if (of_text &&
      (bpe.size() > config.vocabulary || (o.vocab.empty() && bpe.size() != config.vocabulary)))
    throw ArgumentError(str("gpt2: expected --vocab and --merges of ", config.vocabulary,
                            " tokens, got ", bpe.size(), " tokens"));
  o.context = std::min(o.context, config.positions);
  // Everything that can be wrong is read before the work begins.
  const Tensor text =
      o.train.empty() ? Tensor() : gpt2::read_tokens(o.train, bpe, config.vocabulary);
  Tensor prompt = gpt2::parse_tokens(o.tokens, config.vocabulary);
  if (!o.prompt.empty()) prompt = cat({prompt, bpe.encode(o.prompt)}, 0);

  gpt2::GPT2 model(config);
  if (!o.weights.empty()) gpt2::from_hugging_face(model, weights);
  weights = {};
  print(parameter_count(model), " parameters, devices: ", device_count());
  if (o.bench > 0) {
    bench(std::move(model), o);
    return true;
  }
  const double loss = text.defined() ? train(model, text, o) : 0;
  if (training::stop_requested() != 0) return false;
  if (!o.save.empty()) save_safetensors(o.save, gpt2::to_hugging_face(model), {{"format", "pt"}});
  if (prompt.numel() > 0) {
    to(model, best_device());
    eval(model);
    o.generate.vocabulary = o.vocab.empty() ? config.vocabulary : bpe.size();
    o.generate.end = bpe.end_of_text();
    const Autocast mixed(DType::bfloat16, o.trainer.autocast);
    const Tensor written = generate(model, prompt, o.generate);
    if (o.prompt.empty()) print(written);
    else print(bpe.decode(prompt), bpe.decode(written));
  }
  return loss < o.bar;
}

int main(int argc, char** argv) {
  try {
    Options o;
    static_cast<training::Options&>(o) = training::options(
        argc, argv, {.epochs = 1, .batch = 4, .lr = 6e-4},
        {{"config", "NAME", "gpt2, medium, large, xl or tiny", &o.config},
         {"weights", "FILE", "safetensors with Hugging Face's names", &o.weights},
         {"save", "FILE", "where to write such a file at the end", &o.save},
         {"vocab", "FILE", "GPT-2's vocab.json; without it tiny reads bytes", &o.vocab},
         {"merges", "FILE", "GPT-2's merges.txt", &o.merges},
         {"train", "FILE", "text, or tokens: .npy, or .bin with 16-bit numbers", &o.train},
         {"context", "N", "tokens of a row of a batch", &o.context, 1},
         {"accumulate", "N", "compute a batch in N parts", &o.trainer.parts, 1},
         {"warm_up", "N", "steps in which the rate rises; -1: a twentieth", &o.warm_up, -1},
         {"weight_decay", "X", "of matrices", &o.trainer.weight_decay, 0},
         {"dropout", "X", "in training", &o.dropout, 0},
         {"autocast", "", "products in bfloat16", &o.trainer.autocast},
         {"recompute", "", "less memory: blocks are computed again in the backward", &o.recompute},
         {"prompt", "TEXT", "what to go on with", &o.prompt},
         {"tokens", "LIST", "the same as numbers: \"15496 11\"", &o.tokens},
         {"length", "N", "tokens to write", &o.generate.length, 1},
         {"temperature", "X", "0: always the most likely token, 1: as often as it is likely",
          &o.generate.temperature, 0},
         {"top_k", "N", "one of the N most likely", &o.generate.top_k, 1},
         {"bar", "X", "fail above this loss", &o.bar},
         {"bench", "N", "only time N steps with random tokens", &o.bench, 1}});
    manual_seed(o.seed);
    return run(std::move(o)) ? 0 : std::max(1, training::exit_status());
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}
