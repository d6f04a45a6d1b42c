#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/parallel/communicator.hpp>

namespace braid::parallel {

/// How the elements of the ranks are combined.
enum class ReduceOp : std::uint8_t { sum, mean, product, min, max };

/// A collective that has been started. It keeps the tensors alive until it is complete. A copy is
/// another handle of the same work. Destroying the last handle does not stop the work.
class Work {
 public:
  /// Complete from the start.
  Work() noexcept = default;
  /// True once the result is there, or the work has failed. Does not wait.
  [[nodiscard]] bool is_completed() const noexcept;
  /// Waits for the result.
  ///
  /// Throws    CommError, CommTimeoutError, CommAbortedError: the first error of the communicator
  void wait() const;
  struct State;
  explicit Work(std::shared_ptr<State> state) noexcept;

 private:
  std::shared_ptr<State> state_;
};

/// A communicator of processes: each process is one rank, with one device. Every function below is
/// a collective: all ranks call the same functions in the same order, with tensors of the same
/// shape and dtype (send and recv excepted). One thread of the communicator runs the calls in the
/// order in which they were started; the caller's thread goes on. The work begins after everything
/// that is queued on the current stream of the tensor's device.
///
/// All dtypes but bool are reduced; float16 and bfloat16 are added in float32 and rounded once.
/// The bits of a result are the same on every rank. Tensors are contiguous, and on this rank's
/// device or the CPU.
///
/// A call whose op, shape, dtype or number differs between ranks fails on all ranks with
/// CommError, before any tensor is changed. A call that is not complete after the deadline ends
/// the communicator: CommTimeoutError names the ranks that have not entered it. Every rank reports
/// the first reason. Later calls throw it too.
///
/// `name` is what errors and the flight record call the work ("bucket 3").
class ProcessCommunicator : public Communicator {
 public:
  [[nodiscard]] virtual int rank() const noexcept = 0;
  [[nodiscard]] Device device() const noexcept { return devices().front(); }
  /// "threads", "mpi", "gloo", "nccl" (collectives on GPUs; the rest is MPI's or Gloo's) or "none"
  [[nodiscard]] virtual std::string_view engine() const noexcept = 0;

  using Communicator::all_gather;
  using Communicator::all_reduce;
  using Communicator::all_to_all;
  using Communicator::broadcast;
  using Communicator::reduce;
  using Communicator::reduce_scatter;

  void broadcast(const Tensor& t, int root = 0) { start_broadcast(t, root).wait(); }
  void reduce(const Tensor& t, int root = 0, ReduceOp op = ReduceOp::sum) {
    start_reduce(t, root, op).wait();
  }
  void all_reduce(const Tensor& t, ReduceOp op = ReduceOp::sum) { start_all_reduce(t, op).wait(); }
  /// out: [size() * n, …] of in: [n, …].
  void all_gather(const Tensor& out, const Tensor& in) { start_all_gather(out, in).wait(); }
  /// out: [n, …] of in: [size() * n, …].
  void reduce_scatter(const Tensor& out, const Tensor& in, ReduceOp op = ReduceOp::sum) {
    start_reduce_scatter(out, in, op).wait();
  }
  /// out and in: [size() * n, …].
  void all_to_all(const Tensor& out, const Tensor& in) { start_all_to_all(out, in).wait(); }
  /// Point to point: only the two ranks call. Between the same two ranks, messages with one tag
  /// arrive in the order in which they were sent.
  void send(const Tensor& t, int to, int tag = 0) { start_send(t, to, tag).wait(); }
  void recv(const Tensor& t, int from, int tag = 0) { start_recv(t, from, tag).wait(); }
  void barrier() { start_barrier().wait(); }

  // The same, without waiting. The tensors must not be written (inputs) or used (results) before
  // the work is complete.
  [[nodiscard]] virtual Work start_broadcast(const Tensor& t, int root = 0,
                                             std::string_view name = {}) = 0;
  [[nodiscard]] virtual Work start_reduce(const Tensor& t, int root = 0,
                                          ReduceOp op = ReduceOp::sum,
                                          std::string_view name = {}) = 0;
  [[nodiscard]] virtual Work start_all_reduce(const Tensor& t, ReduceOp op = ReduceOp::sum,
                                              std::string_view name = {}) = 0;
  [[nodiscard]] virtual Work start_all_gather(const Tensor& out, const Tensor& in,
                                              std::string_view name = {}) = 0;
  [[nodiscard]] virtual Work start_reduce_scatter(const Tensor& out, const Tensor& in,
                                                  ReduceOp op = ReduceOp::sum,
                                                  std::string_view name = {}) = 0;
  /// `out_counts` and `in_counts` have the number of elements that come from and go to each rank;
  /// empty: equal parts.
  [[nodiscard]] virtual Work start_all_to_all(const Tensor& out, const Tensor& in,
                                              std::vector<std::int64_t> out_counts = {},
                                              std::vector<std::int64_t> in_counts = {},
                                              std::string_view name = {}) = 0;
  [[nodiscard]] virtual Work start_send(const Tensor& t, int to, int tag = 0,
                                        std::string_view name = {}) = 0;
  [[nodiscard]] virtual Work start_recv(const Tensor& t, int from, int tag = 0,
                                        std::string_view name = {}) = 0;
  [[nodiscard]] virtual Work start_barrier(std::string_view name = {}) = 0;

  /// Runs `f` on the communicator's thread, after all calls that were started before; its work is
  /// complete when f returns, and fails if f throws. For work on the result of a collective that
  /// need not wait for the caller's thread. A failure of the communicator does not end the wait for
  /// an f that has begun, which may use what its caller owns: f has to return in any case.
  [[nodiscard]] virtual Work start_function(std::function<void()> f) = 0;

  /// A communicator of the ranks that pass the same color, ordered by key, then by rank. A rank
  /// that passes a negative color gets null. All ranks call it.
  [[nodiscard]] virtual std::shared_ptr<ProcessCommunicator> split(int color, int key = 0) = 0;

  /// Ends the communicator on all ranks, for this reason. Any thread may call it.
  virtual void abort_with(std::string_view reason) noexcept = 0;

 protected:
  using Communicator::Communicator;
};

}  // namespace braid::parallel
