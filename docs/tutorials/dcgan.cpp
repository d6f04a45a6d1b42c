// Two networks learn to draw digits, over all devices: a generator draws, a discriminator tells
// drawn digits from real ones; both are told which digit it should be, and each learns from the
// other's mistakes (DCGAN: Radford, Metz & Chintala 2015, arXiv:1511.06434; with labels: Mirza &
// Osindero 2014, arXiv:1411.1784). A third network, which classifies digits, then counts how many
// of the drawn ones it can read.
//   BRAID_CPU_DEVICES=2 BRAID_DATA=<folder with MNIST files> ./dcgan --picture drawn.png
// --help lists the options.
#include <braid/braid.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

using namespace braid;

constexpr std::int64_t kNoise = 64;

struct Options : training::Options {
  std::int64_t width = 40, digits = 9000, unseen = 1000, samples = 1000;
  double bar = 80, noise_bar = 5, least = 0.03, most = 0.25;
  std::string picture;
};

/// Draws digits from random numbers and the digits to draw: [n, 74, 1, 1] -> [n, 1, 28, 28], from
/// -1 to 1.
auto generator(std::int64_t width) {
  return nn::Sequential{
      nn::ConvTranspose2d(kNoise + 10, 4 * width, 4, {.bias = false}),  // 4 by 4
      nn::BatchNorm2d(4 * width),
      nn::ReLU(),
      nn::ConvTranspose2d(4 * width, 2 * width, 3, {.stride = 2, .padding = 1, .bias = false}),
      nn::BatchNorm2d(2 * width),
      nn::ReLU(),
      nn::ConvTranspose2d(2 * width, width, 4, {.stride = 2, .padding = 1, .bias = false}),
      nn::BatchNorm2d(width),
      nn::ReLU(),
      nn::ConvTranspose2d(width, 1, 4, {.stride = 2, .padding = 1}),
      nn::Tanh()};
}

/// How real an image looks as each of the ten digits: [n, 1, 28, 28] -> [n, 10].
auto discriminator(std::int64_t width) {
  const Conv2dOptions half{.stride = 2, .padding = 1};
  return nn::Sequential{nn::Conv2d(1, width, 4, half),
                        nn::LeakyReLU(0.2),
                        nn::Conv2d(width, 2 * width, 4, half),
                        nn::LeakyReLU(0.2),
                        nn::Conv2d(2 * width, 4 * width, 4, half),
                        nn::LeakyReLU(0.2),
                        nn::Conv2d(4 * width, 10, 3),
                        nn::Flatten()};
}

/// Reads digits: [n, 1, 28, 28] -> [n, 10].
auto classifier() {
  return nn::Sequential{nn::Conv2d(1, 16, 5, {.padding = 2}),
                        nn::ReLU(),
                        nn::MaxPool2d(2),
                        nn::Conv2d(16, 32, 5, {.padding = 2}),
                        nn::ReLU(),
                        nn::MaxPool2d(2),
                        nn::Flatten(),
                        nn::Dropout(0.25),
                        nn::Linear(32 * 7 * 7, 10)};
}

/// Random numbers, and which digits to draw with them.
Tensor noise(const Tensor& digits) {
  const Tensor which = one_hot(digits, 10).to(DType::float32).to(best_device());
  return cat({randn({digits.size(0), kNoise}, {.device = best_device()}), which}, 1)
      .unsqueeze(2)
      .unsqueeze(3);
}

template <class Digits> auto trained_classifier(const Digits& digits) {
  constexpr std::int64_t kEpochs = 6;
  data::DataLoader loader(digits, {.batch_size = 64, .shuffle = true, .workers = 1});
  parallel::DataParallel model(classifier());
  to(model, best_device());
  optim::Adam optimizer(parameters(model), {.lr = 1e-3});
  optim::OneCycleSchedule schedule(
      optimizer, {.max_lr = 3e-3, .steps = kEpochs * loader.batches(), .cycle_momentum = false});
  for (std::int64_t epoch = 0; epoch < kEpochs; ++epoch)
    for (auto& [image, label] : loader) {
      optimizer.zero_grad();
      nn::cross_entropy(model(image.to(best_device())), label.to(best_device())).backward();
      optimizer.step();
      schedule.step();
    }
  eval(model);
  return model;
}

/// What the classifier sees in images: how many it is sure of, in all and of each digit.
struct Seen {
  std::int64_t images = 0, sure = 0;
  std::array<std::int64_t, 10> digits{};
  double percent_sure() const {
    return 100 * static_cast<double>(sure) / static_cast<double>(images);
  }
};
template <class Model> Seen look(const Model& classifier, const Tensor& images) {
  const NoGrad guard;
  const ValuesIndices best = max(softmax(classifier(images.to(best_device()))), 1);
  const std::vector<double> p = best.values.to_vector<double>();
  const std::vector<std::int64_t> d = best.indices.to_vector<std::int64_t>();
  Seen seen{.images = images.size(0)};
  for (std::size_t i = 0; i < p.size(); ++i) {
    seen.sure += p[i] >= 0.9 ? 1 : 0;
    ++seen.digits[static_cast<std::size_t>(d[i])];
  }
  return seen;
}

