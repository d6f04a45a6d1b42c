#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace braid {

/// Reference count for objects held by Ref. Starts at 0; the first Ref makes it 1.
class RefCounted {
 public:
  RefCounted() noexcept = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// Returns true if this was the last reference: then the caller destroys the object.
  [[nodiscard]] bool release() const noexcept {
    return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  [[nodiscard]] std::uint32_t references() const noexcept {
    return refs_.load(std::memory_order_acquire);
  }

 protected:
  ~RefCounted() = default;

 private:
  mutable std::atomic<std::uint32_t> refs_{0};
};

/// Intrusive shared pointer: one word; a copy is one atomic increment. T derives from RefCounted
/// and declares `void destroy() const noexcept`.
template <class T> class Ref {
 public:
  constexpr Ref() noexcept = default;
  explicit Ref(T* p) noexcept : p_(p) {
    if (p_) p_->retain();
  }
  Ref(const Ref& o) noexcept : Ref(o.p_) {}
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_ && p_->release()) p_->destroy();
  }
  [[nodiscard]] T* get() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  T* operator->() const noexcept { return p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

/// Memory for small, short-lived host objects (TensorImpl, graph nodes) from thread-local free
/// lists, without a lock. Sizes over 1 KiB come from operator new.
[[nodiscard]] void* pool_allocate(std::size_t bytes);
void pool_release(void* p, std::size_t bytes) noexcept;

}  // namespace braid
