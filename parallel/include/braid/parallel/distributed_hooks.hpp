#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/parallel/process_communicator.hpp>

// How DistributedDataParallel reduces a bucket of gradients: hooks, and those that exist already.
namespace braid::parallel {

/// A bucket of gradients of one dtype, as a hook gets it.
struct GradientBucket {
  std::size_t index = 0;  ///< of the bucket in the order of the reductions
  bool is_last = false;
  Tensor buffer;                  ///< all gradients of this rank, flat; not divided
  std::vector<Tensor> gradients;  ///< views of the buffer, with the shapes of the parameters
};

/// What a hook has started. At the end of backward, `work` is waited for; then `result` is called,
/// if there is one. Its tensor, with as many elements as the buffer, is the reduced gradient and is
/// copied into the buffer. Without `result` the buffer itself is the result. `accepted` is called
/// when no rank's backward has failed: here a hook changes what it keeps from step to step. It must
/// not throw.
struct HookResult {
  Work work = {};
  std::function<Tensor()> result = {};
  std::function<void()> accepted = {};
};

/// Reduces a bucket in place of the mean over all ranks. Called as soon as the bucket's gradients
/// are complete, in the same order on all ranks. A hook that returns `{}` leaves the gradients of
/// each rank as they are.
///
///     const parallel::DistributedHook sum = [](parallel::ProcessCommunicator& ranks,
///                                              const parallel::GradientBucket& bucket) {
///       return parallel::HookResult{ranks.start_all_reduce(bucket.buffer)};
///     };
using DistributedHook = std::function<HookResult(ProcessCommunicator&, const GradientBucket&)>;

/// The mean over all ranks, as without a hook.
[[nodiscard]] HookResult all_reduce_hook(ProcessCommunicator& ranks, const GradientBucket& bucket);
/// The same with float16 or bfloat16 on the wire: gradients are divided by the number of ranks,
/// rounded, summed in float32 and rounded once more.
[[nodiscard]] HookResult fp16_compress(ProcessCommunicator& ranks, const GradientBucket& bucket);
[[nodiscard]] HookResult bf16_compress(ProcessCommunicator& ranks, const GradientBucket& bucket);

/// The options of PowerSgd.
struct PowerSgdOptions {
  std::int64_t matrix_approximation_rank = 1;
  /// the first steps reduce the gradients as they are; at least 2 with one of the two flags below,
  /// because the buckets are rebuilt after the first step
  std::int64_t start_powerSGD_iter = 1000;
  /// a matrix is compressed if this times the numbers sent is less than its own numbers
  double min_compression_rate = 2;
  bool use_error_feedback = true;  ///< add what a step has lost to the next gradient
  bool warm_start = true;          ///< begin with the factor of the last step
  std::uint64_t seed = 0;          ///< of the first factor, the same on all ranks
};

/// Sends two thin factors of each matrix of gradients: M ≈ P Qᵀ, with P = M Q orthogonalised and
/// Q = Mᵀ P, both reduced to their means. A copy shares its state; use one for each model.
///
/// Throws    ArgumentError for options out of range
/// Notes     its state, the factors and what each rank has lost, is not saved: after a checkpoint
///           is loaded it begins again, with start_powerSGD_iter steps that are not compressed. A
///           backward that fails leaves the state as it was
/// Source    Vogels et al. 2019, PowerSGD, as in torch's powerSGD_hook
///
///     const parallel::PowerSgd hook({.matrix_approximation_rank = 2});
///     parallel::DistributedDataParallel model(Net{}, process, {.hook = hook});
class PowerSgd {
 public:
  explicit PowerSgd(const PowerSgdOptions& options = {});
  HookResult operator()(ProcessCommunicator& ranks, const GradientBucket& bucket) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace braid::parallel
