#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the random number kernel.
namespace braid {

/// What a replay of a recorded step changes in the random numbers of its ops: the seed is `seed`,
/// and `streams` is added to the stream's number.
struct RandomShift {
  std::uint64_t seed = 0, streams = 0;
};

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
  const RandomShift* shift = nullptr;  ///< on the device; null: none
};

}  // namespace braid
