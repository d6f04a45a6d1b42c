#pragma once
#include <string>
#include <vector>

#include <braid/parallel/cost_model.hpp>

namespace bench::transfer {

/// The time of a copy as a function of its size: latency + bytes / rate. If that fits badly
/// (because of caches), two such lines, one for small and one for large sizes.
struct Curve {
  braid::parallel::CostLine line;  ///< fitted to all sizes
  double misfit = 0;               ///< largest relative error of `line`
  /// the lines below `bend` bytes and from `bend` on; both equal `line` if there is no bend
  braid::parallel::CostLine small, large;
  double bend = 0;         ///< bytes; 0: one line is enough
  double bent_misfit = 0;  ///< largest relative error of the two lines
  [[nodiscard]] double operator()(double bytes) const noexcept {
    return bytes < bend ? small(bytes) : large(bytes);
  }
};

/// `points` must be in ascending order of bytes. A bend is accepted only if it halves the sum of
/// squared relative errors and leaves at least three sizes on either side.
[[nodiscard]] Curve fit_curve(const std::vector<braid::parallel::CostPoint>& points);

/// Formats a line: `2.31 us + bytes / 11.4 GB/s`.
[[nodiscard]] std::string text_of(const braid::parallel::CostLine& line);
/// Formats a size: `4 KB`, `1 GB`, with binary units.
[[nodiscard]] std::string text_of_bytes(double bytes);

}  // namespace bench::transfer
