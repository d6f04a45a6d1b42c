#pragma once
#include <mutex>

#include <braid/parallel/process_communicator.hpp>

#include "process/core.hpp"

namespace braid::parallel::process {

/// The communicator of processes, for every engine.
class EngineCommunicator final : public ProcessCommunicator {
 public:
  explicit EngineCommunicator(std::shared_ptr<Core> core);
  /// A world of one rank. Nothing is sent; results are copies of the inputs.
  explicit EngineCommunicator(Device device);
  ~EngineCommunicator() override;

  /// Ends the communicator, as the destructor does: all that is queued runs first. `orderly`: false
  /// if this rank fails, so that it must not wait for others.
  void shut_down(bool orderly) noexcept;
  /// Null: none.
  [[nodiscard]] std::exception_ptr failure() const noexcept {
    return core_ ? core_->monitor().failure() : nullptr;
  }

  [[nodiscard]] int rank() const noexcept override { return core_ ? core_->rank() : 0; }
  /// The rank in the world, which differs from rank() in a communicator made by split().
  [[nodiscard]] int world_rank() const noexcept {
    return core_ ? core_->options().ranks[static_cast<std::size_t>(core_->rank())] : 0;
  }
  [[nodiscard]] std::string_view engine() const noexcept override;

  Work start_broadcast(const Tensor& t, int root, std::string_view name) override;
  Work start_reduce(const Tensor& t, int root, ReduceOp op, std::string_view name) override;
  Work start_all_reduce(const Tensor& t, ReduceOp op, std::string_view name) override;
  Work start_all_gather(const Tensor& out, const Tensor& in, std::string_view name) override;
  Work start_reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op,
                            std::string_view name) override;
  Work start_all_to_all(const Tensor& out, const Tensor& in, std::vector<std::int64_t> out_counts,
                        std::vector<std::int64_t> in_counts, std::string_view name) override;
  Work start_send(const Tensor& t, int to, int tag, std::string_view name) override;
  Work start_recv(const Tensor& t, int from, int tag, std::string_view name) override;
  Work start_barrier(std::string_view name) override;
  Work start_function(std::function<void()> f) override;
  std::shared_ptr<ProcessCommunicator> split(int color, int key) override;
  void abort_with(std::string_view reason) noexcept override;
  void abort() noexcept override { abort_with("abort() was called"); }
  void check() override;

 private:
#define BRAID_IN_PLACE(name) void do_##name(std::span<const BufferView> buffers) override;
#define BRAID_TO_ROOT(name) \
  void do_##name(std::span<const BufferView> buffers, std::span<const BufferView> results) override;
#define BRAID_EXCHANGE(name, buffer, result, types) \
  void do_##name(std::span<const BufferView> buffers, std::span<const BufferView> results) override;
#include <braid/parallel/internal/collectives.def>

  void check_tensor(const char* op, const Tensor& t) const;
  void check_rank(const char* op, const char* what, int rank) const;
  /// Throws unless out has `times` the elements of in along dim 0, or in of out if `part`.
  void check_parts(const char* op, const Tensor& whole, const Tensor& part) const;
  /// A call on tensors; either may be undefined.
  [[nodiscard]] std::shared_ptr<Call> call(CallKind kind, const Tensor& in, const Tensor& out,
                                           std::string_view name) const;
  /// Queues it, or runs it in a world of one.
  Work add(std::shared_ptr<Call> call);
  /// Calls for the items of the base class; waits for all.
  void run_all(CallKind kind, std::span<const BufferView> in, std::span<const BufferView> out);

  std::shared_ptr<Core> core_;  // null in a world of one
  std::mutex mutex_;
  std::exception_ptr failure_;  // of a world of one; with the mutex
};

}  // namespace braid::parallel::process
