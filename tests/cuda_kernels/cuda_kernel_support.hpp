#pragma once
#include <memory>

#include <braid/core/kernel_args/loop.hpp>

#include "kernels/kernel_support.hpp"

// For tests that call the kernels of cuda:0 through its table, with operands whose twins in host
// memory are kernel_test's buffers.
namespace kernel_test {

inline const braid::DeviceContext& gpu_context() {
  return braid::device_context(braid::Device("cuda:0"));
}
inline const braid::KernelTable& gpu() { return *gpu_context().kernels; }
inline braid::Stream& gpu_stream() { return *gpu_context().stream; }

/// Bytes on cuda:0 with as many marked bytes before and after; `shift` bytes off an aligned
/// address.
class DeviceBytes {
 public:
  DeviceBytes(const void* from, std::size_t bytes, std::size_t shift)
      : host_(2 * kGuard + shift + bytes, kMark), bytes_(bytes), start_(kGuard + shift) {
    if (bytes > 0) std::memcpy(host_.data() + start_, from, bytes);
    block_ = gpu_context().backend->allocate(host_.size(), gpu_stream());
    gpu_context().backend->copy(
        {block_.data, gpu_stream().device(), host_.data(), braid::Device(), host_.size()},
        gpu_stream());
  }
  ~DeviceBytes() { gpu_context().backend->release(block_, gpu_stream()); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  [[nodiscard]] void* data() const { return static_cast<unsigned char*>(block_.data) + start_; }
  /// Waits, copies the bytes to `to`, and requires that what lies around them is as it was.
  void fetch(void* to) {
    gpu_context().backend->copy(
        {host_.data(), braid::Device(), block_.data, gpu_stream().device(), host_.size()},
        gpu_stream());
    gpu_stream().synchronize();
    std::size_t changed = 0;
    for (std::size_t i = 0; i < host_.size(); ++i)
      changed += (i < start_ || i >= start_ + bytes_) && host_[i] != kMark;
    CHECK(changed == 0);
    if (bytes_ > 0) std::memcpy(to, host_.data() + start_, bytes_);
  }

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr unsigned char kMark = 0xA5;
  std::vector<unsigned char> host_;
  std::size_t bytes_, start_;
  braid::Block block_;
};

/// The twin of a Buffer; it starts with the Buffer's elements.
class Twin {
 public:
  explicit Twin(Buffer& host, std::int64_t shift = 0)
      : host_(host),
        bytes_(host.data(), static_cast<std::size_t>(host.size()) * braid::size_of(host.dtype()),
               static_cast<std::size_t>(shift) * braid::size_of(host.dtype())) {}
  [[nodiscard]] void* data() const { return bytes_.data(); }
  /// Brings the elements back.
  void fetch() { bytes_.fetch(host_.data()); }

 private:
  Buffer& host_;
  DeviceBytes bytes_;
};

/// The twin of a list of indices.
class IndexTwin {
 public:
  explicit IndexTwin(const std::vector<std::int64_t>& index)
      : bytes_(index.data(), index.size() * sizeof(std::int64_t), 0) {}
  [[nodiscard]] const std::int64_t* data() const {
    return static_cast<const std::int64_t*>(bytes_.data());
  }

 private:
  DeviceBytes bytes_;
};

/// Elements of `out` that the loop does not name and that differ from `before`.
inline std::int64_t changed_outside(const Buffer& out, const std::vector<unsigned char>& before,
                                    const Loop& loop) {
  std::vector<bool> named(static_cast<std::size_t>(out.size()));
  for (std::int64_t i = 0; i < loop.n; ++i)
    named[static_cast<std::size_t>(offset(loop, 0, i))] = true;
  const auto after = out.bytes();
  const std::size_t element = braid::size_of(out.dtype());
  std::int64_t changed = 0;
  for (std::size_t i = 0; i < named.size(); ++i)
    for (std::size_t k = 0; k < element; ++k)
      changed += !named[i] && before[i * element + k] != after[i * element + k];
  return changed;
}

/// Rounding of 16-bit results.
inline double half_ulp(DType t, double x) {
  return t == DType::float16 || t == DType::bfloat16 ? 0.51 * ulp(t, x) : 0;
}
/// Unit roundoff of the type computed in.
inline double unit(DType t) { return t == DType::float64 ? 0x1p-53 : 0x1p-24; }

}  // namespace kernel_test

#define NEEDS_GPU                                                \
  do {                                                           \
    if (::braid::device_count(::braid::DeviceType::cuda) == 0) { \
      WARN("SKIP(no CUDA device)");                              \
      return;                                                    \
    }                                                            \
  } while (false)
