#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 1: one thread for each row, with the three loops of the formula. The largest element is
// subtracted, so that no exponential overflows.
// Costs  The 32 lanes of a warp read 32 rows, n elements apart: 32 sectors of 32 bytes, of which
//        each lane uses 4 bytes. And a batch of 64 rows is only two warps.
namespace braid::ladder {

__global__ void __launch_bounds__(64) softmax_naive_kernel(Softmax s) {
  const int row = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (row >= s.rows) return;
  const float* const x = s.x + row * s.n;
  float* const y = s.y + row * s.n;
  float max = cuda::lowest<float>();
  for (int j = 0; j < s.n; ++j) max = fmaxf(max, x[j]);  // first pass
  float sum = 0;
  for (int j = 0; j < s.n; ++j) sum += expf(x[j] - max);  // second pass
  for (int j = 0; j < s.n; ++j) {
    const float e = expf(x[j] - max);  // third pass
    y[j] = e / sum;                    // writes
  }
}

void softmax_naive(const Softmax& s, Stream& stream) {
  cuda::run("softmax", softmax_naive_kernel, static_cast<unsigned>((s.rows + 63) / 64), 64, stream,
            s);
}

}  // namespace braid::ladder