template <class Digits> bool run(const Digits& all, const Options& options) {
  auto [digits, rest] = data::split(all, options.digits);
  auto [unseen, unused] = data::split(rest, options.unseen);
  data::DataLoader loader(digits, {.batch_size = options.batch, .shuffle = true, .workers = 1});
  parallel::DataParallel draw(generator(options.width));
  parallel::DataParallel tell(discriminator(options.width));
  to(draw, best_device()), to(tell, best_device());
  optim::Adam draws(parameters(draw), {.lr = options.lr, .beta1 = 0.5}),
      tells(parameters(tell), {.lr = options.lr, .beta1 = 0.5});
  print(training::summary(draw).parameters, " and ", training::summary(tell).parameters,
        " parameters, ", digits.size(), " digits, devices: ", device_count());

  auto reads = trained_classifier(digits);
  const Seen of_unseen = look(
                 reads, data::DataLoader(unseen, {.batch_size = options.unseen}).begin()->image),
             of_noise = look(reads, rand({options.samples, 1, 28, 28}));
  std::printf("the classifier is sure of %.1f %% of unseen digits, and of %.1f %% of noise\n",
              of_unseen.percent_sure(), of_noise.percent_sure());
  std::fflush(stdout);

  // Digits are drawn with a moving average of the generator's weights: it is better than the last.
  optim::Average average(draw, {.decay = 0.999, .warm_up = true});
  const auto samples = [&] {
    const NoGrad guard;
    const optim::Averaged weights(average);
    return 0.5 * draw(noise(randint(0, 10, {options.samples}))) + 0.5;
  };
  const auto score = [&](const Tensor& images, const Tensor& digit) {
    return gather(tell(images), 1, digit.unsqueeze(1));
  };
  const auto loss = [&](const Tensor& told, double real) {
    return nn::binary_cross_entropy_with_logits(told, full_like(told, real));
  };
  const std::int64_t steps = options.epochs * loader.batches();
  optim::CosineSchedule slower_draws(draws, {.steps = steps}),
      slower_tells(tells, {.steps = steps});
  for (auto& batch : training::progress(loader, options)) {
    const Tensor digit = batch.label.to(best_device()),
                 real = (2 * batch.image.to(best_device()) - 1).requires_grad_(),
                 drawn = draw(noise(batch.label)), seen = score(real, digit);
    tells.zero_grad();
    Tensor mistaken = loss(seen, 1) + loss(score(drawn.detach(), digit), 0);
    // In every fourth step its score must be nearly flat around real images: then the generator
    // can follow it (Mescheder, Geiger & Nowozin 2018, arXiv:1801.04406).
    if (batch.step() % 4 == 0)
      mistaken = mistaken + 4 * 0.5 * square(grad(seen.sum(), {real}, true, true)[0]).sum() /
                                static_cast<double>(real.size(0));
    mistaken.backward();
    tells.step();
    draws.zero_grad();
    const Tensor detected = loss(score(drawn, digit), 1);
    detected.backward();
    draws.step();
    average.update();
    slower_draws.step();
    slower_tells.step();
    batch.report("discriminator", mistaken);
    batch.report("generator", detected);
    if (!batch.is_last_of_epoch()) continue;
    std::printf("epoch %d: it is sure of %.1f %% of drawn digits\n",
                static_cast<int>(batch.epoch()) + 1, look(reads, samples()).percent_sure());
    std::fflush(stdout);
  }

  const Tensor drawn = samples();
  if (!options.picture.empty())
    data::write_png(options.picture, data::image_grid(drawn.slice(0, 0, 100), 20));
  const Seen seen = look(reads, drawn);
  std::printf("of %d drawn digits it is sure of %.1f %%; 0 to 9:", static_cast<int>(seen.images),
              seen.percent_sure());
  for (const std::int64_t n : seen.digits) std::printf(" %d", static_cast<int>(n));
  std::printf("\n");
  const auto [fewest, most] = std::minmax_element(seen.digits.begin(), seen.digits.end());
  return seen.percent_sure() >= options.bar && of_noise.percent_sure() <= options.noise_bar &&
         static_cast<double>(*fewest) >= options.least * static_cast<double>(seen.images) &&
         static_cast<double>(*most) <= options.most * static_cast<double>(seen.images);
}

int main(int argc, char** argv) {
  try {
    Options options;
    static_cast<training::Options&>(options) = training::options(
        argc, argv, {.epochs = 14, .batch = 32, .lr = 1e-3},
        {{"width", "N", "of the networks", &options.width, 1},
         {"digits", "N", "learn from the first N", &options.digits, 1},
         {"unseen", "N", "the classifier is tested with the next N", &options.unseen, 1},
         {"samples", "N", "digits to draw at the end", &options.samples, 1},
         {"picture", "FILE", "a PNG of 100 drawn digits", &options.picture},
         {"bar", "X", "fail if the classifier is sure of fewer drawn digits, in percent",
          &options.bar},
         {"noise_bar", "X", "fail if it is sure of more noise, in percent", &options.noise_bar},
         {"least", "X", "fail if a smaller fraction is one of the ten digits", &options.least},
         {"most", "X", "fail if a larger fraction is", &options.most}});
    if (!options.checkpoint.empty())
      throw ArgumentError("--checkpoint: expected none: there are two optimizers");
    manual_seed(options.seed);
    const std::optional<data::Mnist> mnist = data::find_mnist(options.data);
    const bool good = mnist ? run(*mnist, options)
                            : run(data::SyntheticDigits(options.digits + options.unseen), options);
    return good ? 0 : 1;
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}
