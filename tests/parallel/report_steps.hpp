#pragma once
// Training steps that the tests of the report measure.
#include "group.hpp"

namespace braid::test {

/// A two-layer model over n devices, with SGD with momentum and a separate batch.
class ReportSteps {
 public:
  ReportSteps(int n, std::int64_t rows, std::int64_t width, bool cache = true)
      : devices_(group(n)),
        model_(
            placed_on(Network{nn::Linear(16, width), nn::Tanh(), nn::Linear(width, 4)}, device(0)),
            devices_, parallel::DataParallelOptions{.cache = cache}),
        optimizer_(parameters(model_), {.lr = 1e-3, .momentum = 0.9}),
        x_(random_tensor({rows, 16}, DType::float32, device(0), 1)) {}

  /// Records steps in the report.
  void record(parallel::DataParallelReport& report, int steps, double seconds = 0) {
    auto recording = report.record(devices_, x_.size(0));
    if (seconds > 0) recording.set_seconds(seconds);
    for (int i = 0; i < steps; ++i) {
      const auto scope = recording.step();
      optimizer_.zero_grad();
      const Tensor y = model_(x_);
      (y * y).mean().backward();
      optimizer_.step();
    }
    recording.count_memory(model_, optimizer_);
  }
  [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }
  [[nodiscard]] const auto& model() const { return model_; }
  [[nodiscard]] const Tensor& x() const { return x_; }
  /// The bytes of the weights.
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Tensor& p : parameters(model_))
      sum += static_cast<std::size_t>(p.numel()) * size_of(p.dtype());
    return sum;
  }

 private:
  using Network = nn::Sequential<nn::Linear, nn::Tanh, nn::Linear>;
  std::vector<Device> devices_;
  parallel::DataParallel<Network> model_;
  optim::SGD optimizer_;
  Tensor x_;
};

}  // namespace braid::test
