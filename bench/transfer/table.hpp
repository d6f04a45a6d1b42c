#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "support/json.hpp"
#include "transfer/fit.hpp"

namespace bench::transfer {

/// The measurement of one size of one way to copy.
struct Sample {
  std::size_t bytes = 0;
  double us = 0, call_us = 0, noise = 0, memcpy_us = 0;
  /// PyTorch's time, and its time with a malloc that keeps its memory; 0: not measured
  double peer_us = 0, tuned_us = 0;
};
/// One way to copy, for all sizes.
struct Column {
  std::string direction, memory, mode, call, text, from, to;
  std::vector<Sample> samples;
  Curve curve;
};

/// Prints a line for each size, and the fit.
void print(const Column& column, bool queued);
/// Adds a JSON row for each size and for each line of the fit. `peer` is the peer's name.
void add_rows(const Column& column, const std::string& peer, bool simulated,
              std::vector<Json>& rows);

}  // namespace bench::transfer
