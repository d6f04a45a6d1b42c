#include "cuda/runtime/gpu.hpp"

#include <algorithm>

#include <braid/core/error.hpp>

#include "cuda/runtime/errors.hpp"
#include "cuda/runtime/stream.hpp"

namespace braid::cuda {
namespace { constinit thread_local bool own = false; }  // namespace

void own_thread() noexcept { own = true; }

void Gpu::lose(int code) noexcept {
  int none = 0;
  lost_code_.compare_exchange_strong(none, code, std::memory_order_acq_rel);
}

std::string Gpu::recent_launches(Device device) const {
  const std::uint64_t end = launches_.load(std::memory_order_relaxed),
                      shown = std::min(end, kShown);
  if (shown == 0) return {};
  std::string text = shown == 1 ? str("the last launch on ", device, ":")
                                : str("one of the last ", shown, " launches on ", device, ":");
  for (std::uint64_t order = end - shown; order != end; ++order) {
    const Recent& recent = recent_[order % kRecent];
    const char* const name = recent.name.load(std::memory_order_relaxed);
    const std::uint64_t where = recent.where.load(std::memory_order_relaxed);
    text += str(order == end - shown ? " #" : ", #", order + 1, " ",
                name == nullptr ? "(being noted)" : name);
    if (const auto stream = where >> 32; stream == CudaStream::kUploads) text += " (uploads)";
    else if (stream != 0) text += str(" (stream ", stream, ")");
    if (const Device on(DeviceType::cuda, static_cast<int>(where & 0xffffffffu)); on != device)
      text += str(" on ", on);
  }
  return text;
}

DeviceGuard::DeviceGuard(Gpu& gpu, Device device) {
  require_working(gpu, device);
  int current = 0;
  check(cudaGetDevice(&current), "cudaGetDevice", gpu, device);
  if (current == gpu.ordinal()) return;
  check(cudaSetDevice(gpu.ordinal()), "cudaSetDevice", gpu, device);
  if (!own) before_ = current;
}

DeviceGuard::~DeviceGuard() {
  // cleared, so that no later call reports it
  if (before_ >= 0 && cudaSetDevice(before_) != cudaSuccess) (void)cudaGetLastError();
}

}  // namespace braid::cuda
