#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include <braid/core/backend.hpp>
#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/error.hpp>
#include <braid/core/kernel_args/loop.hpp>
#include <braid/core/kernel_table.hpp>

#include "support/catch.hpp"

// For tests that call the kernels of cpu:0 directly: loops made by hand, buffers with guards,
// elements of any dtype as double.
namespace kernel_test {

using braid::DType;
using braid::Loop;

inline const braid::KernelTable& kernels() {
  return *braid::device_context(braid::Device("cpu")).kernels;
}
inline braid::Stream& stream() { return *braid::device_context(braid::Device("cpu")).stream; }

inline const std::vector<std::int64_t> kSizes{
    0, 1, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 16385, 100003};
inline const std::vector<std::int64_t> kSmallSizes{0,  1,  7,  8,  15, 16,  17,
                                                   31, 33, 63, 64, 65, 1025};
inline const std::vector<DType> kAll{DType::bool_,   DType::uint8,   DType::int32,
                                     DType::int64,   DType::float16, DType::bfloat16,
                                     DType::float32, DType::float64};
inline const std::vector<DType> kFloats{DType::float16, DType::bfloat16, DType::float32,
                                        DType::float64};
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One dense dim.
inline Loop dense(std::int64_t n) {
  Loop loop{};
  loop.rank = 1;
  loop.n = n;
  loop.size[0] = n;
  for (auto& operand : loop.stride) operand[0] = 1;
  loop.dense = true;
  return loop;
}
/// Any strides; operand 0 is the output.
inline Loop strided(std::initializer_list<std::int64_t> sizes,
                    std::initializer_list<std::initializer_list<std::int64_t>> strides) {
  Loop loop{};
  loop.rank = static_cast<int>(sizes.size());
  loop.n = 1;
  int d = 0;
  for (const std::int64_t size : sizes) loop.size[d++] = size, loop.n *= size;
  int k = 0;
  for (const auto& operand : strides) {
    d = 0;
    for (const std::int64_t stride : operand) loop.stride[k][d++] = stride;
    ++k;
  }
  return loop;
}
/// Element offset of an operand at a row-major position.
inline std::int64_t offset(const Loop& loop, int operand, std::int64_t linear) {
  std::int64_t result = 0;
  for (int d = loop.rank - 1; d >= 0; --d) {
    result += linear % loop.size[d] * loop.stride[operand][d];
    linear /= loop.size[d];
  }
  return result;
}
/// Elements that an operand spans.
inline std::int64_t extent(const Loop& loop, int operand) {
  std::int64_t last = 0;
  for (int d = 0; d < loop.rank; ++d) {
    if (loop.size[d] == 0) return 0;
    last += (loop.size[d] - 1) * loop.stride[operand][d];
  }
  return last + 1;
}

inline double get(DType t, const void* data, std::int64_t i) {
  switch (t) {
    case DType::bool_:
    case DType::uint8: return static_cast<const std::uint8_t*>(data)[i];
    case DType::int32: return static_cast<const std::int32_t*>(data)[i];
    case DType::int64: return static_cast<double>(static_cast<const std::int64_t*>(data)[i]);
    case DType::float16:
      return static_cast<double>(static_cast<float>(static_cast<const braid::float16*>(data)[i]));
    case DType::bfloat16:
      return static_cast<double>(static_cast<float>(static_cast<const braid::bfloat16*>(data)[i]));
    case DType::float32: return static_cast<double>(static_cast<const float*>(data)[i]);
    case DType::float64: return static_cast<const double*>(data)[i];
  }
  return 0;
}
inline void set(DType t, void* data, std::int64_t i, double x) {
  switch (t) {
    case DType::bool_: static_cast<std::uint8_t*>(data)[i] = x != 0; break;
    case DType::uint8:
      static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(static_cast<std::int64_t>(x));
      break;
    case DType::int32: static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(x); break;
    case DType::int64: static_cast<std::int64_t*>(data)[i] = static_cast<std::int64_t>(x); break;
    case DType::float16:
      static_cast<braid::float16*>(data)[i] = braid::float16(static_cast<float>(x));
      break;
    case DType::bfloat16:
      static_cast<braid::bfloat16*>(data)[i] = braid::bfloat16(static_cast<float>(x));
      break;
    case DType::float32: static_cast<float*>(data)[i] = static_cast<float>(x); break;
    case DType::float64: static_cast<double*>(data)[i] = x; break;
  }
}

/// Memory for n elements that starts `shift` elements after an aligned address; what lies before
/// and after must stay as it is.
class Buffer {
 public:
  Buffer(DType dtype, std::int64_t n, std::int64_t shift = 0) : dtype_(dtype), n_(n) {
    const std::size_t bytes = static_cast<std::size_t>(n) * braid::size_of(dtype),
                      before = static_cast<std::size_t>(shift) * braid::size_of(dtype);
    memory_.assign(bytes + before + 2 * kGuard + 64, kMark);
    const auto base = reinterpret_cast<std::uintptr_t>(memory_.data());
    start_ = (base + kGuard + 63) / 64 * 64 - base + before;
  }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] std::int64_t size() const { return n_; }
  [[nodiscard]] void* data() { return memory_.data() + start_; }
  [[nodiscard]] const void* data() const { return memory_.data() + start_; }
  [[nodiscard]] double operator[](std::int64_t i) const { return get(dtype_, data(), i); }
  void put(std::int64_t i, double x) { set(dtype_, data(), i, x); }
  /// Deterministic numbers that every dtype holds well: small integers, or fractions of both signs.
  Buffer& pattern(std::uint32_t seed, double scale = 1.0) {
    std::uint32_t state = seed * 2654435761u + 12345u;
    for (std::int64_t i = 0; i < n_; ++i) {
      state = state * 1664525u + 1013904223u;
      const double u = static_cast<double>(state >> 8) * 0x1p-24;
      if (dtype_ == DType::bool_) put(i, u > 0.5);
      else if (dtype_ == DType::uint8) put(i, std::floor(u * 200));
      else if (!braid::is_floating(dtype_)) put(i, std::floor(u * 200) - 100);
      else put(i, (u * 4 - 2) * scale);
    }
    return *this;
  }
  [[nodiscard]] std::vector<unsigned char> bytes() const {
    const auto* p = static_cast<const unsigned char*>(data());
    return {p, p + static_cast<std::size_t>(n_) * braid::size_of(dtype_)};
  }
  [[nodiscard]] bool guards_intact() const {
    const std::size_t end = start_ + static_cast<std::size_t>(n_) * braid::size_of(dtype_);
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if ((i < start_ || i >= end) && memory_[i] != kMark) return false;
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr unsigned char kMark = 0xA5;
  DType dtype_;
  std::int64_t n_;
  std::size_t start_ = 0;
  std::vector<unsigned char> memory_;
};

/// Distance between neighbouring numbers of a floating dtype at x.
inline double ulp(DType t, double x) {
  int bits = 0, lowest = 0;
  switch (t) {
    case DType::float16: bits = 10, lowest = -24; break;
    case DType::bfloat16: bits = 7, lowest = -133; break;
    case DType::float32: bits = 23, lowest = -149; break;
    default: bits = 52, lowest = -1074; break;
  }
  if (x == 0 || !std::isfinite(x)) return std::ldexp(1.0, lowest);
  return std::ldexp(1.0, std::max(std::ilogb(x) - bits, lowest));
}
/// x rounded to the dtype.
inline double rounded(DType t, double x) {
  alignas(8) unsigned char storage[8] = {};
  set(t, storage, 0, x);
  return get(t, storage, 0);
}
/// got is the dtype's number nearest to `expected`, give or take `ulps`; NaN for NaN; infinities
/// exactly.
inline bool close(DType t, double got, double expected, double ulps) {
  if (!braid::is_floating(t)) return got == expected;
  if (std::isnan(expected)) return std::isnan(got);
  const double target = rounded(t, expected);
  if (got == target) return std::signbit(got) == std::signbit(target) || target != 0 || ulps > 0;
  if (!std::isfinite(got) || !std::isfinite(target)) {
    const double largest = t == DType::float16   ? 65504
                           : t == DType::float64 ? std::numeric_limits<double>::max()
                                                 : 3.3e38;
    return ulps > 0 && std::signbit(got) == std::signbit(target) && std::fabs(got) >= largest &&
           std::fabs(target) >= largest;
  }
  return std::fabs(got - expected) <= ulps * ulp(t, expected);
}

/// Runs f() with 1, 2, 3 and 5 threads and requires equal bits of `result` each time; f writes all
/// of it.
template <class F> void check_threads(Buffer& result, F f) {
  const int before = braid::num_threads();
  braid::set_num_threads(1);
  f();
  const auto expected = result.bytes();
  for (const int threads : {2, 3, 5}) {
    std::memset(result.data(), 0x5A, expected.size());
    braid::set_num_threads(threads);
    f();
    CHECK(result.bytes() == expected);
  }
  braid::set_num_threads(before);
}

}  // namespace kernel_test
