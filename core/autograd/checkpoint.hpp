#pragma once
// What SavedTensor asks of a checkpointed call.
#include <braid/core/autograd.hpp>

namespace braid::detail {

/// True if the tensors that the thread's ops save are kept, as usual.
[[nodiscard]] bool keeps_saved() noexcept;

/// True if a tensor that a checkpointed call computes again is to have its history: in a backward
/// that records, but not while an outer call is computed again without.
[[nodiscard]] bool wants_history() noexcept;

struct Passed {
  Ref<autograd::Recomputed> from;  ///< where to ask for the tensor; null in the second call
  std::uint32_t index;
  bool keep;  ///< whether the SavedTensor keeps the tensor nevertheless
};
/// Passes a tensor that is to be saved to the thread's checkpointed call.
[[nodiscard]] Passed pass_to_checkpoint(const Tensor& t);

}  // namespace braid::detail
