#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Returns the losses of the first `steps` steps of a fully connected net, trained by SGD or by
/// Adam with default options, computed by plain double loops. All programs must reproduce them
/// before they are timed. `sizes` are the layer widths, for example {784, 512, 512, 10}, with ReLU
/// in between. The loss is cross entropy over labels or, with `squared`, the mean squared error to
/// targets [rows, sizes.back()]. Weights, inputs and targets are those of formula.hpp.
[[nodiscard]] std::vector<double> reference_losses(const std::vector<std::int64_t>& sizes,
                                                   std::int64_t rows, bool squared, int steps,
                                                   bool adam = false);

/// The same for the convolutional net of rows.hpp, on 28×28 images.
[[nodiscard]] std::vector<double> reference_cnn_losses(std::int64_t rows, int steps);

/// Returns an empty text if the lists have the same length and agree within `rtol`, else one line
/// that describes the difference.
[[nodiscard]] std::string compare_losses(const std::vector<double>& got,
                                         const std::vector<double>& want, double rtol = 1e-4);

}  // namespace bench
