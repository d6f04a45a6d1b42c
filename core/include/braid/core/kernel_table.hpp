#pragma once

// The kernels of a backend. Their arguments are in kernel_args/, one header per family; code that
// only passes the table on needs none of them.
namespace braid {

class Stream;
struct UnaryArgs;
struct BinaryArgs;
struct WhereArgs;
struct ActivationArgs;
struct CopyArgs;
struct FillArgs;
struct ReduceArgs;
struct GemmArgs;
struct GemmPairArgs;
struct SoftmaxArgs;
struct SoftmaxBackwardArgs;
struct NormRowsArgs;
struct NormRowsBackwardArgs;
struct NormChannelsArgs;
struct NormChannelsBackwardArgs;
struct DropoutArgs;
struct AttentionArgs;
struct AttentionBackwardArgs;
struct CrossEntropyArgs;
struct CrossEntropyBackwardArgs;
struct MseArgs;
struct MseBackwardArgs;
struct GatherRowsArgs;
struct ScatterAddRowsArgs;
struct GatherArgs;
struct ScatterArgs;
struct ScanArgs;
struct SortArgs;
struct RandomArgs;
struct RnnCellArgs;
struct RnnCellBackwardArgs;
struct SgdArgs;
struct AdamArgs;
struct RmspropArgs;
struct AdagradArgs;
struct LionArgs;
struct ConvArgs;
struct ConvDataArgs;
struct ConvWeightArgs;
struct MaxPoolArgs;
struct MaxPoolBackwardArgs;
struct MaxPoolPickArgs;
struct ResampleArgs;

/// All kernels of a backend, one line each. If an entry is null, the backend does not have the op,
/// and `launch` throws DeviceError. A kernel is queued on the given stream (the CPU runs it
/// immediately). It receives checked arguments and does nothing for tensors without elements.
struct KernelTable {
  void (*unary)(const UnaryArgs&, Stream&) = nullptr;
  void (*binary)(const BinaryArgs&, Stream&) = nullptr;
  void (*where)(const WhereArgs&, Stream&) = nullptr;
  void (*activation)(const ActivationArgs&, Stream&) = nullptr;
  void (*copy)(const CopyArgs&, Stream&) = nullptr;
  void (*fill)(const FillArgs&, Stream&) = nullptr;
  void (*reduce)(const ReduceArgs&, Stream&) = nullptr;
  void (*gemm)(const GemmArgs&, Stream&) = nullptr;
  void (*gemm_pair)(const GemmPairArgs&, Stream&) = nullptr;
  void (*softmax)(const SoftmaxArgs&, Stream&) = nullptr;
  void (*softmax_backward)(const SoftmaxBackwardArgs&, Stream&) = nullptr;
  void (*cross_entropy)(const CrossEntropyArgs&, Stream&) = nullptr;
  void (*cross_entropy_backward)(const CrossEntropyBackwardArgs&, Stream&) = nullptr;
  void (*mse)(const MseArgs&, Stream&) = nullptr;
  void (*mse_backward)(const MseBackwardArgs&, Stream&) = nullptr;
  void (*gather_rows)(const GatherRowsArgs&, Stream&) = nullptr;
  void (*scatter_add_rows)(const ScatterAddRowsArgs&, Stream&) = nullptr;
  void (*gather)(const GatherArgs&, Stream&) = nullptr;
  void (*scatter)(const ScatterArgs&, Stream&) = nullptr;
  void (*scan)(const ScanArgs&, Stream&) = nullptr;
  void (*sort)(const SortArgs&, Stream&) = nullptr;
  void (*random)(const RandomArgs&, Stream&) = nullptr;
  void (*rnn_cell)(const RnnCellArgs&, Stream&) = nullptr;
  void (*rnn_cell_backward)(const RnnCellBackwardArgs&, Stream&) = nullptr;
  void (*sgd)(const SgdArgs&, Stream&) = nullptr;
  void (*norm_rows)(const NormRowsArgs&, Stream&) = nullptr;
  void (*norm_rows_backward)(const NormRowsBackwardArgs&, Stream&) = nullptr;
  void (*norm_channels)(const NormChannelsArgs&, Stream&) = nullptr;
  void (*norm_channels_backward)(const NormChannelsBackwardArgs&, Stream&) = nullptr;
  void (*dropout)(const DropoutArgs&, Stream&) = nullptr;
  void (*attention)(const AttentionArgs&, Stream&) = nullptr;
  void (*attention_backward)(const AttentionBackwardArgs&, Stream&) = nullptr;
  void (*adam)(const AdamArgs&, Stream&) = nullptr;
  void (*rmsprop)(const RmspropArgs&, Stream&) = nullptr;
  void (*adagrad)(const AdagradArgs&, Stream&) = nullptr;
  void (*lion)(const LionArgs&, Stream&) = nullptr;
  void (*conv)(const ConvArgs&, Stream&) = nullptr;
  void (*conv_backward_data)(const ConvDataArgs&, Stream&) = nullptr;
  void (*conv_backward_weight)(const ConvWeightArgs&, Stream&) = nullptr;
  void (*max_pool)(const MaxPoolArgs&, Stream&) = nullptr;
  void (*max_pool_backward)(const MaxPoolBackwardArgs&, Stream&) = nullptr;
  void (*max_pool_pick)(const MaxPoolPickArgs&, Stream&) = nullptr;
  void (*resample)(const ResampleArgs&, Stream&) = nullptr;
};

}  // namespace braid
