#pragma once
#include <braid/core/internal/kernel_args/softmax.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

/// Softmax of rows that do not fit in the registers of a block of kThreads, and its gradient.
void softmax_long(const SoftmaxArgs& args, Stream& stream);
void softmax_backward_long(const SoftmaxBackwardArgs& args, Stream& stream);

}  // namespace braid::cuda
