// Elementwise, row and column kernels.
#include "kernels.hpp"
#include "run_kernel.hpp"

namespace braid::simt_tests {

__global__ void add_kernel(int n, const float* a, const float* b, float* c) {
  int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 3 < n) {
    const float4 x = simt::load4(a + i), y = simt::load4(b + i);
    simt::store4(c + i, make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w));
  } else {
    for (; i < n; ++i) c[i] = __ldg(a + i) + __ldg(b + i);
  }
}

struct Sum {
  __device__ static float identity() { return 0.0f; }
  __device__ static float join(float a, float b) { return a + b; }
};
struct Max {
  __device__ static float identity() { return -INFINITY; }
  __device__ static float join(float a, float b) { return fmaxf(a, b); }
};

template <class R> __device__ float warp_reduce(float v) {
  for (int d = 16; d > 0; d /= 2) v = R::join(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}

template <class R> __device__ float block_reduce(float v) {
  SIMT_SHARED(float, part, [32]);
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  v = warp_reduce<R>(v);
  __syncthreads();  // part may still be read by an earlier call
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = lane < warps ? part[lane] : R::identity();
  return warp_reduce<R>(v);
}

__global__ void softmax_kernel(int cols, const float* x, float* y) {
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  x += static_cast<std::size_t>(blockIdx.x) * cols;
  y += static_cast<std::size_t>(blockIdx.x) * cols;
  float m = -INFINITY, s = 0;
  for (int i = first; i < cols; i += step) m = fmaxf(m, x[i]);
  m = block_reduce<Max>(m);
  for (int i = first; i < cols; i += step) s += __expf(x[i] - m);
  s = block_reduce<Sum>(s);
  const float r = 1.0f / s;
  for (int i = first; i < cols; i += step) y[i] = __expf(x[i] - m) * r;
}

__global__ void layernorm_kernel(int cols, const float* x, const float* gain, const float* bias,
                                 float eps, float* y, float* mean, float* rstd) {
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  x += static_cast<std::size_t>(blockIdx.x) * cols;
  y += static_cast<std::size_t>(blockIdx.x) * cols;
  float s = 0, q = 0;
  for (int i = first; i < cols; i += step) s += x[i];
  const float mu = block_reduce<Sum>(s) / static_cast<float>(cols);
  for (int i = first; i < cols; i += step) q += (x[i] - mu) * (x[i] - mu);
  const float rs = rsqrtf(block_reduce<Sum>(q) / static_cast<float>(cols) + eps);
  for (int i = first; i < cols; i += step) y[i] = (x[i] - mu) * rs * gain[i] + bias[i];
  if (threadIdx.x == 0) {
    mean[blockIdx.x] = mu;
    rstd[blockIdx.x] = rs;
  }
}

// Gradients of gain and bias: summed over the rows of a block in dynamic shared memory, then one
// atomic a column.
__global__ void layernorm_backward_kernel(int rows, int cols, const float* dy, const float* x,
                                          const float* gain, const float* mean, const float* rstd,
                                          float* dx, float* dgain, float* dbias) {
  SIMT_DYN_SHARED(float, sums);  // [2 * cols]
  const int first = static_cast<int>(threadIdx.x), step = static_cast<int>(blockDim.x);
  for (int i = first; i < 2 * cols; i += step) sums[i] = 0;
  __syncthreads();
  for (int r = static_cast<int>(blockIdx.x); r < rows; r += static_cast<int>(gridDim.x)) {
    const float *xr = x + static_cast<std::size_t>(r) * cols,
                *dyr = dy + static_cast<std::size_t>(r) * cols;
    const float mu = mean[r], rs = rstd[r];
    float s1 = 0, s2 = 0;
    for (int i = first; i < cols; i += step) {
      const float xh = (xr[i] - mu) * rs, d = dyr[i] * gain[i];
      s1 += d;
      s2 += d * xh;
      sums[i] += dyr[i] * xh;
      sums[cols + i] += dyr[i];
    }
    s1 = block_reduce<Sum>(s1) / static_cast<float>(cols);
    s2 = block_reduce<Sum>(s2) / static_cast<float>(cols);
    for (int i = first; i < cols; i += step) {
      const float xh = (xr[i] - mu) * rs;
      dx[static_cast<std::size_t>(r) * cols + i] = rs * (dyr[i] * gain[i] - s1 - xh * s2);
    }
  }
  __syncthreads();
  for (int i = first; i < cols; i += step) {
    atomicAdd(dgain + i, sums[i]);
    atomicAdd(dbias + i, sums[cols + i]);
  }
}

__global__ void column_sum_kernel(int rows, int cols, const float* dy, float* db) {  // 32x8 threads
  SIMT_SHARED(float, tile, [8][33]);
  const int c = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  float s = 0;
  if (c < cols)
    for (int r = static_cast<int>(threadIdx.y); r < rows; r += 8)
      s += dy[static_cast<std::size_t>(r) * cols + c];
  tile[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y == 0 && c < cols) {
    s = 0;
    for (int k = 0; k < 8; ++k) s += tile[k][threadIdx.x];
    db[c] = s;
  }
}

__global__ void embedding_backward_kernel(int n, int dim, const int* index, const float* dy,
                                          float* dw) {
  const int step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n * dim; i += step)
    atomicAdd(dw + static_cast<std::size_t>(index[i / dim]) * dim + i % dim, dy[i]);
}

// One pass: each block sums a part; the block that counts itself in last sums the parts, and leaves
// the counter as it was.
__global__ void last_block_sum_kernel(int n, const float* x, float* partial, unsigned* counter,
                                      float* sum) {
  SIMT_SHARED(unsigned, last, [1]);
  float s = 0;
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += static_cast<int>(gridDim.x * blockDim.x))
    s += x[i];
  s = block_reduce<Sum>(s);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = s;
    __threadfence();
    last[0] = atomicAdd(counter, 1u) == gridDim.x - 1 ? 1 : 0;
  }
  __syncthreads();
  if (last[0] == 0) return;
  s = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0.0f;
  s = block_reduce<Sum>(s);
  if (threadIdx.x == 0) {
    *sum = s;
    *counter = 0;
  }
}

void add(int n, const float* a, const float* b, float* c) {
  run(add_kernel, (n + 1023) / 1024, 256, 0, n, a, b, c);
}
void softmax(int rows, int cols, const float* x, float* y) {
  run(softmax_kernel, rows, 256, 0, cols, x, y);
}
void layernorm(int rows, int cols, const float* x, const float* gain, const float* bias, float eps,
               float* y, float* mean, float* rstd) {
  run(layernorm_kernel, rows, 128, 0, cols, x, gain, bias, eps, y, mean, rstd);
}
void layernorm_backward(int rows, int cols, const float* dy, const float* x, const float* gain,
                        const float* mean, const float* rstd, float* dx, float* dgain,
                        float* dbias) {
  run(layernorm_backward_kernel, 4, 128, static_cast<std::size_t>(2 * cols) * sizeof(float), rows,
      cols, dy, x, gain, mean, rstd, dx, dgain, dbias);
}
void column_sum(int rows, int cols, const float* dy, float* db) {
  run(column_sum_kernel, (cols + 31) / 32, dim3(32, 8), 0, rows, cols, dy, db);
}
void embedding_backward(int n, int dim, const int* index, const float* dy, float* dw) {
  run(embedding_backward_kernel, 8, 128, 0, n, dim, index, dy, dw);
}
void last_block_sum(int n, const float* x, float* partial, unsigned* counter, float* sum) {
  run(last_block_sum_kernel, 20, 64, 0, n, x, partial, counter, sum);
}

}  // namespace braid::simt_tests
