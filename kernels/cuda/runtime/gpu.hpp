#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/device.hpp>

#include "cuda/runtime/device_guard.hpp"
#include "simt/cuda_runtime.hpp"

namespace braid::cuda {

class StreamAllocator;

/// The path of copies between two GPUs: see peer.hpp.
enum class PeerPath : std::uint8_t { unknown, direct, staged };

/// One physical GPU: the state that its logical devices share. A context that a sticky error broke
/// is broken for all of them.
class Gpu {
 public:
  explicit Gpu(int ordinal) noexcept : ordinal_(ordinal) {}
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] bool lost() const noexcept {
    return lost_code_.load(std::memory_order_acquire) != 0;
  }
  /// The code that broke it; 0 while it works.
  [[nodiscard]] int lost_code() const noexcept {
    return lost_code_.load(std::memory_order_acquire);
  }
  /// Only the first code is kept: later ones are follow-up errors.
  void lose(int code) noexcept;

  /// The number of its SMs, once the driver was queried; 0 before.
  [[nodiscard]] int processors() const noexcept {
    return processors_.load(std::memory_order_relaxed);
  }
  void set_processors(int count) noexcept { processors_.store(count, std::memory_order_relaxed); }

  /// Records a launch or a copy, so that an error that appears later can name the candidates.
  /// `name` must live forever; `stream` is CudaStream::number.
  void note(const char* name, Device device, std::uint32_t stream) noexcept {
    const std::uint64_t order = launches_.fetch_add(1, std::memory_order_relaxed);
    Recent& recent = recent_[order % kRecent];
    recent.name.store(name, std::memory_order_relaxed);
    recent.where.store(std::uint64_t{stream} << 32 | static_cast<std::uint32_t>(device.index()),
                       std::memory_order_relaxed);
  }
  /// `one of the last 3 launches on cuda:0: #7 linear, #8 relu (stream 1), #9 sum on cuda:1`:
  /// oldest first, including those of the GPU's other logical devices; empty if there were none.
  [[nodiscard]] std::string recent_launches(Device device) const;

  /// The known path of copies with another GPU.
  [[nodiscard]] std::atomic<PeerPath>& peer_path(const Gpu& other) noexcept {
    return peer_paths_[static_cast<std::size_t>(other.ordinal()) % kMostGpus];
  }
  /// The allocators of its logical devices; all are added before the first use.
  void add(StreamAllocator& allocator) { allocators_.push_back(&allocator); }
  [[nodiscard]] const std::vector<StreamAllocator*>& allocators() const noexcept {
    return allocators_;
  }

  /// Device memory for the test of a pair; null before the first test. Guarded by that test's lock.
  [[nodiscard]] void* probe() const noexcept { return probe_; }
  void set_probe(void* memory) noexcept { probe_ = memory; }

 private:
  static constexpr std::size_t kMostGpus = 64;  // the most devices of a type
  static constexpr std::uint64_t kRecent = 256, kShown = 16;
  struct Recent {
    std::atomic<const char*> name{nullptr};
    std::atomic<std::uint64_t> where{0};  // stream and device
  };
  const int ordinal_;
  std::atomic<int> lost_code_{0};
  std::atomic<int> processors_{0};
  std::atomic<std::uint64_t> launches_{0};
  std::array<Recent, kRecent> recent_;
  std::atomic<PeerPath> peer_paths_[kMostGpus] = {};
  void* probe_ = nullptr;
  std::vector<StreamAllocator*> allocators_;
};

}  // namespace braid::cuda
