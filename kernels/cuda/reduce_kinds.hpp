#pragma once
#include <braid/core/kernel_args/reduce.hpp>

namespace braid { class Stream; }

// The parts of reduce.cu, in separate files so that they compile in parallel. args.over.n > 0.
namespace braid::cuda {

void reduce_sum(const ReduceArgs& args, Stream& stream);
void reduce_extreme(const ReduceArgs& args, Stream& stream);  ///< max and min
void reduce_index(const ReduceArgs& args, Stream& stream);    ///< argmax and argmin

}  // namespace braid::cuda
