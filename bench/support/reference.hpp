#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Losses of the first `steps` steps, of SGD or of Adam with its defaults, of a fully connected
/// net, in plain double loops: what both sides must reproduce before they are timed. `sizes`: {784,
/// 512, 512, 10}, ReLU between; cross entropy over labels, or, with `squared`, mean squared error
/// to targets [rows, sizes.back()]. Weights, inputs and targets are those of formula.hpp.
[[nodiscard]] std::vector<double> reference_losses(const std::vector<std::int64_t>& sizes,
                                                   std::int64_t rows, bool squared, int steps,
                                                   bool adam = false);

/// The same of the convolutional net of rows.hpp over 28×28 images.
[[nodiscard]] std::vector<double> reference_cnn_losses(std::int64_t rows, int steps);

/// Empty if the lists have one length and agree within `rtol`; else one line that says where they
/// do not.
[[nodiscard]] std::string compare_losses(const std::vector<double>& got,
                                         const std::vector<double>& want, double rtol = 1e-4);

}  // namespace bench
