#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the random numbers are asked for.
namespace braid {

enum class RandomKind : std::uint8_t {
  uniform /* [low, high) */,
  normal /* mean low, deviation high */,
  integers /* int64 values in [ilow, ihigh) */
};

/// Element i is a function of (seed, stream, i) alone: the same bits on every device, for any
/// number of threads. dense. float64 gets the float32 number widened… see random.hpp.
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
