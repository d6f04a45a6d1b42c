#pragma once
#include <braid/core/kernel_table.hpp>

// The kernels of the CUDA table, each in the .cu file of its name. They check what the host can see
// (DTypeError, ShapeError) before they queue anything.
namespace braid::cuda {

void unary(const UnaryArgs& args, Stream& stream);
void binary(const BinaryArgs& args, Stream& stream);
void where(const WhereArgs& args, Stream& stream);
void activation(const ActivationArgs& args, Stream& stream);
void copy(const CopyArgs& args, Stream& stream);
void fill(const FillArgs& args, Stream& stream);
void reduce(const ReduceArgs& args, Stream& stream);
void gemm(const GemmArgs& args, Stream& stream);
void gemm_pair(const GemmPairArgs& args, Stream& stream);
void softmax(const SoftmaxArgs& args, Stream& stream);
void softmax_backward(const SoftmaxBackwardArgs& args, Stream& stream);
void norm_rows(const NormRowsArgs& args, Stream& stream);
void norm_rows_backward(const NormRowsBackwardArgs& args, Stream& stream);
void norm_channels(const NormChannelsArgs& args, Stream& stream);
void norm_channels_backward(const NormChannelsBackwardArgs& args, Stream& stream);
void dropout(const DropoutArgs& args, Stream& stream);
void attention(const AttentionArgs& args, Stream& stream);
void attention_backward(const AttentionBackwardArgs& args, Stream& stream);
void cross_entropy(const CrossEntropyArgs& args, Stream& stream);
void cross_entropy_backward(const CrossEntropyBackwardArgs& args, Stream& stream);
void mse(const MseArgs& args, Stream& stream);
void mse_backward(const MseBackwardArgs& args, Stream& stream);
void gather_rows(const GatherRowsArgs& args, Stream& stream);
void scatter_add_rows(const ScatterAddRowsArgs& args, Stream& stream);
void gather(const GatherArgs& args, Stream& stream);
void scatter(const ScatterArgs& args, Stream& stream);
void scan(const ScanArgs& args, Stream& stream);
void sort(const SortArgs& args, Stream& stream);
void random(const RandomArgs& args, Stream& stream);
void rnn_cell(const RnnCellArgs& args, Stream& stream);
void rnn_cell_backward(const RnnCellBackwardArgs& args, Stream& stream);
void sgd(const SgdArgs& args, Stream& stream);
void adam(const AdamArgs& args, Stream& stream);
void rmsprop(const RmspropArgs& args, Stream& stream);
void adagrad(const AdagradArgs& args, Stream& stream);
void lion(const LionArgs& args, Stream& stream);
void conv(const ConvArgs& args, Stream& stream);
void conv_backward_data(const ConvDataArgs& args, Stream& stream);
void conv_backward_weight(const ConvWeightArgs& args, Stream& stream);
void max_pool(const MaxPoolArgs& args, Stream& stream);
void max_pool_backward(const MaxPoolBackwardArgs& args, Stream& stream);
void max_pool_pick(const MaxPoolPickArgs& args, Stream& stream);
void resample(const ResampleArgs& args, Stream& stream);

}  // namespace braid::cuda
