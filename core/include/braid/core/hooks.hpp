#pragma once
#include <memory>

namespace braid {

namespace detail { struct Hook; }

/// A handle of a registered hook, with which the hook can be removed. Destroying the handle does
/// not remove the hook.
class HookHandle {
 public:
  HookHandle() noexcept = default;
  explicit HookHandle(std::weak_ptr<detail::Hook> hook) noexcept : hook_(std::move(hook)) {}
  /// Removes the hook. A backward that is already running the tensor's hooks may still call it.
  /// Does nothing if the hook or its tensor no longer exists. Thread-safe; a hook may remove
  /// itself.
  void remove() const;

 private:
  std::weak_ptr<detail::Hook> hook_;
};

}  // namespace braid
