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

/// Memory on one device, shared by all views of a tensor. Holds the version counter that in-place
/// operations increase.
class Storage final : public RefCounted {
 public:
  /// Allocates uninitialised memory from the device's allocator, for use on the device's current
  /// stream. Throws OutOfMemoryError.
  static Ref<Storage> allocate(std::size_t bytes, Device device);
  /// Wraps memory that Braid does not own. `deleter` (may be empty) is called when the last tensor
  /// on it is destroyed. Not meant for hot paths.
  static Ref<Storage> wrap(void* data, std::size_t bytes, Device device,
                           std::function<void()> deleter);
  /// A part of a larger storage, with a separate version counter. Keeps the whole storage alive.
  /// Throws InternalError unless the part lies inside.
  static Ref<Storage> slice(const Ref<Storage>& whole, std::size_t offset, std::size_t bytes);

  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_relaxed);
  }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }
  /// Raises the version to at least `version`. Only for storages that no other thread can see yet.
  void raise_version(std::uint64_t version) noexcept {
    if (version_.load(std::memory_order_relaxed) < version)
      version_.store(version, std::memory_order_relaxed);
  }
  /// Marks the storage as writable from outside: through a pointer from `data<T>()`, or because it
  /// wraps memory that Braid does not own. From then on not every change increases the version.
  void expose() noexcept { exposed_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool exposed() const noexcept { return exposed_.load(std::memory_order_relaxed); }
  /// Unique in this process and never reused, so that a cache can distinguish two storages at the
  /// same address.
  [[nodiscard]] std::uint64_t id() const noexcept;
  /// Protects updates of the values themselves (BatchNorm's running statistics).
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
  std::uint64_t block_ = 0;  // Block::tag, for the allocator
  std::atomic<std::uint64_t> version_{0};
  mutable std::atomic<std::uint64_t> id_{0};  // assigned by the first call of id()
  std::atomic<bool> exposed_{false};
  Device device_;
  enum class Kind : std::uint8_t { allocated, wrapped, slice } kind_ = Kind::allocated;
  mutable std::mutex mutex_;
  Ref<Storage> whole_;
  std::function<void()>* deleter_ = nullptr;
  // set if the memory was not allocated on its device's default stream, or is used on others too
  struct Streams;
  Streams* streams_ = nullptr;
};

}  // namespace braid
