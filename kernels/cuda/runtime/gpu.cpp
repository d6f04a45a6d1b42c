#include "cuda/runtime/gpu.hpp"

#include <algorithm>

#include "cuda/runtime/errors.hpp"

namespace braid::cuda {

void Gpu::lose(int code) noexcept {
  int none = 0;
  lost_code_.compare_exchange_strong(none, code, std::memory_order_acq_rel);
}

std::string Gpu::recent_launches() const {
  constexpr std::uint32_t kShown = 8;
  const std::uint32_t end = launches_.load(std::memory_order_relaxed);
  std::string text;
  for (std::uint32_t at = end - std::min(end, kShown); at != end; ++at) {
    const char* const name = recent_[at % kRecent].load(std::memory_order_relaxed);
    if (name == nullptr) continue;
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

DeviceGuard::DeviceGuard(Gpu& gpu, Device device) {
  require_working(gpu, device);
  int current = 0;
  check(cudaGetDevice(&current), "cudaGetDevice", gpu, device);
  if (current == gpu.ordinal()) return;
  check(cudaSetDevice(gpu.ordinal()), "cudaSetDevice", gpu, device);
  before_ = current;
}

DeviceGuard::~DeviceGuard() {
  if (before_ >= 0 && cudaSetDevice(before_) != cudaSuccess) (void)cudaGetLastError();  // nobody is to find it later
}

}  // namespace braid::cuda
