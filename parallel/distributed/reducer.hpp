#pragma once
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <braid/core/internal/gradient_sink.hpp>
#include <braid/parallel/distributed_hooks.hpp>
#include <braid/parallel/process_communicator.hpp>

#include "distributed/buckets.hpp"
#include "distributed/virtual_tree.hpp"

namespace braid::parallel::distributed {

struct ReducerOptions {
  std::size_t first_bucket_bytes = 0, bucket_bytes = 0;
  bool find_unused_parameters = false, static_graph = false, views = false, deterministic = false;
  DistributedHook hook = {};
};

/// Reduces the gradients of a model over the ranks, while backward runs: in buckets, each as soon
/// as its gradients are complete, and always in the order of the buckets. The last bucket waits for
/// the end of backward, because it carries the vote: a rank whose backward has failed makes all
/// ranks throw, and no gradient changes on any of them.
class Reducer final : public GradientSink {
 public:
  Reducer(std::shared_ptr<ProcessCommunicator> ranks, std::vector<Tensor> parameters,
          std::vector<std::string> names, ReducerOptions options);
  ~Reducer() override;
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  /// Makes it the sink of the parameters. A reducer that was it before is replaced.
  static void attach(const std::shared_ptr<Reducer>& reducer);
  /// True if another reducer has taken parameters of this one.
  [[nodiscard]] bool replaced() const noexcept { return replaced_; }

  [[nodiscard]] const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  [[nodiscard]] ProcessCommunicator& ranks() const noexcept { return *ranks_; }
  /// False if a parameter has been moved or converted.
  [[nodiscard]] bool fits() const;
  /// The parameters of each bucket, for tests and reports.
  [[nodiscard]] std::vector<std::vector<std::size_t>> buckets() const;

  // ---- before each forward
  /// True if the buckets must be ordered as the gradients arrived in the first backward.
  [[nodiscard]] bool rebuild_due() const noexcept { return rebuild_due_; }
  /// A collective: all ranks take the order of `root`.
  void rebuild(int root);
  /// The following backwards reduce, or add to the gradients of this rank only.
  void set_reduces(bool on);
  [[nodiscard]] bool reduces() const noexcept { return reduces_; }
  /// The number of ranks that the sum is divided by.
  void set_divisor(int ranks);
  /// No reduction starts before the end of backward: other collectives run meanwhile, and the graph
  /// may differ between ranks.
  void set_delayed(bool on);
  void set_share(const VirtualShare& share);

  /// Deterministic: takes the gradients of the virtual replicas on this rank, for some parameters:
  /// parts[replica * which.size() + k]. `share` is that of their forward. Returns false if no
  /// backward is being reduced. Throws AutogradError if another forward has been taken from.
  bool take_parts(const VirtualShare& share, std::span<const Tensor> which,
                  std::span<const Tensor> parts, std::span<const Device> devices);
  /// Takes part in the reductions of one backward of the other ranks, with zeros.
  void shadow();

  // ---- GradientSink
  bool begin(std::span<const std::size_t> leaves) override;
  [[nodiscard]] double seed_factor() const noexcept override;
  void receive(std::size_t leaf, Tensor gradient) override;
  void finish() override;
  void commit() noexcept override;
  void fail(const std::exception_ptr& error) noexcept override;
  void abandon() noexcept override;

 private:
  struct Place {
    std::size_t bucket = 0, at = 0;  // view `at` of the bucket
  };
  void build(const std::vector<BucketPlan>& plans);
  [[nodiscard]] const Tensor& view(std::size_t k) const {
    return buckets_[places_[k].bucket].views[places_[k].at];
  }
  void start_iteration();
  bool begin_inside(std::span<const std::size_t> leaves);
  /// begin(), which ends the iteration if it throws.
  bool begin_locked(std::span<const std::size_t> leaves);
  void fail_locked(const std::exception_ptr& error) noexcept;
  [[nodiscard]] std::string check_graph();
  /// Writes this rank's gradient of parameter k into its bucket.
  void contribute(std::size_t k, const Tensor& gradient);
  void set_ready(std::size_t k);
  void launch_complete();
  /// Starts the collective of a bucket. A failure on this rank alone ends the communicator.
  void launch(std::size_t bucket);
  void start(std::size_t bucket);
  void launch_tree(std::size_t bucket);
  /// Takes part in all collectives that are left and waits for all. Returns the complaints of the
  /// ranks, if there is one.
  std::vector<std::string> end_iteration(std::string complaint);
  /// Waits for the buckets and writes what hooks return into them. Throws the first failure.
  void wait_for_buckets();
  /// What this rank says to the others of an exception: `Error: no memory`.
  [[nodiscard]] static std::string text_of(const std::exception_ptr& error);
  [[noreturn]] void throw_complaints(const std::vector<std::string>& complaints) const;
  void end() noexcept;
  void learn();
  [[nodiscard]] bool counts_uses() const noexcept {
    return options_.find_unused_parameters || (options_.static_graph && !graph_known_);
  }
  [[nodiscard]] bool vote_rides() const noexcept {
    return !counts_uses() && !options_.hook && !options_.deterministic;
  }
  [[nodiscard]] std::string names_of(const std::vector<std::size_t>& which) const;

  const std::shared_ptr<ProcessCommunicator> ranks_;
  const std::vector<Tensor> parameters_;
  const std::vector<std::string> names_;
  const ReducerOptions options_;
  std::unordered_map<const TensorImpl*, std::size_t> numbers_;

  std::mutex mutex_;  // guards what follows, during a backward
  std::vector<Bucket> buckets_;
  std::vector<Place> places_;  // by parameter
  bool reduces_ = true, delayed_ = false;
  std::atomic<bool> replaced_{false};
  int divisor_;
  VirtualShare share_;

  // the graph
  bool rebuild_due_ = false, rebuilt_ = false, graph_known_ = false;
  std::vector<char> used_;             // here, since the last reduction
  std::vector<char> known_, reached_;  // static graph: the reached ones; those of this backward
  std::vector<char> late_;             // get gradients in backwards inside of this one
  std::vector<char> used_anywhere_;
  std::vector<std::size_t> arrivals_;

  // one backward
  bool active_ = false, shadows_ = false;
  std::vector<char> taken_;  // by parameter: take_parts has its gradient
  std::string complaint_;
  std::size_t next_ = 0;             // the bucket to launch
  std::vector<Tensor> received_;     // by parameter
  std::vector<Tensor> fresh_;        // the gradients of parameters that have none
  std::vector<HookResult> started_;  // by bucket
  std::vector<Tensor> trees_;        // by bucket: [block, numel]
};

}  // namespace braid::parallel::distributed
