#pragma once
#include "cuda/device/element.cuh"

// Four neighbouring floats, as the steps with wide accesses move them.
namespace braid::ladder {

/// simt::load_vector<Four>(p) and simt::store_vector(p, four) are one access of 16 bytes: p must be
/// aligned to 16.
using Four = cuda::Pack<float, 4>;

/// Edges: of p[0 … 3] those below `count`, one by one; `other` for the rest.
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

/// May the rows of a matrix, `width` wide, be read in fours?
inline bool reads_fours(const float* p, int width) {
  return width % 4 == 0 && cuda::is_aligned<4>(p);
}

}  // namespace braid::ladder
