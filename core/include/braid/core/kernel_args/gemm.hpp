#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// What the matrix products are asked for.
namespace braid {

/// What a product does with its result last.
enum class Activation : std::uint8_t { none, relu };

/// C[batch] = activation(op(A) op(B) (+ bias)): op(A) [m, k], op(B) [k, n], C [m, n] row-major with
/// leading dims; ta: A is stored [k, m]; tb: B is stored [n, k]. accumulate: C = activation(C + …).
/// bias (n numbers, may be null) is added to every row; not together with accumulate. k == 0 gives
/// zeros (or bias). float32 and float64; float16 and bfloat16 accumulate in float32; int32 and
/// int64 too. Batch strides in elements; a stride of 0 repeats. sum_a (m dense numbers, may be
/// null): set, never added to, to the sums of op(A)'s rows, in a fixed order: beside dW = dyᵀ x
/// these are db. Floating point and batch 1 only. Nothing is done where m, n or batch is 0.
struct GemmArgs {
  DType dtype;
  bool ta, tb, accumulate;
  std::int64_t m, n, k, batch;
  const void* a;
  std::int64_t lda, batch_a;
  const void* b;
  std::int64_t ldb, batch_b;
  void* c;
  std::int64_t ldc, batch_c;
  const void* bias;
  Activation activation = Activation::none;
  void* sum_a = nullptr;
};

/// Two products of one dtype that do not depend on each other, as the backward of a layer has them:
/// dx = dy W, then dW = dyᵀ x and db. Where both are tiny, and launches cost more than they, a GPU
/// does them in one.
struct GemmPairArgs {
  GemmArgs first, second;
};

}  // namespace braid
