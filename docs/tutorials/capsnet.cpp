// A capsule network reads digits, trained over all devices. A capsule is a vector. Its length is
// the probability that an entity is present, and its direction describes the entity. Lower capsules
// vote for higher ones, and votes that agree win (docs/notes/capsules.md; Sabour, Frosst & Hinton
// 2017, arXiv:1710.09829).
//   BRAID_CPU_DEVICES=2 BRAID_DATA=<folder with MNIST files> ./capsnet --checkpoint runs/capsnet
//   ./capsnet --full --shift 2 --pictures seen.pgm
// --full is the paper's network, which also learns to draw what it saw. --help lists all options.
#include <braid/braid.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

using namespace braid;

struct Decoder : nn::Module {
  nn::Linear fc1{160, 512}, fc2{512, 1024}, fc3{1024, 784};
  Tensor operator()(const Tensor& capsules) const {
    return sigmoid(fc3(relu(fc2(relu(fc1(capsules.flatten(1)))))));
  }
  BRAID_FIELDS(fc1, fc2, fc3)
};

struct CapsNet : nn::Module {
  nn::Conv2d conv;
  nn::PrimaryCapsules primary;  // 6 × 6 positions of `types` capsules of 8 numbers
  nn::DigitCapsules digits;     // a capsule of 16 numbers for each digit
  std::optional<Decoder> decoder;
  CapsNet(int64_t maps, int64_t types, bool decodes)
      : conv(1, maps, 9), primary(maps, types, 8, 9), digits(types * 36, 8, 10, 16) {
    if (decodes) decoder.emplace();
  }
  Tensor capsules(const Tensor& images) const { return digits(primary(relu(conv(images)))); }
  /// The probability of each digit.
  Tensor operator()(const Tensor& images) const { return nn::capsule_lengths(capsules(images)); }
  /// The loss of each image; each replica computes it for its part of the batch.
  Tensor operator()(const Tensor& images, const Tensor& labels) const {
    const Tensor seen = capsules(images);
    const Tensor margin = nn::capsule_margin_loss(nn::capsule_lengths(seen), labels,
                                                  {.reduction = nn::Reduction::none});
    if (!decoder) return margin;
    // drawn only from the capsule of the right digit
    const Tensor drawn = (*decoder)(nn::mask_capsules(seen, labels));
    return margin + 0.0005 * sum(square(drawn - images.flatten(1)), {1});
  }
  BRAID_FIELDS(conv, primary, digits, decoder)
};

struct Options : training::Options {
  bool full = false;
  int64_t digits = 9000, unseen = 1000, shift = 0;
  double bar = 0;
  std::string pictures;
};

/// Shifts each image by up to `most` pixels in both directions and fills up with background.
Tensor shifted(const Tensor& images, int64_t most) {
  if (most == 0) return images;
  const Tensor wide = pad(images, {most, most, most, most});
  const std::vector<int64_t> by =
      randint(0, 2 * most + 1, {images.size(0), 2}).to_vector<int64_t>();
  std::vector<Tensor> moved;
  for (int64_t i = 0; i < images.size(0); ++i)
    moved.push_back(wide[i]
                        .narrow(1, by[static_cast<size_t>(2 * i)], images.size(2))
                        .narrow(2, by[static_cast<size_t>(2 * i + 1)], images.size(3)));
  return stack(moved);
}

/// Writes the digits in the upper row, and in the lower row what the decoder draws from the longest
/// capsule.
void draw(const CapsNet& net, const Tensor& images, const std::string& file) {
  const NoGrad guard;
  const Tensor drawn =
      (*net.decoder)(nn::mask_capsules(net.capsules(images))).reshape({-1, 28, 28});
  // [2, 28, n · 28]
  const Tensor rows = stack({images.reshape({-1, 28, 28}), drawn}).transpose(1, 2).flatten(2);
  std::ofstream out(file, std::ios::binary);
  out << "P5 " << rows.size(2) << " 56 255\n";
  for (const double ink : rows.to_vector<double>())
    out.put(static_cast<char>(std::lround(255 * (1 - ink))));
  if (!out.flush()) throw Error(file + ": cannot be written");
}

template <class Digits> bool run(const Digits& all, const Options& options) {
  auto [digits, rest] = data::split(all, options.digits);
  auto [unseen, unused] = data::split(rest, options.unseen);
  data::DataLoader loader(digits, {.batch_size = options.batch, .shuffle = true, .workers = 1});

  parallel::DataParallel model(options.full ? CapsNet(256, 32, true) : CapsNet(32, 8, false));
  to(model, best_device());
  print("CapsNet with ", training::summary(model).parameters, " parameters, ", digits.size(),
        " digits, devices: ", device_count());
  optim::Adam optimizer(parameters(model), {.lr = options.lr});
  optim::ExponentialSchedule schedule(optimizer, {.gamma = std::pow(0.96, 1 / 2000.0)});
  training::Checkpoint checkpoint(options.checkpoint, model, optimizer, schedule, loader);
  if (options.resume) checkpoint.load_latest();

  for (auto& batch : training::progress(loader, options, checkpoint)) {
    const Tensor images = shifted(batch.image, options.shift).to(best_device());
    Tensor loss = model(images, batch.label.to(best_device())).mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    schedule.step();
    batch.report("loss", loss);
    if (batch.is_last_of_epoch()) checkpoint.save();
  }
  if (training::stop_requested() != 0) return false;
  if (!options.pictures.empty())
    draw(model.module,
         data::DataLoader(unseen, {.batch_size = 10}).begin()->image.to(best_device()),
         options.pictures);
  const double accuracy = training::accuracy(model, unseen);
  print("accuracy ", accuracy, " on ", unseen.size(), " unseen digits");
  return accuracy >= options.bar;
}

int main(int argc, char** argv) {
  try {
    Options options;
    static_cast<training::Options&>(options) = training::options(
        argc, argv, {.batch = 32},
        {{"full", "", "the paper's network: 256 maps, 32 types of capsules, and a decoder",
          &options.full},
         {"digits", "N", "train on the first N", &options.digits, 1},
         {"unseen", "N", "test on the next N", &options.unseen, 1},
         {"shift", "N", "move images by up to N pixels while training", &options.shift},
         {"pictures", "FILE", "with --full: ten unseen digits and what it makes of them, as PGM",
          &options.pictures},
         {"bar", "X", "fail below this accuracy", &options.bar}});
    if (!options.pictures.empty() && !options.full)
      throw ArgumentError("--pictures: expected --full with it, which has a decoder");
    manual_seed(options.seed);
    const std::optional<data::Mnist> mnist = data::find_mnist(options.data);
    if (!mnist)
      print(
          "No MNIST digits here (BRAID_DATA names no folder with them): training on digits drawn "
          "by a program instead");
    const bool good = mnist ? run(*mnist, options)
                            : run(data::SyntheticDigits(options.digits + options.unseen), options);
    return good ? 0 : std::max(1, training::exit_status());
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}
