#pragma once
// The calls that a kernel of the table is compared with: calls_of(the type of its arguments, a dtype). A kernel without them does not compile.
#include "cuda_kernels/agreement.hpp"

namespace agreement {

template <class Args>
struct Of {};  // names an overload

std::vector<Call<braid::UnaryArgs>> calls_of(Of<braid::UnaryArgs>, DType t);
std::vector<Call<braid::BinaryArgs>> calls_of(Of<braid::BinaryArgs>, DType t);
std::vector<Call<braid::WhereArgs>> calls_of(Of<braid::WhereArgs>, DType t);
std::vector<Call<braid::CopyArgs>> calls_of(Of<braid::CopyArgs>, DType t);
std::vector<Call<braid::FillArgs>> calls_of(Of<braid::FillArgs>, DType t);
std::vector<Call<braid::ReduceArgs>> calls_of(Of<braid::ReduceArgs>, DType t);
std::vector<Call<braid::GemmArgs>> calls_of(Of<braid::GemmArgs>, DType t);
std::vector<Call<braid::GemmPairArgs>> calls_of(Of<braid::GemmPairArgs>, DType t);
std::vector<Call<braid::SoftmaxArgs>> calls_of(Of<braid::SoftmaxArgs>, DType t);
std::vector<Call<braid::SoftmaxBackwardArgs>> calls_of(Of<braid::SoftmaxBackwardArgs>, DType t);
std::vector<Call<braid::CrossEntropyArgs>> calls_of(Of<braid::CrossEntropyArgs>, DType t);
std::vector<Call<braid::CrossEntropyBackwardArgs>> calls_of(Of<braid::CrossEntropyBackwardArgs>, DType t);
std::vector<Call<braid::MseArgs>> calls_of(Of<braid::MseArgs>, DType t);
std::vector<Call<braid::MseBackwardArgs>> calls_of(Of<braid::MseBackwardArgs>, DType t);
std::vector<Call<braid::GatherRowsArgs>> calls_of(Of<braid::GatherRowsArgs>, DType t);
std::vector<Call<braid::ScatterAddRowsArgs>> calls_of(Of<braid::ScatterAddRowsArgs>, DType t);
std::vector<Call<braid::RandomArgs>> calls_of(Of<braid::RandomArgs>, DType t);
std::vector<Call<braid::SgdArgs>> calls_of(Of<braid::SgdArgs>, DType t);
std::vector<Call<braid::AdamWArgs>> calls_of(Of<braid::AdamWArgs>, DType t);

}  // namespace agreement
