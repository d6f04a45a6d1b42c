#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <braid/core/storage.hpp>
#include <braid/core/tensor.hpp>
#include <braid/parallel/replicate.hpp>

// Keeps copies of a model's tensors on the other devices from one forward to the next.
namespace braid { class Stream; }
namespace braid::parallel {

/// The copies of tensors on devices 1, 2, …, and the state of each source when it was copied. A
/// copy is good while three things hold: its source still has the same storage, version, shape and
/// dtype; nobody has written the copy; the devices and their current streams are still the same. A
/// source whose memory may be written without a version change (`data<T>()` was called, or Braid
/// does not own the memory) never has a good copy.
///
/// A stale copy with no other owner is overwritten in place. One that a graph still needs stays
/// unchanged and is replaced. One broadcast uses the cache at a time; a second one at the same time
/// runs without it (try_lock).
class ReplicaCache {
 public:
  std::mutex mutex;

  /// Sets the bytes of the last call. last() may be called at the same time.
  void note(const ReplicateBytes& bytes) {
    const std::lock_guard lock(last_mutex_);
    last_ = bytes;
  }
  [[nodiscard]] ReplicateBytes last() const {
    const std::lock_guard lock(last_mutex_);
    return last_;
  }

  /// Drops copies that were made for other devices, other streams, or another number of tensors. If
  /// the list of devices is shorter, copies on the remaining devices are kept.
  void prepare(std::span<const Device> devices, std::size_t tensors);
  /// True if the copy on that rank matches the tensor's present state.
  [[nodiscard]] bool good(std::size_t tensor, std::size_t rank, const Tensor& source) const;
  [[nodiscard]] Ref<Storage> memory(std::size_t tensor, std::size_t rank) const;
  /// Returns the copy's memory if it has no other owner and exactly this size, else null.
  [[nodiscard]] Ref<Storage> reusable(std::size_t tensor, std::size_t rank,
                                      std::size_t bytes) const;
  /// Marks the copy as not good, because it is about to be written. keep() makes it good again.
  void forget(std::size_t tensor, std::size_t rank);
  /// Stores the copy as matching the tensor's present state.
  void keep(std::size_t tensor, std::size_t rank, const Tensor& source, const Ref<Storage>& copy);

 private:
  mutable std::mutex last_mutex_;
  ReplicateBytes last_;
  struct Copy {
    Ref<Storage> storage;  // null: none yet
    std::uint64_t version = 0;
    std::uint64_t source = 0, source_version = 0;  // the source's storage
    std::int64_t offset = 0;
    Shape shape, strides;
    DType dtype = DType::float32;
  };
  struct Rank {
    Device device;
    const Stream* stream = nullptr;
    std::vector<Copy> copies;  // [tensor of the model]
  };
  std::vector<Rank> ranks_;  // rank 0 has no copies
};

}  // namespace braid::parallel
