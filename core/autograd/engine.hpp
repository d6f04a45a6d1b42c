#pragma once
#include <braid/core/autograd.hpp>

namespace braid::detail {

/// Returns the node whose backward runs on this thread, or null.
[[nodiscard]] Node* running_node() noexcept;
/// Makes `node` the running node of this thread for its scope.
class RunningNode {
 public:
  explicit RunningNode(Node* node) noexcept;
  ~RunningNode();
  RunningNode(const RunningNode&) = delete;
  RunningNode& operator=(const RunningNode&) = delete;

 private:
  Node* before_;
};

}  // namespace braid::detail
