#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace bench::scale {

/// A parameter's gradient: its size, and the part of a step's work after which it is there.
struct Gradient {
  std::int64_t elements = 0;
  double ready = 0;  ///< in [0, 1], of forward and backward together
};

/// A net as the prediction sees it.
struct Net {
  std::string name, about;
  std::int64_t samples = 0;         ///< in the batch of one rank
  double operations = 0;            ///< floating point operations of a step of one rank
  std::vector<Gradient> gradients;  ///< in the order in which backward makes them
  [[nodiscard]] std::int64_t parameters() const;
};

/// ResNet-50 (torchvision's: the stride is in the 3×3 convolution), 224×224 pixels.
[[nodiscard]] Net resnet50(std::int64_t images);
/// GPT-2 with 124 million parameters, 1,024 tokens a sequence. The weight of the last layer is that
/// of the embedding, so its gradient is complete only at the end of backward.
[[nodiscard]] Net gpt2(std::int64_t sequences);
/// `layers` linear layers of width × width with bias, `rows` rows.
[[nodiscard]] Net equal_layers(int layers, std::int64_t width, std::int64_t rows);

}  // namespace bench::scale
