// ResNet-18 or ResNet-50 learns to classify the images of a folder, over all devices, as on
// ImageNet: random crops, mirrored or not, normalised (He et al. 2015, arXiv:1512.03385).
//   BRAID_CPU_DEVICES=2 ./resnet --data imagenet --deep --epochs 90 --batch 256
//   ./resnet --checkpoint runs/resnet --resume
// The folder has the subfolders train/ and val/, and in both a folder of PNG or JPEG files for each
// class. Without --data the program makes one of digits. --help lists all options.
#include <braid/braid.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>

using namespace braid;

struct Options : training::Options {
  std::string drawn = "digits", picture;
  std::int64_t size = 0, width = 64, digits = 9000, unseen = 1000, steps = 0;
  bool deep = false;
  double flip = -1, area = -1, bar = 0;
};

/// The residual blocks. The parts have torchvision's names, so its weights can be loaded.
nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return {in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false}};
}
using Shortcut = std::optional<nn::Sequential<nn::Conv2d, nn::BatchNorm2d>>;
Shortcut shortcut(std::int64_t in, std::int64_t out, std::int64_t stride) {
  if (in == out && stride == 1) return {};
  return nn::Sequential{conv(in, out, 1, stride), nn::BatchNorm2d(out)};
}

struct BasicBlock : nn::Module {
  static constexpr std::int64_t kExpansion = 1;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  Shortcut downsample;
  BasicBlock(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1(conv(in, width, 3, stride)),
        bn1(width),
        conv2(conv(width, width, 3)),
        bn2(width),
        downsample(shortcut(in, width, stride)) {}
  Tensor operator()(const Tensor& x) const {
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + (downsample ? (*downsample)(x) : x));
  }
  BRAID_FIELDS(conv1, bn1, conv2, bn2, downsample)
};

struct Bottleneck : nn::Module {
  static constexpr std::int64_t kExpansion = 4;
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;
  Shortcut downsample;
  Bottleneck(std::int64_t in, std::int64_t width, std::int64_t stride)
      : conv1(conv(in, width, 1)),
        bn1(width),
        conv2(conv(width, width, 3, stride)),
        bn2(width),
        conv3(conv(width, 4 * width, 1)),
        bn3(4 * width),
        downsample(shortcut(in, 4 * width, stride)) {}
  Tensor operator()(const Tensor& x) const {
    const Tensor h = bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x))))))));
    return relu(h + (downsample ? (*downsample)(x) : x));
  }
  BRAID_FIELDS(conv1, bn1, conv2, bn2, conv3, bn3, downsample)
};

template <class Block> struct ResNet : nn::Module {
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<Block> layer1, layer2, layer3, layer4;
  nn::Linear fc;
  ResNet(const std::array<std::int64_t, 4>& blocks, std::int64_t width, std::int64_t classes)
      : conv1(conv(3, width, 7, 2)), bn1(width), fc(8 * width * Block::kExpansion, classes) {
    std::int64_t in = width, stage = 0;
    for (std::vector<Block>* layer : {&layer1, &layer2, &layer3, &layer4}) {
      for (std::int64_t i = 0; i < blocks[static_cast<std::size_t>(stage)]; ++i) {
        layer->emplace_back(in, width, i == 0 && stage > 0 ? 2 : 1);
        in = width * Block::kExpansion;
      }
      width *= 2, ++stage;
    }
    for (const auto& [name, weight] : named_parameters(*this))
      if (weight.dim() == 4) nn::init::kaiming_normal_(weight, {.mode = nn::init::Fan::out});
  }
  /// [n, 3, height, width] -> [n, classes]
  Tensor operator()(const Tensor& images) const {
    Tensor h = max_pool2d(relu(bn1(conv1(images))), 3, {.stride = 2, .padding = 1});
    for (const auto* layer : {&layer1, &layer2, &layer3, &layer4})
      for (const Block& block : *layer) h = block(h);
    return fc(h.mean({2, 3}));
  }
  BRAID_FIELDS(conv1, bn1, layer1, layer2, layer3, layer4, fc)
};

/// Writes digits first … first + n - 1 as folder/label/number.png.
template <class Digits>
void write_digits(const Digits& digits, std::int64_t first, std::int64_t n,
                  const std::filesystem::path& folder) {
  for (std::int64_t i = first; i < first + n; ++i) {
    const data::Labelled digit = digits.get(i);
    const auto label = folder / std::to_string(digit.label.template item<std::int64_t>());
    std::filesystem::create_directories(label);
    data::write_png(label / (std::to_string(i) + ".png"), digit.image);
  }
}

