#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <braid/core/device.hpp>
#include <braid/core/ref.hpp>

namespace braid {

class Stream;
class Storage;

namespace detail {
/// The number of threads that record a step (internal/step_capture.hpp).
inline std::atomic<int> recording_threads{0};
/// Tells the step that the calling thread records, if it records one, what happens to a storage.
void note_read(const Storage& storage) noexcept;
void note_written(Storage& storage);
void note_made(const Storage& storage);
void note_destroyed(const Storage& storage) noexcept;
}  // namespace detail

/// Memory on one device, which a tensor and all its views share. It has a version counter, which
/// in-place operations increase.
class Storage final : public RefCounted {
 public:
  /// Allocates uninitialised memory from the device's allocator, for use on the device's current
  /// stream. Throws OutOfMemoryError.
  static Ref<Storage> allocate(std::size_t bytes, Device device);
  /// Allocates uninitialised page-locked memory of the host, for a CPU device. Throws DeviceError
  /// if there is no CUDA device, OutOfMemoryError.
  static Ref<Storage> allocate_pinned(std::size_t bytes, Device device);
  /// Wraps memory that Braid does not own. Calls `deleter`, which may be empty, when the last
  /// tensor on this memory is destroyed. This is too slow for hot paths.
  static Ref<Storage> wrap(void* data, std::size_t bytes, Device device,
                           std::function<void()> deleter);
  /// Returns a part of a larger storage, with a separate version counter. It keeps the whole
  /// storage alive. Throws InternalError unless the part is inside the whole.
  static Ref<Storage> slice(const Ref<Storage>& whole, std::size_t offset, std::size_t bytes);

  /// The address of the first byte, on device().
  [[nodiscard]] void* data() const noexcept {
    if (detail::recording_threads.load(std::memory_order_relaxed) != 0) [[unlikely]]
      detail::note_read(*this);
    return data_;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Device device() const noexcept { return device_; }
  /// True for memory of allocate_pinned, and parts of it.
  [[nodiscard]] bool is_pinned() const noexcept {
    return kind_ == Kind::pinned || (kind_ == Kind::slice && whole_->is_pinned());
  }
  /// A counter that in-place changes increase. Autograd saves it with a tensor, and compares it
  /// later.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_relaxed);
  }
  /// Increases the version. Call it after a write through data(), which does not increase it.
  void bump_version() noexcept {
    version_.fetch_add(1, std::memory_order_relaxed);
    if (detail::recording_threads.load(std::memory_order_relaxed) != 0) [[unlikely]]
      detail::note_written(*this);
  }
  /// Takes back increases of the version whose writes did not take place: a step that was not
  /// recorded.
  void take_back_versions(std::uint64_t count) noexcept {
    version_.fetch_sub(count, std::memory_order_relaxed);
  }
  /// Raises the version to at least `version`. Only for storages that no other thread can see yet.
  void raise_version(std::uint64_t version) noexcept {
    if (version_.load(std::memory_order_relaxed) < version)
      version_.store(version, std::memory_order_relaxed);
  }
  /// Marks the storage as writable from outside: through a pointer from `data<T>()`, or because it
  /// wraps memory that Braid does not own. From then on not every change increases the version.
  void expose() noexcept { exposed_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool exposed() const noexcept { return exposed_.load(std::memory_order_relaxed); }
  /// A number that is unique in this process and never reused. A cache distinguishes two storages
  /// at the same address by it.
  [[nodiscard]] std::uint64_t id() const noexcept;

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
  enum class Kind : std::uint8_t { allocated, pinned, wrapped, slice } kind_ = Kind::allocated;
  Ref<Storage> whole_;
  std::function<void()>* deleter_ = nullptr;
  // set if the memory was not allocated on its device's default stream, or is used on others too
  struct Streams;
  Streams* streams_ = nullptr;
};

}  // namespace braid
