#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <braid/core/device.hpp>

#include "simt/cuda_runtime.hpp"

namespace braid::cuda {

/// How copies between two GPUs go: see peer.hpp.
enum class PeerPath : std::uint8_t { unknown, direct, staged };

/// One physical GPU: what its logical devices share. A context that a sticky error broke is broken for all of them.
class Gpu {
 public:
  explicit Gpu(int ordinal) noexcept : ordinal_(ordinal) {}
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] bool lost() const noexcept { return lost_code_.load(std::memory_order_acquire) != 0; }
  /// The code that broke it; 0 while it works.
  [[nodiscard]] int lost_code() const noexcept { return lost_code_.load(std::memory_order_acquire); }
  /// The first code counts: what comes later is its echo.
  void lose(int code) noexcept;

  /// Its SMs, once somebody has asked the driver; 0 before.
  [[nodiscard]] int processors() const noexcept { return processors_.load(std::memory_order_relaxed); }
  void set_processors(int count) noexcept { processors_.store(count, std::memory_order_relaxed); }

  /// Remembers what is launched, so that an error that shows later can name the candidates. `name` lives for ever.
  void note(const char* name) noexcept {
    const std::uint32_t at = launches_.fetch_add(1, std::memory_order_relaxed);
    recent_[at % kRecent].store(name, std::memory_order_relaxed);
  }
  /// `linear, relu, sum`: the last launches, oldest first; empty if there were none.
  [[nodiscard]] std::string recent_launches() const;

  /// What is known of copies with another GPU.
  [[nodiscard]] std::atomic<PeerPath>& peer_path(const Gpu& other) noexcept { return peer_paths_[static_cast<std::size_t>(other.ordinal()) % kMostGpus]; }
  /// Device memory for the test of a pair; null before the first. Under that test's lock.
  [[nodiscard]] void* probe() const noexcept { return probe_; }
  void set_probe(void* memory) noexcept { probe_ = memory; }

 private:
  static constexpr std::size_t kMostGpus = 64;  // as many as there can be devices of a type
  static constexpr std::uint32_t kRecent = 16;
  const int ordinal_;
  std::atomic<int> lost_code_{0};
  std::atomic<int> processors_{0};
  std::atomic<std::uint32_t> launches_{0};
  std::atomic<const char*> recent_[kRecent] = {};
  std::atomic<PeerPath> peer_paths_[kMostGpus] = {};
  void* probe_ = nullptr;
};

/// Makes a GPU the calling thread's current one for a scope. Throws CudaError or DeviceLostError; its end never throws.
class DeviceGuard {
 public:
  DeviceGuard(Gpu& gpu, Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = -1;  // to be restored; -1: it was this one
};

}  // namespace braid::cuda
