#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "transfer/fit.hpp"
#include "transfer/moves.hpp"

// From which work on a move pays: half of the work goes, with its data, to a second device, and the
// results come back.
namespace bench::transfer {

/// Matrix products of float32, measured.
struct Rates {
  double alone = 0;  ///< FLOP/s of one device while the other rests
  /// time of a product while the other device computes too / time alone, 1 at least; 2: they take
  /// turns
  double slowdown = 1;
  double host = 0;  ///< FLOP/s of cpu:0
  /// s: work that is nothing, handed to both devices' threads and waited for
  double hand_over = 0;
};
/// Times products on the device and on its partner, alone and at the same time, and on the host, in
/// turns, and the hand-over of work to both.
[[nodiscard]] Rates measure_rates(braid::Device device, std::optional<braid::Device> partner,
                                  bool emulated, int rounds);

/// The way there, the way back, and a copy within a device.
struct Roads {
  Curve there, back, local;
};

/// The FLOP for each byte that moves (there or back, of large tensors) from which two devices are
/// `gain` times as fast as one, half the work on each; nothing if no work is enough, as where gain
/// >= 2 / slowdown.
[[nodiscard]] std::optional<double> work_per_byte(const Rates& rates, const Roads& roads,
                                                  double gain);

/// The gain that stands for "half the time": a tenth less than 2.
constexpr double kHalf = 1.8;

/// What a batch asks for.
struct Layer {
  double work = 0;         ///< FLOP of a row
  double in = 0, out = 0;  ///< bytes of a row, there and back
  /// bytes that go there in every step and, as gradients, come back and are added; 0: they are on
  /// both devices already
  double weights = 0;
};
/// The least even number of rows up to 2^24 for which two devices are `gain` times as fast as one,
/// or nothing.
[[nodiscard]] std::optional<std::int64_t> rows_from(const Layer& layer, const Rates& rates,
                                                    const Roads& roads, double gain);

/// Linear(in, out): forward, with its weights on both devices.
[[nodiscard]] Layer linear_forward(double in, double out);
/// A step of training of fully connected layers of these widths under DataParallel: outputs come
/// back, their gradients go there.
[[nodiscard]] Layer mlp_step(const std::vector<double>& widths);

}  // namespace bench::transfer
