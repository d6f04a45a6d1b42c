#pragma once
// One backward, from its roots to the gradients of the leaves: see engine.cpp.
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include <braid/core/autograd.hpp>

#include "joins.hpp"
#include "workspace.hpp"

namespace braid {

/// What a call of backward or grad keeps while it runs. Made, run and committed on one thread.
class Engine {
 public:
  Engine(bool retain, bool create);
  std::vector<Tensor>& seeds() noexcept { return seeds_; }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() {
    release_leaves();
    for (const Ref<Node>& n : found_) n->task_ = nullptr;
  }

  /// Runs everything below the roots. captures: (tensor → its gradient), see grad().
  void run(std::span<const Tensor> roots, std::span<const Tensor> captures);

  /// See at_end_of_backward.
  void add_join(std::function<void()> join) { joins_.add(std::move(join)); }
  /// The engine that runs the node.
  [[nodiscard]] static Engine& of(const Node& node) noexcept;

  /// Gradient of capture i, undefined if the roots do not depend on it.
  [[nodiscard]] Tensor captured(std::size_t i);

  /// Adds the leaves' gradients. What can fail comes first: then all are added or none.
  /// Hooks for accumulated gradients come last.
  void commit_leaves();

 private:
  // The list of nodes: found from the roots, ordered by depth, with slots for their gradients.
  void find(const Ref<Node>& root);
  void order();
  void mark();
  /// Moves the early nodes right behind the last one that gives them a gradient. The order is still
  /// one in which every gradient is complete before it is used.
  void move_early_first();
  void prepare();
  std::uint32_t leaf_slot(TensorImpl* impl);
  void place_captures(std::span<const Tensor> captures);
  void seed(const Tensor& root, Tensor gradient);

  // Gradients: added to a slot, and taken from it as their sum.
  void contribute(std::uint32_t index, std::uint32_t order, Tensor gradient, bool concurrent);
  Tensor take(std::uint32_t index);

  // In debug builds no two backward of different threads add to a leaf at the same time. One that
  // runs inside another, in a hook or a node, may add to the other's leaves.
  void claim_leaves();
  void release_leaves() noexcept;
  class Inside;

  // Running nodes.
  void execute(std::uint32_t index);
  void run_node(std::uint32_t index);
  void run_on_all();
  void wait_for(std::uint32_t index) const noexcept;
  void done(std::uint32_t index) noexcept;
  /// What goes wrong in an op that a replica has recorded is that replica's error, as it is in its
  /// forward; inside of a replica its own call says so.
  [[noreturn]] static void rethrow_named(const Node& node);

  // Hooks of leaves.
  /// Shows the leaves' gradients to their hooks; in grad(), which asks for captures, only theirs.
  void hook_leaves(std::span<const Tensor> captures);
  /// f(leaf) for those that have hooks, each on the thread of its device, in their order. Of
  /// several errors the first leaf's is thrown.
  template <class Wanted, class F> void on_devices_of_leaves(const Wanted& wanted, const F& f);

  struct Watched {
    std::uint32_t task, slot;
    std::size_t capture;
  };

  bool retain_, create_, any_early_ = false;
  detail::Borrowed workspace_;
  std::vector<Ref<Node>>& found_ = (*workspace_).found;
  std::vector<detail::Task>& tasks_ = (*workspace_).tasks;
  std::vector<detail::Target>& targets_ = (*workspace_).targets;
  std::vector<detail::Slot>& slots_ = (*workspace_).slots;
  std::vector<detail::Leaf>& leaves_ = (*workspace_).leaves;
  std::vector<Device>& devices_ = (*workspace_).devices;
  std::vector<Tensor>& seeds_ = (*workspace_).seeds;
  std::unordered_map<TensorImpl*, std::uint32_t> leaf_index_;
  // consumers that are not done; only with several devices
  std::unique_ptr<std::atomic<std::uint32_t>[]> missing_;
  std::mutex slot_mutexes_[16];
  std::vector<std::uint32_t> captures_;
  std::vector<Tensor> captured_now_;
  std::vector<Watched> watched_;
  detail::Joins joins_;
#ifndef NDEBUG
  struct Claim {
    TensorImpl* leaf;
    const Engine* before;  // whom it belonged to; null: nobody
  };
  std::vector<Claim> claims_;
  const Engine* const outer_;  // which this one runs inside of
#endif
};

}  // namespace braid
