#include "scale/nets.hpp"

#include <algorithm>
#include <numeric>

namespace bench::scale {
namespace {

/// Collects the parameters in the order of the forward, with the work of one sample for each.
class Layers {
 public:
  void add(std::int64_t elements, double operations) {
    elements_.push_back(elements);
    operations_.push_back(operations);
  }
  /// A convolution without bias, with its batch norm.
  void conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t pixels) {
    const std::int64_t weights = in * out * kernel * kernel;
    add(weights, 2.0 * static_cast<double>(weights * pixels * pixels));
    add(out, 0);
    add(out, 0);
  }
  void linear(std::int64_t in, std::int64_t out, std::int64_t rows) {
    add(in * out, 2.0 * static_cast<double>(in * out * rows));
    add(out, 0);
  }
  void norm(std::int64_t width) {
    add(width, 0);
    add(width, 0);
  }
  /// Work without parameters: that of the next layer's backward comes after it.
  void work(double operations) { operations_.back() += operations; }

  /// Backward costs twice the forward and visits the layers from the last to the first.
  [[nodiscard]] Net net(std::string name, std::string about, std::int64_t samples) const {
    Net net{std::move(name), std::move(about), samples, 0, {}};
    const double forward = std::accumulate(operations_.begin(), operations_.end(), 0.0);
    net.operations = 3 * forward * static_cast<double>(samples);
    double done = forward;
    for (std::size_t i = elements_.size(); i-- > 0;) {
      done += 2 * operations_[i];
      net.gradients.push_back({elements_[i], std::min(1.0, done / (3 * forward))});
    }
    return net;
  }

 private:
  std::vector<std::int64_t> elements_;
  std::vector<double> operations_;
};

}  // namespace

std::int64_t Net::parameters() const {
  std::int64_t n = 0;
  for (const Gradient& g : gradients) n += g.elements;
  return n;
}

Net resnet50(std::int64_t images) {
  Layers layers;
  layers.conv(3, 64, 7, 112);
  std::int64_t in = 64, pixels = 56;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = std::int64_t{64} << stage, out = 4 * width;
    for (int block = 0; block < blocks[stage]; ++block) {
      const bool strided = block == 0 && stage > 0;
      layers.conv(in, width, 1, pixels);  // before the stride
      if (strided) pixels /= 2;
      layers.conv(width, width, 3, pixels);
      layers.conv(width, out, 1, pixels);
      if (block == 0) layers.conv(in, out, 1, pixels);
      in = out;
    }
  }
  layers.linear(2048, 1000, 1);
  return layers.net("ResNet-50", "224x224 pixels", images);
}

Net gpt2(std::int64_t sequences) {
  constexpr std::int64_t width = 768, tokens = 1024, words = 50257;
  Layers layers;
  layers.add(words * width, 0);  // embedding; tied to the last layer
  layers.add(tokens * width, 0);
  for (int block = 0; block < 12; ++block) {
    layers.norm(width);
    layers.linear(width, 3 * width, tokens);
    layers.work(4.0 * tokens * tokens * width);  // scores, and their product with the values
    layers.linear(width, width, tokens);
    layers.norm(width);
    layers.linear(width, 4 * width, tokens);
    layers.linear(4 * width, width, tokens);
  }
  layers.norm(width);
  layers.work(2.0 * static_cast<double>(words * width * tokens));  // the last layer
  return layers.net("GPT-2 124M", "1,024 tokens a sequence", sequences);
}

Net equal_layers(int count, std::int64_t width, std::int64_t rows) {
  Layers layers;
  for (int i = 0; i < count; ++i) layers.linear(width, width, rows);
  return layers.net("equal layers", "", 1);
}

}  // namespace bench::scale
