#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

#include <braid/core/device.hpp>
#include <braid/core/ref.hpp>

namespace braid {

class Stream;

/// Bytes on one device, owned, shared by all views of a tensor. Carries the version that in-place
/// changes bump.
class Storage final : public RefCounted {
 public:
  /// Uninitialised bytes from the device's allocator, for work on its current stream. Throws
  /// OutOfMemoryError.
  static Ref<Storage> allocate(std::size_t bytes, Device device);
  /// Memory of somebody else; `deleter` (may be empty) runs when the last tensor is gone. Never on
  /// a hot path.
  static Ref<Storage> wrap(void* data, std::size_t bytes, Device device,
                           std::function<void()> deleter);
  /// Part of a flat buffer, with a version counter of its own; keeps the whole buffer alive.
  static Ref<Storage> slice(const Ref<Storage>& whole, std::size_t offset, std::size_t bytes);

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_relaxed);
  }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }
  /// At least `version` from now on. For storages that nobody else can see yet.
  void raise_version(std::uint64_t version) noexcept {
    if (version_.load(std::memory_order_relaxed) < version)
      version_.store(version, std::memory_order_relaxed);
  }
  /// Somebody outside has a pointer that may be written through (`data<T>()`, memory of others):
  /// the version does not tell of every change from now on.
  void expose() noexcept { exposed_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool exposed() const noexcept { return exposed_.load(std::memory_order_relaxed); }
  /// Unique in this process: never reused, so that a cache can tell one storage from another at the
  /// same address.
  [[nodiscard]] std::uint64_t id() const noexcept;
  /// For critical sections over the numbers themselves (BatchNorm's statistics).
  [[nodiscard]] std::mutex& mutex() const noexcept { return mutex_; }

  /// See braid::record_stream.
  void record_stream(Stream& stream);

  void destroy() const noexcept;

 private:
  Storage() noexcept = default;
  void release_in_order() const noexcept;
  static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* p, std::size_t bytes) noexcept { pool_release(p, bytes); }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::uint64_t block_ = 0;  // the allocator's own word
  std::atomic<std::uint64_t> version_{0};
  mutable std::atomic<std::uint64_t> id_{0};  // given at the first question
  std::atomic<bool> exposed_{false};
  Device device_;
  enum class Kind : std::uint8_t { allocated, wrapped, slice } kind_ = Kind::allocated;
  mutable std::mutex mutex_;
  Ref<Storage> whole_;
  std::function<void()>* deleter_ = nullptr;
  // of memory that was not made on its device's own stream, or is used on others too
  struct Streams;
  Streams* streams_ = nullptr;
};

}  // namespace braid