/// Makes the folder that --drawn names, unless it is there: of MNIST, or of digits that a program
/// draws. It has another name until it is complete.
void write_digits(const Options& options) {
  if (std::filesystem::exists(options.drawn)) return;
  const std::filesystem::path folder = options.drawn + ".part";
  std::filesystem::remove_all(folder);
  const auto write = [&](const auto& digits) {
    write_digits(digits, 0, options.digits, folder / "train");
    write_digits(digits, options.digits, options.unseen, folder / "val");
  };
  if (const auto mnist = data::find_mnist()) write(*mnist);
  else write(data::SyntheticDigits(options.digits + options.unseen));
  std::filesystem::rename(folder, options.drawn);
}

template <class Block> bool run(const Options& options, const std::array<std::int64_t, 4>& blocks) {
  const std::string folder = options.data.empty() ? options.drawn : options.data;
  const data::ImageFolder images(folder + "/train", {.size = options.size,
                                                     .crops = options.epochs,
                                                     .box = {.least_area = options.area},
                                                     .flip = options.flip,
                                                     .seed = options.seed}),
      unseen(folder + "/val", {.size = options.size});
  data::DataLoader loader(images, {.batch_size = options.batch,
                                   .sampler = data::CropSampler{options.epochs, options.seed},
                                   .workers = 1});
  if (!options.picture.empty()) {
    const auto some = data::DataLoader(images, {.batch_size = 40, .shuffle = true}).begin();
    data::write_png(options.picture, 0.45 + 0.225 * data::image_grid(some->image, 10));
  }
  parallel::DataParallel model(
      ResNet<Block>(blocks, options.width, static_cast<std::int64_t>(images.classes().size())));
  to(model, best_device());
  optim::SGD optimizer(parameters(model),
                       {.lr = options.lr, .momentum = 0.9, .weight_decay = 1e-4});
  optim::OneCycleSchedule schedule(
      optimizer,
      {.max_lr = options.lr, .steps = options.epochs * loader.batches(), .cycle_momentum = false});
  training::Checkpoint checkpoint(options.checkpoint, model, optimizer, schedule, loader);
  if (options.resume) checkpoint.load_latest();
  print(training::summary(model).parameters, " parameters, ", images.images(), " images of ",
        images.classes().size(), " classes, devices: ", device_count());

  for (auto& batch : training::progress(loader, options, checkpoint)) {
    const Tensor loss =
        nn::cross_entropy(model(batch.image.to(best_device())), batch.label.to(best_device()));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    schedule.step();
    batch.report("loss", loss);
    if (batch.is_last_of_epoch()) checkpoint.save();
    if (batch.step() + 1 == options.steps) break;
  }
  if (training::stop_requested() != 0) return false;
  const double accuracy = training::accuracy(model, unseen, {.batch = options.batch});
  print("accuracy ", accuracy, " on ", unseen.size(), " unseen images");
  return accuracy >= options.bar;
}

int main(int argc, char** argv) {
  try {
    Options options;
    static_cast<training::Options&>(options) = training::options(
        argc, argv, {.epochs = 3, .lr = 0.05},
        {{"deep", "", "ResNet-50 instead of ResNet-18", &options.deep},
         {"width", "N", "channels of the first layer", &options.width, 1},
         {"size", "N", "scale images to N by N pixels; 0: 224, but digits 32", &options.size},
         {"flip", "X", "mirror images with this probability; default: 0.5, but digits 0",
          &options.flip},
         {"area", "X", "the least part of an image in a crop; default: 0.08, but of digits 0.7",
          &options.area},
         {"drawn", "FOLDER", "without --data: the folder of digits; made if it is not there",
          &options.drawn},
         {"digits", "N", "digits to learn from, in that folder", &options.digits, 1},
         {"unseen", "N", "other digits, to test with", &options.unseen, 1},
         {"steps", "N", "stop after N steps", &options.steps, 1},
         {"picture", "FILE", "a PNG of 40 crops", &options.picture},
         {"bar", "X", "fail below this accuracy", &options.bar}});
    manual_seed(options.seed);
    const bool digits = options.data.empty();
    if (options.size == 0) options.size = digits ? 32 : 224;
    if (options.flip < 0) options.flip = digits ? 0 : 0.5;
    if (options.area < 0) options.area = digits ? 0.7 : 0.08;
    if (digits) write_digits(options);
    const bool good = options.deep ? run<Bottleneck>(options, {3, 4, 6, 3})
                                   : run<BasicBlock>(options, {2, 2, 2, 2});
    return good ? 0 : std::max(1, training::exit_status());
  } catch (...) {
    return training::report_exception(argv[0]);
  }
}
