#pragma once
#include <cstdint>
#include <vector>

#include "support/json.hpp"
#include "transfer/moves.hpp"

namespace bench::transfer {

/// A training step of the MLP 784-2048-2048-10 on one device, and split over this device and its
/// partner.
struct MeasuredStep {
  std::int64_t rows;
  double one_us, two_us, noise;
};
/// Measures a step for each number of rows, in interleaved turns.
[[nodiscard]] std::vector<MeasuredStep> measure_mlp(braid::Device device, braid::Device partner,
                                                    const std::vector<std::int64_t>& rows,
                                                    int rounds);

}  // namespace bench::transfer
