#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "transfer/fit.hpp"
#include "transfer/moves.hpp"

// Computes from which amount of work on it pays to use a second device: half of the work moves
// there with its data, and the results come back.
namespace bench::transfer {

/// Measured speed of float32 matrix products.
struct Rates {
  double alone = 0;  ///< FLOP/s of one device while the other is idle
  /// time of a product while the other device also computes / time alone; at least 1. 2 means that
  /// they run one at a time
  double slowdown = 1;
  double host = 0;  ///< FLOP/s of cpu:0
  /// seconds to dispatch an empty job to the threads of both devices and wait for it
  double hand_over = 0;
};
/// Times, in interleaved turns, products on the device and on its partner, alone and at the same
/// time, products on the host, and the dispatch of empty jobs to both devices.
[[nodiscard]] Rates measure_rates(braid::Device device, std::optional<braid::Device> partner,
                                  bool emulated, int rounds);

/// The cost of a copy to the other device, of a copy back, and of a copy within a device.
struct Roads {
  Curve there, back, local;
};

/// Returns the FLOP for each byte moved (in either direction, for large tensors) from which on two
/// devices, each with half the work, are `gain` times as fast as one. Empty if no amount of work is
/// enough, for example if gain >= 2 / slowdown.
[[nodiscard]] std::optional<double> work_per_byte(const Rates& rates, const Roads& roads,
                                                  double gain);

/// The gain that counts as "half the time": a tenth less than 2.
constexpr double kHalf = 1.8;

/// The work and data of a batch.
struct Layer {
  double work = 0;         ///< FLOP for each row
  double in = 0, out = 0;  ///< bytes sent and returned for each row
  /// bytes of weights that are sent in every step and whose gradients are returned and added; 0 if
  /// the weights are on both devices already
  double weights = 0;
};
/// Returns the smallest even number of rows, at most 2^24, for which two devices are `gain` times
/// as fast as one; empty if there is none.
[[nodiscard]] std::optional<std::int64_t> rows_from(const Layer& layer, const Rates& rates,
                                                    const Roads& roads, double gain);

/// Linear(in, out), forward only, with the weights on both devices.
[[nodiscard]] Layer linear_forward(double in, double out);
/// A training step of fully connected layers of these widths under DataParallel: outputs are
/// returned, and their gradients are sent.
[[nodiscard]] Layer mlp_step(const std::vector<double>& widths);

}  // namespace bench::transfer
