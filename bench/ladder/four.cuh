#pragma once
#include "cuda/device/element.cuh"

// Groups of four neighbouring floats, for the steps with wide memory accesses.
namespace braid::ladder {

/// Four floats. simt::load_vector<Four>(p) and simt::store_vector(p, four) are one access of 16
/// bytes; p must be aligned to 16 bytes.
using Four = cuda::Pack<float, 4>;

/// For the edges of a matrix: access only the first `count` of p[0 … 3], one at a time. read_some
/// fills the rest with `other`.
BRAID_DEVICE Four read_some(const float* p, int count, float other) {
  Four four;
#pragma unroll
  for (int q = 0; q < 4; ++q) four.v[q] = q < count ? p[q] : other;
  return four;
}
BRAID_DEVICE void write_some(float* p, const Four& four, int count) {
#pragma unroll
  for (int q = 0; q < 4; ++q)
    if (q < count) p[q] = four.v[q];
}

/// Returns whether the rows of a matrix of this width can be read as groups of four.
inline bool reads_fours(const float* p, int width) {
  return width % 4 == 0 && cuda::is_aligned<4>(p);
}

}  // namespace braid::ladder
