#pragma once
#include <cstdint>

#include <braid/core/dtype.hpp>

// Arguments of the matrix products.
namespace braid {

/// What a product does with its result z, after z is rounded to the dtype. o is an element of
/// GemmArgs::other. `add` of 16-bit types rounds only the sum, as far as the engine can: cuBLAS has
/// no other matrix, so that bias + o is rounded too.
enum class Epilogue : std::uint8_t {
  none,
  relu,                // max(z, 0)
  gelu,                // gelu(z), and o = z unless other is null
  gelu_tanh,           // the same with the approximation by tanh
  add,                 // z + o
  relu_backward,       // o <= 0 ? 0 : z
  gelu_backward,       // z gelu'(o)
  gelu_tanh_backward,  // the same with the approximation by tanh
};
[[nodiscard]] constexpr bool is_gelu(Epilogue e) noexcept {
  return e == Epilogue::gelu || e == Epilogue::gelu_tanh;
}

/// C[batch] = epilogue(op(A) op(B) (+ bias)), with op(A) [m, k], op(B) [k, n] and C [m, n],
/// row-major with leading dimensions.
/// ta, tb       A is stored as [k, m]; B is stored as [n, k].
/// accumulate   C = epilogue(C + …).
/// bias         n numbers, added to every row; may be null; not together with accumulate.
/// sum_a        m contiguous numbers, may be null: set (not accumulated) to the sums of op(A)'s
///              rows, in a fixed order. With dW = dyᵀ x they are db. Only for floating point and
///              batch 1.
/// other        a matrix for each of C, with C's leading dimension and batch stride, that the
///              epilogue reads or writes. Those of gelu are for floating point only.
/// k == 0 gives zeros (or bias). Nothing is done if m, n or batch is 0. Batch strides are in
/// elements; a stride of 0 repeats. Dtypes: float32, float64, int32, int64; float16 and bfloat16
/// accumulate in float32.
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
  Epilogue epilogue = Epilogue::none;
  void* sum_a = nullptr;
  void* other = nullptr;
};

/// Two products of one dtype that do not depend on each other, as in the backward of a linear
/// layer: dx = dy W, then dW = dyᵀ x and db. If both are so small that a launch costs more than the
/// product, a GPU computes them in one launch.
struct GemmPairArgs {
  GemmArgs first, second;
};

}  // namespace braid
