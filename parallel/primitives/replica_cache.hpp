#pragma once
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include <braid/core/storage.hpp>
#include <braid/core/tensor.hpp>
#include <braid/parallel/replicate.hpp>

// The copies of a model's tensors on the other devices, kept from one forward to the next.
namespace braid { class Stream; }
namespace braid::parallel {

/// The copies of tensors on devices 1, 2, …, and of what they are copies. A copy is good while its
/// source is the same storage with the same version, shape and type, while nobody has written the
/// copy, and while the devices and their current streams are those it was made with. Sources whose
/// memory somebody may write without a trace (`data<T>()` was asked for, memory of others) are
/// never good.
///
/// A stale copy that nobody else holds is written again in place; one that a graph still needs
/// stays as it is and is replaced. Used by one broadcast at a time: a second one at the same time
/// does without (try_lock).
class ReplicaCache {
 public:
  std::mutex mutex;

  /// What the last call has sent and found; also while a call goes on.
  void note(const ReplicateBytes& bytes) {
    const std::lock_guard lock(last_mutex_);
    last_ = bytes;
  }
  [[nodiscard]] ReplicateBytes last() const {
    const std::lock_guard lock(last_mutex_);
    return last_;
  }

  /// Drops what was made for other devices, other streams of theirs, or another number of tensors.
  /// A shorter list of devices keeps the rest for later.
  void prepare(std::span<const Device> devices, std::size_t tensors);
  /// Is the copy on that rank that of the tensor as it is now?
  [[nodiscard]] bool good(std::size_t tensor, std::size_t rank, const Tensor& source) const;
  [[nodiscard]] Ref<Storage> memory(std::size_t tensor, std::size_t rank) const;
  /// The copy's memory, where nobody else holds it and it is large enough, else null.
  [[nodiscard]] Ref<Storage> reusable(std::size_t tensor, std::size_t rank,
                                      std::size_t bytes) const;
  /// The copy is about to be written: it is good again after keep.
  void forget(std::size_t tensor, std::size_t rank);
  /// From now on the copy is that of the tensor as it is now.
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
    std::vector<Copy> copies;  // of tensor k of the model
  };
  std::vector<Rank> ranks_;  // 0 has no copies
};

}  // namespace braid::parallel
