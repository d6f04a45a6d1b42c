#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 4: the largest element and the sum in one pass (Milakov and Gimelshein 2018, "Online
// normalizer calculation for softmax").
// Gains  Two reads of a row instead of three. A sum of exponentials relative to one maximum is
//        converted to a larger maximum by a factor:
//          Σ exp(x - m') = Σ exp(x - m) · exp(m - m')
//        so each lane updates its maximum as it reads, and two lanes are combined by converting
//        both to the larger maximum.
// Costs  Two exponentials for each element in that pass, instead of one.
namespace braid::ladder {

constexpr int kWarps = 8;  // in a block

/// The largest of some elements, and Σ exp(x - max). max starts at a finite number, because -inf -
/// -inf would be NaN.
struct Running {
  float max = -3.402823466e38f;
  float sum = 0;
  BRAID_DEVICE void join(float other_max, float other_sum) {
    const float larger = fmaxf(max, other_max);
    sum = sum * expf(max - larger) + other_sum * expf(other_max - larger);
    max = larger;
  }
};

__global__ void __launch_bounds__(32 * kWarps) softmax_online_kernel(Softmax s) {
  const int row = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32),
            lane = static_cast<int>(threadIdx.x % 32);
  if (row >= s.rows) return;  // the whole warp
  const float* const x = s.x + row * s.n;
  float* const y = s.y + row * s.n;
  Running all;
  for (int j = lane; j < s.n; j += 32) all.join(x[j], 1.0f);  // first pass
  for (int apart = 16; apart > 0; apart /= 2) {
    const float max = __shfl_xor_sync(0xffffffffu, all.max, apart);
    const float sum = __shfl_xor_sync(0xffffffffu, all.sum, apart);
    all.join(max, sum);
  }
  for (int j = lane; j < s.n; j += 32) {
    const float e = expf(x[j] - all.max);  // second pass
    y[j] = e / all.sum;                    // writes
  }
}

void softmax_online(const Softmax& s, Stream& stream) {
  cuda::run("softmax", softmax_online_kernel, static_cast<unsigned>((s.rows + kWarps - 1) / kWarps),
            32 * kWarps, stream, s);
}

}  // namespace braid::ladder
