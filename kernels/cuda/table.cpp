#include "cuda/table.hpp"

#include "cuda/kernels.hpp"

namespace braid::cuda {

const KernelTable& kernel_table() noexcept {
  static constexpr KernelTable table{.unary = &unary,
                                     .binary = &binary,
                                     .where = &where,
                                     .copy = &copy,
                                     .fill = &fill,
                                     .reduce = &reduce,
                                     .gemm = &gemm,
                                     .gemm_pair = &gemm_pair,
                                     .softmax = &softmax,
                                     .softmax_backward = &softmax_backward,
                                     .cross_entropy = &cross_entropy,
                                     .cross_entropy_backward = &cross_entropy_backward,
                                     .mse = &mse,
                                     .mse_backward = &mse_backward,
                                     .gather_rows = &gather_rows,
                                     .scatter_add_rows = &scatter_add_rows,
                                     .random = &random,
                                     .sgd = &sgd,
                                     .adamw = &adamw};
  return table;
}

}  // namespace braid::cuda
