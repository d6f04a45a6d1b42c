#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"
#include "ladder/four.cuh"
#include "ladder/problems.hpp"

// Step 5: a warp keeps its row in registers, and accesses memory in groups of four floats.
// Gains  Each element is read once and written once, the least possible for global memory; one
//        exponential for each element; a quarter of the requests.
// Costs  32 registers in each lane hold 1024 elements at most: a longer row uses step 4. The kernel
//        is compiled for each number of groups, because registers cannot be indexed.
namespace braid::ladder {

constexpr int kWarps = 8;  // in a block

template <int Fours>
__global__ void __launch_bounds__(32 * kWarps) softmax_registers_kernel(Softmax s, bool wide) {
  const int row = static_cast<int>(blockIdx.x * kWarps + threadIdx.x / 32),
            lane = static_cast<int>(threadIdx.x % 32);
  if (row >= s.rows) return;  // the whole warp
  const float* const x = s.x + row * s.n;
  float* const y = s.y + row * s.n;
  const float none = cuda::lowest<float>();  // its exponential is 0
  Four v[Fours];
  float max = none;
#pragma unroll
  for (int f = 0; f < Fours; ++f) {
    const int at = (f * 32 + lane) * 4;
    v[f] =
        // the only pass
        wide && at + 4 <= s.n ? simt::load_vector<Four>(x + at) : read_some(x + at, s.n - at, none);
#pragma unroll
    for (int q = 0; q < 4; ++q) max = fmaxf(max, v[f].v[q]);
  }
  for (int apart = 16; apart > 0; apart /= 2)
    max = fmaxf(max, __shfl_xor_sync(0xffffffffu, max, apart));
  float sum = 0;
#pragma unroll
  for (int f = 0; f < Fours; ++f) {
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      v[f].v[q] = expf(v[f].v[q] - max);
      sum += v[f].v[q];
    }
  }
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, apart);
#pragma unroll
  for (int f = 0; f < Fours; ++f) {
    const int at = (f * 32 + lane) * 4;
#pragma unroll
    for (int q = 0; q < 4; ++q) v[f].v[q] /= sum;
    if (wide && at + 4 <= s.n) simt::store_vector(y + at, v[f]);  // writes
    else write_some(y + at, v[f], s.n - at);
  }
}

void softmax_registers(const Softmax& s, Stream& stream) {
  if (s.n > 1024) return softmax_online(s, stream);
  const auto kernel = s.n <= 128   ? softmax_registers_kernel<1>
                      : s.n <= 256 ? softmax_registers_kernel<2>
                      : s.n <= 512 ? softmax_registers_kernel<4>
                                   : softmax_registers_kernel<8>;
  const bool wide = reads_fours(s.x, s.n) && reads_fours(s.y, s.n);
  cuda::run("softmax", kernel, static_cast<unsigned>((s.rows + kWarps - 1) / kWarps), 32 * kWarps,
            stream, s, wide);
}

}  // namespace braid::ladder
