#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

#include "cuda/launch.hpp"

// Sums over the channels of dense [batch, channels, inner], which all normalisations need: one
// kernel for what they sum and one for what becomes of the sums.
namespace braid::cuda {

enum class ChannelTerms : std::uint8_t {
  elements,    ///< Σ x → mean
  deviations,  ///< Σ (x - mean)² → var and rstd
  /// Σ dy → bias, Σ dy h → weight, h = (x - mean) rstd; both over the number of values → means
  gradients
};

/// Statistics are those of the channel, or, with groups > 0, of the sample's group that the channel
/// is in (channels / groups of them in each).
struct ChannelSums {
  DType dtype;
  ChannelTerms terms;
  const void* x;
  const void* dy;
  void* mean;  // elements: written. null: 0
  void* rstd;  // deviations: written
  void* var;   // deviations: written
  void* weight;
  void* bias;
  void* means;  // [2][channels], null: not wanted; so are weight and bias
  double eps;
  std::int64_t batch, channels, inner, groups;
};

/// Needs batch, channels, inner > 0.
void channel_sums(const char* op, const ChannelSums& args, Stream& stream);

}  // namespace braid::cuda
