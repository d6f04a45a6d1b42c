#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the random number kernel.
namespace braid {

enum class RandomKind : std::uint8_t {
  uniform /* [low, high) */,
  normal /* mean low, deviation high */,
  integers /* int64 values in [ilow, ihigh) */
};

/// Element i is a function of (seed, stream, i) alone: the same bits on every device, for any
/// number of threads. out is contiguous. The values are defined in philox.hpp.
struct RandomArgs {
  RandomKind kind;
  DType dtype;
  void* out;
  std::int64_t n;
  std::uint64_t seed, stream;
  double low, high;
  std::int64_t ilow, ihigh;
};

}  // namespace braid
