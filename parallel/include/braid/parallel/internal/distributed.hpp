#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <braid/parallel/distributed_hooks.hpp>
#include <braid/parallel/internal/call.hpp>
#include <braid/parallel/process_communicator.hpp>

namespace braid::parallel {

struct DistributedOptions;
struct JoinOptions;

namespace detail {

/// What a DistributedDataParallel keeps: the ranks, the reducer of the gradients, and which
/// collectives a forward makes.
class Distributed {
 public:
  /// A collective: compares the models of all ranks, and sends the parameters and buffers of rank 0
  /// to the others.
  Distributed(const tree::Flat& module, std::shared_ptr<ProcessCommunicator> ranks,
              const DistributedOptions& options);
  Distributed(Distributed&&) noexcept;
  Distributed& operator=(Distributed&&) noexcept;
  ~Distributed();

  [[nodiscard]] ProcessCommunicator& ranks() const noexcept;
  /// The parameters of each bucket, by number.
  [[nodiscard]] std::vector<std::vector<std::size_t>> buckets() const;

  struct State;

  /// The collectives before a forward, and what its layers see of the ranks.
  class Forward {
   public:
    Forward(const Distributed& of, const tree::Flat& module, const tree::Flat& batch,
            bool training);
    ~Forward();
    Forward(const Forward&) = delete;
    Forward& operator=(const Forward&) = delete;
    /// The share of this rank in the deterministic mode; else null.
    [[nodiscard]] const RankShare* share() const noexcept;

   private:
    struct Inside;
    std::unique_ptr<Inside> inside_;
  };

  /// See DistributedDataParallel.
  void begin_no_sync() const;
  void end_no_sync() const noexcept;
  void begin_join(const JoinOptions& options) const;
  void finish_join(const tree::Flat& module) const;
  void leave_join() const noexcept;

 private:
  std::unique_ptr<State> state_;
};

/// The options of the DataParallel inside of a rank. Throws ArgumentError for a null communicator.
[[nodiscard]] parallel::detail::State make_state(const ProcessCommunicator* ranks,
                                                 const DistributedOptions& options);

}  // namespace detail
}  // namespace braid::parallel
