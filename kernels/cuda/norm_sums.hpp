#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

#include "cuda/launch.hpp"

// Sums over the channels of contiguous [batch, channels, inner], and the results from them, shared
// by all normalisations.
namespace braid::cuda {

enum class ChannelTerms : std::uint8_t {
  elements,    ///< Σ x → mean
  deviations,  ///< Σ (x - mean)² → var and rstd
  /// Σ dy → bias, Σ dy h → weight, h = (x - mean) rstd; both divided by the number of values →
  /// means
  gradients
};

/// Statistics are per channel, or, with groups > 0, per sample and group, where each group has
/// channels / groups channels.
struct ChannelSums {
  DType dtype;
  ChannelTerms terms;
  const void* x;
  const void* dy;
  void* mean;  // written for elements; null: the mean is 0
  void* rstd;  // written for deviations
  void* var;   // written for deviations
  void* weight;
  void* bias;
  void* means;  // [2][channels]; null if not wanted, as weight and bias
  double eps;
  std::int64_t batch, channels, inner, groups;
};

/// Requires batch, channels, inner > 0.
void channel_sums(const char* op, const ChannelSums& args, Stream& stream);

}  // namespace braid::cuda
