#pragma once
#include <string>
#include <vector>

#include <braid/parallel/cost_model.hpp>

namespace bench::transfer {

/// Seconds of a copy over its bytes: latency + bytes / rate; and, where that is far from some sizes
/// (caches), two such lines, each for its own sizes.
struct Curve {
  braid::parallel::CostLine line;  ///< through all sizes
  double misfit = 0;               ///< the worst relative one
  /// below `bend` bytes, and from there on; both are `line` where there is no bend
  braid::parallel::CostLine small, large;
  double bend = 0;         ///< bytes; 0: one line serves
  double bent_misfit = 0;  ///< of the two
  [[nodiscard]] double operator()(double bytes) const noexcept {
    return bytes < bend ? small(bytes) : large(bytes);
  }
};

/// `points` in ascending order of bytes. A bend has to halve the sum of squared relative errors,
/// and leaves three sizes at least on either side.
[[nodiscard]] Curve fit_curve(const std::vector<braid::parallel::CostPoint>& points);

/// `2.31 us + bytes / 11.4 GB/s`
[[nodiscard]] std::string text_of(const braid::parallel::CostLine& line);
/// `4 KB`, `1 GB`: binary, as memory is counted.
[[nodiscard]] std::string text_of_bytes(double bytes);

}  // namespace bench::transfer
