#include "cpu/runtime/cpu_backend.hpp"

#include <algorithm>
#include <cstring>

#include <braid/core/error.hpp>

#include "cpu/runtime/isa.hpp"
#include "cpu/runtime/parallel.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace braid::cpu {

namespace {

constexpr std::size_t kCopyTile = std::size_t{1} << 20;

std::string processor_name() {
#if defined(__x86_64__)
  unsigned words[12] = {};
  bool known = true;
  for (unsigned i = 0; i < 3; ++i)
    known = known && __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
                                 &words[4 * i + 2], &words[4 * i + 3]) != 0;
  if (known) {
    char text[sizeof words + 1] = {};
    std::memcpy(text, words, sizeof words);
    std::string name(text);
    while (!name.empty() && name.back() == ' ') name.pop_back();
    return name.substr(std::min(name.find_first_not_of(' '), name.size()));
  }
#endif
  return "CPU";
}

}  // namespace

CpuDevice::CpuDevice(int index, const Pinning& pinning)
    : device_(DeviceType::cpu, index),
      kernels_(*current_isa().kernels),
      allocator_(device_, host_memory_source()),
      pool_(index, pinning),
      stream_(device_, pool_) {}

std::string CpuDevice::description() const {
  return str(processor_name(), ", ", current_isa().name, " kernels");
}

Block CpuDevice::allocate(std::size_t bytes, Stream&) { return allocator_.allocate(bytes); }

void CpuDevice::release(const Block& block, Stream&) noexcept { allocator_.release(block); }

std::unique_ptr<Stream> CpuDevice::make_stream() {
  return std::make_unique<CpuStream>(device_, pool_);
}

std::unique_ptr<Event> CpuDevice::make_event() { return std::make_unique<CpuEvent>(); }

void CpuDevice::copy(const CopyDesc& copy, Stream& stream) {
  if (copy.to_device.type() != DeviceType::cpu || copy.from_device.type() != DeviceType::cpu)
    throw DeviceError(
        str("copy: expected two CPU devices, got ", copy.from_device, " to ", copy.to_device));
  if (copy.bytes == 0 || copy.to == copy.from) return;
  auto* const to = static_cast<char*>(copy.to);
  const auto* const from = static_cast<const char*>(copy.from);
  const bool overlap = to < from + copy.bytes && from < to + copy.bytes;
  if (overlap || copy.bytes <= 2 * kCopyTile) {
    std::memmove(to, from, copy.bytes);
    return;
  }
  auto tile = [&](std::int64_t i) {
    const std::size_t first = static_cast<std::size_t>(i) * kCopyTile;
    std::memcpy(to + first, from + first, std::min(kCopyTile, copy.bytes - first));
  };
  parallel_for(stream, static_cast<std::int64_t>((copy.bytes + kCopyTile - 1) / kCopyTile), tile);
}

CpuBackend::CpuBackend(int devices) : pinning_(devices) {
  for (int i = 0; i < devices; ++i) devices_.push_back(std::make_unique<CpuDevice>(i, pinning_));
}

}  // namespace braid::cpu
