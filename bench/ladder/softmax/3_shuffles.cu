#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 3: one warp for each row. Lanes read each other's registers, so a reduction is five
// shuffles.
// Gains  No shared memory, so no bank conflicts, and no barriers: warps do not wait for each other.
//        Every lane ends with the result.
// Costs  Every element is still read three times, the second and third time from the L1 cache if
//        that holds the rows of all active warps.
namespace braid::ladder {

constexpr int kWarps = 8;  // in a block

__global__ void __launch_bounds__(32 * kWarps) softmax_shuffles_kernel(Softmax s) {
  const int row = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32),
            lane = static_cast<int>(threadIdx.x % 32);
  if (row >= s.rows) return;  // the whole warp
  const float* const x = s.x + row * s.n;
  float* const y = s.y + row * s.n;
  float max = cuda::lowest<float>();
  for (int j = lane; j < s.n; j += 32) max = fmaxf(max, x[j]);  // first pass
  for (int apart = 16; apart > 0; apart /= 2)
    max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, apart));
  float sum = 0;
  for (int j = lane; j < s.n; j += 32) sum += expf(x[j] - max);  // second pass
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
  for (int j = lane; j < s.n; j += 32) {
    const float e = expf(x[j] - max);  // third pass
    y[j] = e / sum;                    // writes
  }
}

void softmax_shuffles(const Softmax& s, Stream& stream) {
  cuda::run("softmax", softmax_shuffles_kernel,
            static_cast<unsigned>((s.rows + kWarps - 1) / kWarps), 32 * kWarps, stream, s);
}

}  // namespace braid::ladder
