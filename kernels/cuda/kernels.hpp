#pragma once
#include <braid/core/kernel_table.hpp>

// The entries of the CUDA table, each in the .cu file of its name. They check what the host can see (DTypeError, ShapeError) before they queue anything.
namespace braid::cuda {

void unary(const UnaryArgs& args, Stream& stream);
void binary(const BinaryArgs& args, Stream& stream);
void where(const WhereArgs& args, Stream& stream);
void copy(const CopyArgs& args, Stream& stream);
void fill(const FillArgs& args, Stream& stream);
void reduce(const ReduceArgs& args, Stream& stream);
void gemm(const GemmArgs& args, Stream& stream);
void gemm_pair(const GemmPairArgs& args, Stream& stream);
void softmax(const SoftmaxArgs& args, Stream& stream);
void softmax_backward(const SoftmaxBackwardArgs& args, Stream& stream);
void cross_entropy(const CrossEntropyArgs& args, Stream& stream);
void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Stream& stream);
void mse(const MseArgs& args, Stream& stream);
void mse_backward(const MseBackwardArgs& args, Stream& stream);
void gather_rows(const GatherRowsArgs& args, Stream& stream);
void scatter_add_rows(const ScatterAddRowsArgs& args, Stream& stream);
void random(const RandomArgs& args, Stream& stream);
void sgd(const SgdArgs& args, Stream& stream);
void adamw(const AdamWArgs& args, Stream& stream);

}  // namespace braid::cuda
