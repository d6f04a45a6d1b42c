#pragma once
// Runs one backward, from its roots to the gradients of the leaves. engine.cpp has an overview.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/internal/gradient_sink.hpp>

#include "joins.hpp"
#include "workspace.hpp"

namespace braid::detail {

/// True if no other tensor shares the memory.
[[nodiscard]] inline bool sole_owner(const Tensor& t) {
  return t.id()->references() == 1 && t.storage()->references() == 1 && t.is_contiguous();
}

}  // namespace braid::detail

namespace braid::autograd {

/// The state of one call of backward() or grad(). One thread creates, runs and commits it. Several
/// may run at the same time if they share no node; they may add to the same leaves (on CUDA from
/// one stream, or from streams that the program orders).
class Engine {
 public:
  Engine(bool retain, bool create);
  std::vector<Tensor>& seeds() noexcept { return seeds_; }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {
    for (const Ref<Node>& n : found_) release(*n);
  }

  /// Runs all nodes that the roots depend on. `captures`: the tensors whose gradients grad()
  /// returns; empty in backward(). With captures, only the nodes between the roots and them run.
  void run(std::span<const Tensor> roots, std::span<const Tensor> captures);

  /// Adds a callback of at_end_of_backward().
  void add_join(std::function<void()> join) { joins_.add(std::move(join)); }
  /// Returns the engine that runs the node.
  [[nodiscard]] static Engine& of(const Node& node) noexcept;

  // See derivative.hpp. `node` is the one whose backward runs.
  [[nodiscard]] bool derivative_of_input(const Node& node, std::uint32_t i, Derivative& to) const;
  void derivative_was_applied(const Node& node, std::uint32_t i) noexcept;
  [[nodiscard]] bool has_derivative(const Node& node) const noexcept;

  /// Returns the gradient of capture i, undefined if the roots do not depend on it.
  [[nodiscard]] Tensor captured(std::size_t i);

  /// Adds the gradients to the leaves. Checks all of them first, so that a failed check changes no
  /// leaf. Then calls the hooks for accumulated gradients.
  void commit_leaves();

 private:
  // The list of nodes: collected from the roots, sorted by depth, with slots for their gradients.
  /// Makes the node this engine's; false if it is already. Throws AutogradError if it is another's.
  bool claim(Node& node);
  [[nodiscard]] bool owns(Node& node) const noexcept;
  void release(Node& node) const noexcept;
  /// Collects the nodes behind the root, down to this depth.
  void find(const Ref<Node>& root, std::uint64_t least_depth);
  void order();
  void mark();
  /// Leaves out the nodes that no capture is behind, and the edges to them and to other leaves.
  void prune(std::span<const Tensor> captures);
  [[nodiscard]] bool runs(std::size_t index) const noexcept {
    return uses_.empty() || uses_[index] == detail::Use::runs;
  }
  /// Moves each early node directly behind the last node that contributes to its gradient. Every
  /// gradient is still complete before it is used.
  void move_prioritized_first();
  void prepare();
  std::uint32_t leaf_slot(TensorImpl* impl);
  void place_captures(std::span<const Tensor> captures);
  void seed(const Tensor& root, Tensor gradient);

  // Gradients: contribute() adds to a slot, take() returns the sum.
  void contribute(std::uint32_t index, std::uint32_t order, Tensor gradient, bool concurrent);
  Tensor take(std::uint32_t index);

  // Running nodes.
  void run_nodes(std::span<const Tensor> captures);
  void execute(std::uint32_t index);
  void run_node(std::uint32_t index);
  static void check_result(Node& node, std::size_t i, const Tensor& gradient);
  void run_on_all();
  void wait_for(std::uint32_t index) const noexcept;
  void done(std::uint32_t index) noexcept;
  /// Rethrows the current exception. If the node has an origin, Origin::rethrow may wrap it.
  [[noreturn]] static void rethrow_with_origin(const Node& node);

  // Leaves with a GradientSink; see engine_leaves.cpp.
  void open_sinks();
  void feed_sinks();
  void contributed(std::uint32_t index);
  void pass_to_sink(detail::Leaf& leaf);
  void finish_sinks();
  void fail_sinks() noexcept;
  static void check_gradient(const TensorImpl& leaf, const Tensor& gradient);
  void take_values();
  void prepare_values();

  // Hooks of leaves.
  /// Calls the hooks of the leaves with their gradients. With captures (in grad()), only the hooks
  /// of the captured leaves.
  void hook_leaves(std::span<const Tensor> captures);
  /// Calls f(leaf) for each wanted leaf that has hooks, on the thread of the leaf's device, and in
  /// the order of the leaves within a device. Throws the error of the first leaf that failed.
  template <class Wanted, class F> void on_devices_of_leaves(const Wanted& wanted, const F& f);

  struct Watched {
    std::uint32_t task, slot;
    std::size_t capture;
  };

  bool retain_, create_, any_prioritized_ = false;
  detail::Borrowed workspace_;
  std::vector<Ref<Node>>& found_ = (*workspace_).found;
  std::vector<detail::Use>& uses_ = (*workspace_).uses;
  std::vector<detail::Task>& tasks_ = (*workspace_).tasks;
  std::vector<detail::Target>& targets_ = (*workspace_).targets;
  std::vector<detail::Slot>& slots_ = (*workspace_).slots;
  std::vector<detail::Leaf>& leaves_ = (*workspace_).leaves;
  std::vector<Device>& devices_ = (*workspace_).devices;
  std::vector<Tensor>& seeds_ = (*workspace_).seeds;
  std::unordered_map<TensorImpl*, std::uint32_t> leaf_index_;
  // number of consumers of each node that are not done; only with several devices
  std::unique_ptr<std::atomic<std::uint32_t>[]> missing_;
  std::mutex slot_mutexes_[16];
  std::vector<std::uint32_t> captures_;
  std::vector<Tensor> captured_now_;
  std::vector<Watched> watched_;
  detail::Joins joins_;
  std::vector<std::shared_ptr<GradientSink>> sinks_;  // that take part in this backward
  std::size_t finished_ = 0;                          // the first ones have finished
  const GradientSink* failed_ = nullptr;              // the next one has thrown
  double seed_factor_ = 1;
  // by leaf, only with sinks: the edges to it whose nodes have not run
  std::unique_ptr<std::atomic<std::uint32_t>[]> edges_to_come_;
  std::uint32_t first_leaf_slot_ = 0;
};

}  // namespace braid::autograd
