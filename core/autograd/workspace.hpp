#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>

// The lists that one backward works with, kept by a thread from one backward to the next.
namespace braid::detail {

/// A gradient that is being put together: parts in the order of the nodes that gave them.
struct Slot {
  Tensor first;
  std::uint32_t order = 0;
  // with several devices, or where a sum is taken beside this backward
  std::vector<std::pair<std::uint32_t, Tensor>> more;
};

struct Target {
  std::uint32_t slot = kNone;  // index into slots
  std::uint32_t task = kNone;  // node that waits for it
  static constexpr std::uint32_t kNone = ~0u;
};

struct Task {
  Node* node;
  std::uint32_t first_slot;
  std::uint32_t first_target;
};

struct Leaf {
  TensorImpl* impl;
  std::uint32_t slot;
  Tensor value;  // what commit_leaves is about to set
  bool in_place = false;
};

/// The lists of one backward. A thread keeps one set, so that small graphs cost no heap allocation.
struct Workspace {
  std::vector<Ref<Node>> found;  // in the order of running
  std::vector<Task> tasks;
  std::vector<Target> targets;  // of all edges, node after node
  std::vector<Slot> slots;      // of all outputs, node after node, then of the leaves
  std::vector<Leaf> leaves;
  std::vector<Device> devices;
  std::vector<Tensor> seeds;
  void clear() noexcept {
    // a graph of a million nodes is not paid for by every later one
    constexpr std::size_t kKept = 4096;
    const auto reset = [](auto& list) {
      if (list.capacity() > kKept) list = {};
      else list.clear();
    };
    reset(found), reset(tasks), reset(targets), reset(slots), reset(leaves), reset(devices),
        reset(seeds);
  }
};

/// The thread's set of lists, or a fresh one where a backward runs inside another.
class Borrowed {
 public:
  Borrowed() : mine_(!taken) {
    if (mine_) taken = true, workspace_ = &kept;
    else workspace_ = new Workspace;
  }
  ~Borrowed() {
    workspace_->clear();
    if (mine_) taken = false;
    else delete workspace_;
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  Workspace& operator*() const noexcept { return *workspace_; }

 private:
  static inline thread_local bool taken = false;
  static inline thread_local Workspace kept;
  bool mine_;
  Workspace* workspace_;
};

}  // namespace braid::detail
