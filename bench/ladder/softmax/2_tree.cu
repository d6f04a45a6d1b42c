#include "cuda/device/math.cuh"
#include "cuda/device/run.cuh"
#include "ladder/problems.hpp"

// Step 2: one block for each row. Each thread reads every 256th element; the partial results are
// reduced in shared memory, in a tree.
// Gains  The lanes read neighbouring elements: 4 sectors for 128 bytes. There are as many blocks as
//        rows.
// Costs  The tree combines neighbours first, then neighbours of neighbours: in the step `apart`,
//        thread t works at index 2 · apart · t. So the lanes access words 2, 4, 8, … apart, in only
//        16, 8, 4, … banks. Each reduction has nine barriers, each row has two reductions, and most
//        threads are idle most of the time.
namespace braid::ladder {

constexpr int kBlock = 256;

template <class Join> BRAID_DEVICE float join_in_tree(float* part, float value, Join join) {
  const int thread = static_cast<int>(threadIdx.x);
  part[thread] = value;  // stores parts
  __syncthreads();
  for (int apart = 1; apart < kBlock; apart *= 2) {
    const int at = 2 * apart * thread;
    if (at < kBlock) {
      const float left = part[at];           // reads left
      const float right = part[at + apart];  // reads right
      part[at] = join(left, right);          // stores joined
    }
    __syncthreads();
  }
  const float result = part[0];  // reads result
  __syncthreads();               // the next reduction overwrites `part`
  return result;
}

__global__ void __launch_bounds__(kBlock) softmax_tree_kernel(Softmax s) {
  SIMT_SHARED(float, part, [kBlock]);
  const int row = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  const float* const x = s.x + row * s.n;
  float* const y = s.y + row * s.n;
  float max = cuda::lowest<float>();
  for (int j = thread; j < s.n; j += kBlock) max = fmaxf(max, x[j]);  // first pass
  max = join_in_tree(part, max, [](float a, float b) { return fmaxf(a, b); });
  float sum = 0;
  for (int j = thread; j < s.n; j += kBlock) sum += expf(x[j] - max);  // second pass
  sum = join_in_tree(part, sum, [](float a, float b) { return a + b; });
  for (int j = thread; j < s.n; j += kBlock) {
    const float e = expf(x[j] - max);  // third pass
    y[j] = e / sum;                    // writes
  }
}

void softmax_tree(const Softmax& s, Stream& stream) {
  cuda::run("softmax", softmax_tree_kernel, static_cast<unsigned>(s.rows), kBlock, stream, s);
}

}  // namespace braid::ladder
