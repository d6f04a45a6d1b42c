#pragma once
#include <cstdint>
#include <vector>

#include "scale/nets.hpp"

namespace bench::scale {

/// A message of n bytes takes alpha + n / beta seconds.
struct Link {
  double alpha = 0;  ///< s
  double beta = 1;   ///< bytes/s
};

/// How all-reduce is done. In both, a rank sends and receives 2 (p-1)/p · n bytes.
enum class Algorithm {
  ring,      ///< 2 (p-1) messages one after another
  doubling,  ///< halving and doubling: 2 ⌈log2 p⌉ messages one after another
};
[[nodiscard]] const char* name_of(Algorithm algorithm);

/// Returns the seconds of an all-reduce of `bytes` over `ranks` ranks. `reduce` is the speed at
/// which a rank adds, in bytes of the result per second; 0: free.
[[nodiscard]] double all_reduce_seconds(double bytes, int ranks, const Link& link,
                                        Algorithm algorithm, double reduce = 0);

/// Least squares fit of times of all-reduces over `ranks` ranks to the algorithm's formula. Errors
/// are relative, so all sizes count equally. Needs two sizes.
struct Sample {
  double bytes, seconds;
};
[[nodiscard]] Link fit(const std::vector<Sample>& samples, int ranks, Algorithm algorithm);

/// The bytes of each bucket, and when it is full, in the order in which they are reduced.
struct Bucket {
  double bytes = 0;
  double ready = 0;  ///< seconds after the start of the step
};
[[nodiscard]] std::vector<Bucket> buckets(const Net& net, double compute_seconds, double first_cap,
                                          double cap, double bytes_per_element);

/// A step: backward runs while the buckets are reduced, one after another.
struct Step {
  double compute = 0;      ///< s, forward and backward alone
  double communicate = 0;  ///< s, all all-reduces, one after another
  double total = 0;        ///< s, overlapped
  /// the part of the communication that runs during the computation
  [[nodiscard]] double hidden() const {
    return communicate == 0 ? 1 : 1 - (total - compute) / communicate;
  }
};
[[nodiscard]] Step step_of(const std::vector<Bucket>& buckets, double compute_seconds,
                           const std::vector<double>& seconds);

}  // namespace bench::scale
