#include "cpu/simd/kernels.hpp"

namespace braid::cpu::BRAID_ISA {

extern const KernelTable kKernels;
constinit const KernelTable kKernels{
    .unary = &unary,
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
    .adamw = &adamw,
};

}  // namespace braid::cpu::BRAID_ISA
