#pragma once
// Steps of a network of three layers that is split over devices.
#include <string>

#include "library/entries.hpp"

namespace bench::gpu {

/// Plain, or with a layer for several devices over one device: DataParallel, and
/// DistributedDataParallel over one rank.
[[nodiscard]] std::span<const Entry> replica_entries();

/// Times steps of DataParallel over 1 to `devices` logical devices of one GPU, and compares each
/// with what the cost model of the other steps predicts. Returns a JSON list of
/// {"devices", "rows", "us", "noise", "predicted_us"}.
[[nodiscard]] std::string predicted_steps(int devices, std::int64_t width, std::int64_t rows,
                                          int rounds, int steps);

}  // namespace bench::gpu
