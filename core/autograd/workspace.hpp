#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/internal/gradient_sink.hpp>

// The lists that a backward works with. A thread reuses them for its next backward.
namespace braid::detail {

/// A gradient that is being accumulated, as parts with the index of the node that produced each.
struct Slot {
  Tensor first;
  std::uint32_t order = 0;
  // used with several devices, and in graphs with early nodes (asynchronous sums over devices)
  std::vector<std::pair<std::uint32_t, Tensor>> more;
};

struct Target {
  std::uint32_t slot = kNone;  // index into slots
  std::uint32_t task = kNone;  // index of the node that waits for it
  static constexpr std::uint32_t kNone = ~0u;
};

struct Task {
  autograd::Node* node;
  std::uint32_t first_slot;
  std::uint32_t first_target;
  std::uint32_t contributions = 0;  // to the gradients of its outputs
  bool has_derivative = false;      // the gradient includes it (derivative.hpp)
};

/// What a grad() does with a node.
enum class Use : std::uint8_t {
  left_out,  // none of its inputs is behind the node
  captured,  // only returns its gradient
  runs
};

struct Leaf {
  TensorImpl* impl;
  std::uint32_t slot;
  Tensor value;  // the gradient that commit_leaves sets or adds
  bool in_place = false;
  GradientSink* sink = nullptr;  // gets the gradient, as its leaf `number`
  std::size_t number = 0;
};

/// The lists of one backward. A thread keeps one set, so that small graphs need no heap allocation.
struct Workspace {
  std::vector<Ref<autograd::Node>> found;  // in the order in which they run
  std::vector<Use> uses;                   // of each node, in a grad(); else empty
  std::vector<Task> tasks;
  std::vector<Target> targets;  // of all edges, grouped by node
  std::vector<Slot> slots;      // of all outputs, grouped by node, then of the leaves
  std::vector<Leaf> leaves;
  std::vector<Device> devices;
  std::vector<Tensor> seeds;
  void clear() noexcept {
    // a huge graph must not make every later clear() slow, nor keep its memory
    constexpr std::size_t kKept = 4096;
    const auto reset = [](auto& list) {
      if (list.capacity() > kKept) list = {};
      else list.clear();
    };
    reset(found), reset(uses), reset(tasks), reset(targets), reset(slots), reset(leaves),
        reset(devices), reset(seeds);
  }
};

/// Borrows the thread's set of lists, or creates a new one if a backward runs inside another.
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
