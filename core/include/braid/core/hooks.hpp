#pragma once
#include <memory>

namespace braid {

namespace detail { struct Hook; }

/// What registering a hook gives back: a way to remove it. Letting go of the handle does not.
class HookHandle {
 public:
  HookHandle() noexcept = default;
  explicit HookHandle(std::weak_ptr<detail::Hook> hook) noexcept : hook_(std::move(hook)) {}
  /// The hook is called no more, but by a backward that is about to; nothing if it is gone already,
  /// or its tensor. From any thread, from the hook itself too.
  void remove() const;

 private:
  std::weak_ptr<detail::Hook> hook_;
};

}  // namespace braid
