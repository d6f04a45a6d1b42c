#pragma once
#include <braid/core/internal/kernel_args/attention.hpp>

namespace braid { class Stream; }

namespace braid::cuda {

/// The widest heads of these kernels.
inline constexpr std::int64_t kWidestMmaHead = 256;

/// Attention of float16 and bfloat16 on tensor cores. Scores and sums are float32; probabilities,
/// and in the backward the gradients of the scores, are rounded to the dtype for the products that
/// read them. Nothing may be empty.
void attention_mma(const AttentionArgs& args, Stream& stream);
/// `dots` [batch, heads, queries] has Σ out dout of each row.
void attention_backward_mma(const AttentionBackwardArgs& args, const float* dots, Stream& stream);

}  // namespace braid::cuda
