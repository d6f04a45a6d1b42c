#pragma once
// The calls that a kernel of the table is compared with: calls_of(the type of its arguments, a
// dtype). A kernel without them does not compile.
#include <braid/core/kernel_args/activation.hpp>
#include <braid/core/kernel_args/attention.hpp>
#include <braid/core/kernel_args/conv.hpp>
#include <braid/core/kernel_args/dropout.hpp>
#include <braid/core/kernel_args/elementwise.hpp>
#include <braid/core/kernel_args/gemm.hpp>
#include <braid/core/kernel_args/image.hpp>
#include <braid/core/kernel_args/index.hpp>
#include <braid/core/kernel_args/loss.hpp>
#include <braid/core/kernel_args/norm.hpp>
#include <braid/core/kernel_args/optim.hpp>
#include <braid/core/kernel_args/random.hpp>
#include <braid/core/kernel_args/reduce.hpp>
#include <braid/core/kernel_args/rnn.hpp>
#include <braid/core/kernel_args/scan.hpp>
#include <braid/core/kernel_args/softmax.hpp>
#include <braid/core/kernel_args/sort.hpp>

#include "cuda_kernels/agreement.hpp"

namespace agreement {

template <class Args> struct Of {};  // names an overload

std::vector<Call<braid::UnaryArgs>> calls_of(Of<braid::UnaryArgs>, DType t);
std::vector<Call<braid::BinaryArgs>> calls_of(Of<braid::BinaryArgs>, DType t);
std::vector<Call<braid::WhereArgs>> calls_of(Of<braid::WhereArgs>, DType t);
std::vector<Call<braid::ActivationArgs>> calls_of(Of<braid::ActivationArgs>, DType t);
std::vector<Call<braid::CopyArgs>> calls_of(Of<braid::CopyArgs>, DType t);
std::vector<Call<braid::FillArgs>> calls_of(Of<braid::FillArgs>, DType t);
std::vector<Call<braid::ReduceArgs>> calls_of(Of<braid::ReduceArgs>, DType t);
std::vector<Call<braid::GemmArgs>> calls_of(Of<braid::GemmArgs>, DType t);
std::vector<Call<braid::GemmPairArgs>> calls_of(Of<braid::GemmPairArgs>, DType t);
std::vector<Call<braid::SoftmaxArgs>> calls_of(Of<braid::SoftmaxArgs>, DType t);
std::vector<Call<braid::SoftmaxBackwardArgs>> calls_of(Of<braid::SoftmaxBackwardArgs>, DType t);
std::vector<Call<braid::CrossEntropyArgs>> calls_of(Of<braid::CrossEntropyArgs>, DType t);
std::vector<Call<braid::CrossEntropyBackwardArgs>> calls_of(Of<braid::CrossEntropyBackwardArgs>,
                                                            DType t);
std::vector<Call<braid::MseArgs>> calls_of(Of<braid::MseArgs>, DType t);
std::vector<Call<braid::MseBackwardArgs>> calls_of(Of<braid::MseBackwardArgs>, DType t);
std::vector<Call<braid::GatherRowsArgs>> calls_of(Of<braid::GatherRowsArgs>, DType t);
std::vector<Call<braid::ScatterAddRowsArgs>> calls_of(Of<braid::ScatterAddRowsArgs>, DType t);
std::vector<Call<braid::GatherArgs>> calls_of(Of<braid::GatherArgs>, DType t);
std::vector<Call<braid::ScatterArgs>> calls_of(Of<braid::ScatterArgs>, DType t);
std::vector<Call<braid::ScanArgs>> calls_of(Of<braid::ScanArgs>, DType t);
std::vector<Call<braid::SortArgs>> calls_of(Of<braid::SortArgs>, DType t);
std::vector<Call<braid::RandomArgs>> calls_of(Of<braid::RandomArgs>, DType t);
std::vector<Call<braid::RnnCellArgs>> calls_of(Of<braid::RnnCellArgs>, DType t);
std::vector<Call<braid::RnnCellBackwardArgs>> calls_of(Of<braid::RnnCellBackwardArgs>, DType t);
std::vector<Call<braid::SgdArgs>> calls_of(Of<braid::SgdArgs>, DType t);
std::vector<Call<braid::NormRowsArgs>> calls_of(Of<braid::NormRowsArgs>, DType t);
std::vector<Call<braid::NormRowsBackwardArgs>> calls_of(Of<braid::NormRowsBackwardArgs>, DType t);
std::vector<Call<braid::NormChannelsArgs>> calls_of(Of<braid::NormChannelsArgs>, DType t);
std::vector<Call<braid::NormChannelsBackwardArgs>> calls_of(Of<braid::NormChannelsBackwardArgs>,
                                                            DType t);
std::vector<Call<braid::DropoutArgs>> calls_of(Of<braid::DropoutArgs>, DType t);
std::vector<Call<braid::AttentionArgs>> calls_of(Of<braid::AttentionArgs>, DType t);
std::vector<Call<braid::AttentionBackwardArgs>> calls_of(Of<braid::AttentionBackwardArgs>, DType t);
std::vector<Call<braid::AdamArgs>> calls_of(Of<braid::AdamArgs>, DType t);
std::vector<Call<braid::RmspropArgs>> calls_of(Of<braid::RmspropArgs>, DType t);
std::vector<Call<braid::AdagradArgs>> calls_of(Of<braid::AdagradArgs>, DType t);
std::vector<Call<braid::LionArgs>> calls_of(Of<braid::LionArgs>, DType t);
std::vector<Call<braid::ConvArgs>> calls_of(Of<braid::ConvArgs>, DType t);
std::vector<Call<braid::ConvDataArgs>> calls_of(Of<braid::ConvDataArgs>, DType t);
std::vector<Call<braid::ConvWeightArgs>> calls_of(Of<braid::ConvWeightArgs>, DType t);
std::vector<Call<braid::MaxPoolArgs>> calls_of(Of<braid::MaxPoolArgs>, DType t);
std::vector<Call<braid::MaxPoolBackwardArgs>> calls_of(Of<braid::MaxPoolBackwardArgs>, DType t);
std::vector<Call<braid::MaxPoolPickArgs>> calls_of(Of<braid::MaxPoolPickArgs>, DType t);
std::vector<Call<braid::ResampleArgs>> calls_of(Of<braid::ResampleArgs>, DType t);

}  // namespace agreement
