#pragma once
#include <braid/core/internal/kernel_args/activation.hpp>
#include <braid/core/internal/kernel_args/elementwise.hpp>
#include <braid/core/internal/kernel_args/gemm.hpp>

// The epilogue of a product as a pass of its own, for engines whose products do not finish their
// results. Static: see cpu/simd/kernels.hpp.
namespace braid {

/// A loop over the elements of C, its dims merged; operand 1 has the strides `one` in batch, row
/// and column, and operand 2 those of C.
[[nodiscard]] static Loop loop_over_result(const GemmArgs& args, std::int64_t one_batch,
                                           std::int64_t one_row, std::int64_t one_column) {
  const std::int64_t sizes[3] = {args.batch, args.m, args.n}, c[3] = {args.batch_c, args.ldc, 1},
                     one[3] = {one_batch, one_row, one_column};
  Loop loop{};
  loop.n = args.batch * args.m * args.n;
  for (int d = 0; d < 3; ++d) {
    if (sizes[d] == 1) continue;
    const int before = loop.rank - 1;
    const bool merges = before >= 0 && loop.stride[0][before] == sizes[d] * c[d] &&
                        loop.stride[1][before] == sizes[d] * one[d];
    const int at = merges ? before : loop.rank++;
    loop.size[at] = merges ? loop.size[at] * sizes[d] : sizes[d];
    loop.stride[0][at] = loop.stride[2][at] = c[d];
    loop.stride[1][at] = one[d];
  }
  loop.dense = loop.rank == 1 && loop.stride[0][0] == 1 && loop.stride[1][0] == 1;
  return loop;
}

/// Returns the product without its epilogue, to be followed by run_epilogue. The results of gelu go
/// to `other`, where they are kept.
[[nodiscard]] static GemmArgs without_epilogue(GemmArgs args) {
  if (is_gelu(args.epilogue) && args.other != nullptr && !args.accumulate) args.c = args.other;
  args.epilogue = Epilogue::none;
  args.other = nullptr;
  return args;
}

/// Applies the epilogue of `args` after the product without_epilogue(args). `kernels` has functions
/// with the names and arguments of KernelTable's.
template <class Kernels> static void run_epilogue(const GemmArgs& args, const Kernels& kernels) {
  if (args.epilogue == Epilogue::none || args.m <= 0 || args.n <= 0 || args.batch <= 0) return;
  const Loop loop = loop_over_result(args, args.batch_c, args.ldc, 1);
  const auto unary = [&](UnaryOp op) {
    kernels.unary(UnaryArgs{op, args.dtype, args.c, args.c, 0, loop});
  };
  const auto binary = [&](BinaryOp op) {
    kernels.binary(BinaryArgs{op, args.dtype, args.c, args.c, args.other, 0, 1, loop});
  };
  const auto activation = [&](ActivationOp op, const void* x, const void* dy) {
    kernels.activation(ActivationArgs{op, args.dtype, args.c, x, dy, 0, 0, 0, loop});
  };
  const auto gelu = [&](ActivationOp op) {
    if (args.other == nullptr) return activation(op, args.c, nullptr);
    if (args.accumulate) kernels.copy(CopyArgs{args.dtype, args.dtype, args.other, args.c, loop});
    activation(op, args.other, nullptr);
  };
  switch (args.epilogue) {
    case Epilogue::none: return;
    case Epilogue::relu: return unary(UnaryOp::relu);
    case Epilogue::gelu: return gelu(ActivationOp::gelu);
    case Epilogue::gelu_tanh: return gelu(ActivationOp::gelu_tanh);
    case Epilogue::add: return binary(BinaryOp::add);
    case Epilogue::relu_backward: return binary(BinaryOp::relu_backward);
    case Epilogue::gelu_backward: return activation(ActivationOp::gelu, args.other, args.c);
    case Epilogue::gelu_tanh_backward:
      return activation(ActivationOp::gelu_tanh, args.other, args.c);
  }
}

}  // namespace braid
