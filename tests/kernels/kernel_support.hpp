#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <braid/core/backend.hpp>
#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/error.hpp>
#include <braid/core/kernel_args/loop.hpp>
#include <braid/core/kernel_table.hpp>

#include "support/check.hpp"

// For tests that call the kernels of a device directly: loops made by hand, buffers with guards,
// elements of any dtype as double. The same cases run on the CPU (braid_tests_kernels) and on CUDA
// (braid_tests_cuda_kernels); on_cuda() says where this program runs.
namespace kernel_test {

using braid::DType;
using braid::Loop;

/// Defined by the program: true for cuda:0, false for cpu:0.
bool on_cuda();
/// The device of the program is there.
bool has_device();
const braid::DeviceContext& context();
const braid::KernelTable& kernels();
/// The stream for the next kernel; the buffers are brought to the device first.
braid::Stream& stream();
const braid::KernelTable& cpu_kernels();
braid::Stream& cpu_stream();

using Sizes = std::vector<std::int64_t>;
extern const Sizes kSmallSizes;
/// All sizes on the CPU; without the large ones on CUDA, where they may be emulated.
const Sizes& sizes();
extern const std::vector<DType> kAll, kFloats, kIntegers;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// One dense dim.
Loop dense(std::int64_t n);
using Strides = std::initializer_list<std::int64_t>;
/// Any strides; operand 0 is the output.
Loop strided(Strides sizes, std::initializer_list<Strides> strides);
/// Element offset of an operand at a row-major position.
std::int64_t offset(const Loop& loop, int operand, std::int64_t linear);
/// Elements that an operand spans.
std::int64_t extent(const Loop& loop, int operand);

double get(DType t, const void* data, std::int64_t i);
void set(DType t, void* data, std::int64_t i, double x);

/// Runs f with the threads of kernels in reverse order where they run in the forward one else;
/// false where that is not so or cannot be chosen, as on a GPU: f has not run then.
bool in_other_order(const std::function<void()>& f);

/// n elements that start `shift` elements after an aligned address, for the host and for the
/// device. On a CPU both are one memory. On CUDA kernels have a copy: it gets what the host wrote
/// before the next kernel, and the host waits for it before it reads. What lies before and after
/// must stay as it is: that is checked when the host reads, and at the end.
class Buffer {
 public:
  /// tight: under a sanitizer there is nothing around the elements, so that it sees every step
  /// outside.
  Buffer(DType dtype, std::int64_t n, std::int64_t shift = 0, bool tight = false);
  Buffer(const Buffer& other);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] std::int64_t size() const { return n_; }
  /// Where kernels find the elements.
  [[nodiscard]] void* data() const;
  [[nodiscard]] std::int64_t* integers() const { return static_cast<std::int64_t*>(data()); }
  /// Where the host finds them, to read and to write.
  [[nodiscard]] void* host();
  [[nodiscard]] double operator[](std::int64_t i) const;
  void put(std::int64_t i, double x);
  /// Deterministic numbers that every dtype holds well: small integers, or fractions of both signs.
  Buffer& pattern(std::uint32_t seed, double scale = 1.0);
  Buffer& fill(double x);
  [[nodiscard]] std::vector<unsigned char> bytes() const;

  struct Memory;

 private:
  DType dtype_;
  std::int64_t n_;
  std::unique_ptr<Memory> memory_;
};
/// A buffer of indices.
Buffer indices(const std::vector<std::int64_t>& list);
/// Elements of `out` that the loop does not name and that differ from `before`.
std::int64_t changed_outside(const Buffer& out, const std::vector<unsigned char>& before,
                             const Loop& loop);

/// Distance between neighbouring numbers of a floating dtype at x.
double ulp(DType t, double x);
/// Rounding of 16-bit results.
double half_ulp(DType t, double x);
/// Unit roundoff of the type computed in.
double unit(DType t);
double log2_up(std::int64_t n);
/// x rounded to the dtype.
double rounded(DType t, double x);
/// got is the dtype's number nearest to `expected`, give or take `ulps`; NaN for NaN; infinities
/// exactly.
bool close(DType t, double got, double expected, double ulps);

/// Runs f(), which writes all of `result`; on a CPU with 1, 2, 3 and 5 threads, which must give
/// equal bits.
void check_threads(Buffer& result, const std::function<void()>& f);

}  // namespace kernel_test

#define NEEDS_DEVICE                    \
  do {                                  \
    if (!::kernel_test::has_device()) { \
      WARN("SKIP(no CUDA device)");     \
      return;                           \
    }                                   \
  } while (false)
