#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/loop.hpp>
#include <braid/core/internal/kernel_table.hpp>

#include "support/check.hpp"
#include "support/precision.hpp"

// Helpers for tests that call a device's kernels directly: hand-made loops, buffers with guards,
// elements of any dtype as double. The same cases run on the CPU (braid_tests_kernels) and on CUDA
// (braid_tests_cuda_kernels); on_cuda() says which device this program uses.
namespace kernel_test {

using braid::DType;
using braid::Loop;
using braid::test::PrecisionGuard;

/// Defined by each program: true for cuda:0, false for cpu:0.
bool on_cuda();
/// Returns whether the program's device exists.
bool has_device();
const braid::DeviceContext& context();
const braid::KernelTable& kernels();
/// Returns the stream for the next kernel, after copying changed buffers to the device.
braid::Stream& stream();
const braid::KernelTable& cpu_kernels();
braid::Stream& cpu_stream();

using Sizes = std::vector<std::int64_t>;
extern const Sizes kSmallSizes;
/// Returns all sizes on the CPU. Omits the large ones on CUDA, which may be emulated.
const Sizes& sizes();
extern const std::vector<DType> kAll, kFloats, kIntegers;
inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A loop over one contiguous dim.
Loop dense(std::int64_t n);
using Strides = std::initializer_list<std::int64_t>;
/// A loop with any strides; operand 0 is the output.
Loop strided(Strides sizes, std::initializer_list<Strides> strides);
/// Returns the element offset of an operand at a row-major position.
std::int64_t offset(const Loop& loop, int operand, std::int64_t linear);
/// Returns the number of elements that an operand spans.
std::int64_t extent(const Loop& loop, int operand);

double get(DType t, const void* data, std::int64_t i);
void set(DType t, void* data, std::int64_t i, double x);

/// Runs f with the kernels' threads in reverse order and returns true, if they otherwise run
/// forward. Else, or if the order cannot be chosen, as on a GPU, returns false without running f.
bool in_other_order(const std::function<void()>& f);

/// The relative error of a product of two numbers of float32: for tf32 each is rounded to 11 bits;
/// for tf32x3 to two times 11 bits, and the product of the rest is left out.
double product_error(braid::Float32Precision precision);

/// The floating-point dtypes, and float32 in each precision that the device has: the CPU computes
/// all of them exactly.
const std::vector<std::pair<DType, braid::Float32Precision>>& floats_by_precision();

/// n elements that start `shift` elements after an aligned address, for the host and the device. On
/// a CPU both use the same memory. On CUDA, kernels use a copy: host writes are copied before the
/// next kernel, and host reads wait for the device. The guard bytes before and after the elements
/// must not change; this is checked when the host reads, and at the end.
class Buffer {
 public:
  /// tight: under a sanitizer the buffer has no guards, so the sanitizer detects every access
  /// outside.
  Buffer(DType dtype, std::int64_t n, std::int64_t shift = 0, bool tight = false);
  Buffer(const Buffer& other);
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] std::int64_t size() const { return n_; }
  /// Returns the address of the elements for kernels.
  [[nodiscard]] void* data() const;
  [[nodiscard]] std::int64_t* integers() const { return static_cast<std::int64_t*>(data()); }
  /// Returns the address of the elements for host reads and writes.
  [[nodiscard]] void* host();
  [[nodiscard]] double operator[](std::int64_t i) const;
  void put(std::int64_t i, double x);
  /// Fills with deterministic numbers in every dtype's range: small integers, or fractions of both
  /// signs.
  Buffer& pattern(std::uint32_t seed, double scale = 1.0);
  Buffer& fill(double x);
  [[nodiscard]] std::vector<unsigned char> bytes() const;

  struct Memory;

 private:
  DType dtype_;
  std::int64_t n_;
  std::unique_ptr<Memory> memory_;
};
/// Makes a buffer of int64 indices.
Buffer indices(const std::vector<std::int64_t>& list);
/// Counts the elements of `out` that the loop does not write and that differ from `before`.
std::int64_t changed_outside(const Buffer& out, const std::vector<unsigned char>& before,
                             const Loop& loop);

/// Returns the distance between neighbouring numbers of a floating dtype at x.
double ulp(DType t, double x);
/// Returns the rounding error of a 16-bit result, else 0.
double half_ulp(DType t, double x);
/// Returns the unit roundoff of the computation's dtype.
double unit(DType t);
double log2_up(std::int64_t n);
/// Returns x rounded to the dtype.
double rounded(DType t, double x);
/// Whether `got` is within `ulps` units in the last place of `expected`; 0 means correctly rounded.
/// NaN matches NaN. With 0 ulps, infinities must match exactly.
bool close(DType t, double got, double expected, double ulps);

/// Runs f(), which writes all of `result`. On a CPU it runs with 1, 2, 3 and 5 threads, which must
/// give equal bits.
void check_threads(Buffer& result, const std::function<void()>& f);

}  // namespace kernel_test

#define NEEDS_DEVICE                    \
  do {                                  \
    if (!::kernel_test::has_device()) { \
      WARN("SKIP(no CUDA device)");     \
      return;                           \
    }                                   \
  } while (false)
