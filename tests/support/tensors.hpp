#pragma once
// Tensors of every layout for tests. On the CPU they are read and written without the library's
// copy kernels. They are compared with plain arrays.
#include <cstdint>
#include <string>
#include <vector>

#include <braid/core/error.hpp>
#include <braid/core/tensor.hpp>

#include "reference/array.hpp"
#include "reference/rounding.hpp"
#include "support/check.hpp"
#include "support/function_ref.hpp"
#include "support/noted.hpp"

namespace braid::test {

using reference::Array;
using reference::Sizes;

/// Returns the devices that this run of a suite uses: all CPU devices, or the one CUDA device that
/// it runs on (the other CUDA devices have separate runs).
std::vector<Device> test_devices();

const std::vector<DType>& all_dtypes();
const std::vector<DType>& floating_dtypes();

inline Sizes sizes_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

reference::Format format_of(DType t);

/// Reads element i of raw memory.
double read_element(const void* data, std::int64_t i, DType t);
/// Writes x, rounded to the dtype.
void write_element(void* data, std::int64_t i, DType t, double x);
/// Returns the numbers of a tensor, read by its shape, strides and offset.
Array array_of(const Tensor& t);
/// Allocates `elements` uninitialised elements of host memory that ends exactly after the last one,
/// so that AddressSanitizer detects every access beyond it.
Ref<Storage> exact_storage(std::int64_t elements, DType dtype, Device device);
/// Makes a tensor of that shape, strides and offset on separate memory, filled by next().
Tensor strided(const Sizes& shape, const Sizes& strides, std::int64_t offset, DType dtype,
               Device device, FunctionRef<double()> next);

/// Makes a contiguous tensor of these numbers, rounded to the dtype.
Tensor tensor_of(const Array& a, DType dtype = DType::float32, Device device = {});

/// Strides and offset that a tensor of a given shape may have.
struct Layout {
  std::string name;
  Sizes strides;
  std::int64_t offset = 0;
  bool repeats = false;  ///< two indices share an element
};

/// Returns every kind of layout that the shape can have; the first is the contiguous one.
std::vector<Layout> layouts(const Sizes& shape);

/// A small random number generator, so that inputs do not depend on the library's.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53;
  }
  std::int64_t integer(std::int64_t low, std::int64_t high) {  // low <= x < high
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low));
  }
  /// Returns a number for the dtype: bool 0 or 1, uint8 0 … 20, integers -9 … 9, else uniform in
  /// [low, high).
  double of(DType t, double low = -2, double high = 2) {
    if (t == DType::bool_) return static_cast<double>(integer(0, 2));
    if (t == DType::uint8) return static_cast<double>(integer(0, 21));
    if (is_integral(t)) return static_cast<double>(integer(-9, 10));
    return uniform(low, high);
  }

 private:
  std::uint64_t state_;
};

/// Makes a contiguous tensor of random numbers.
Tensor random_tensor(const Sizes& shape, DType dtype = DType::float32, Device device = {},
                     std::uint64_t seed = 1, double low = -2, double high = 2);

// ---- comparisons: each returns "" if the tensors agree, else the first difference

std::string where_in(const Sizes& shape, std::int64_t n);
/// Checks that `got` has the shape of `want` and ok(i, got_i, want_i) holds everywhere.
[[nodiscard]] std::string difference(const Tensor& got, const Array& want,
                                     FunctionRef<bool(std::int64_t, double, double)> ok);

/// |got - want| <= atol + rtol |want|; NaN equals NaN.
struct Tolerance {
  double rtol, atol;
};
/// Returns the tolerance for results that are sums of some hundred terms.
Tolerance tolerance(DType t);
[[nodiscard]] std::string close(const Tensor& got, const Array& want, Tolerance t);
[[nodiscard]] std::string close(const Tensor& got, const Tensor& want, Tolerance t);

/// Equal to `want` rounded to the type of `got`: to nearest even, integers truncated, uint8 modulo
/// 256, bool != 0.
[[nodiscard]] std::string exact(const Tensor& got, const Array& want);
[[nodiscard]] std::string exact(const Tensor& got, const Tensor& want);
/// Differs by at most `ulps` units in the last place of the dtype from `want`.
[[nodiscard]] std::string within_ulps(const Tensor& got, const Array& want, double ulps);
/// Differs by at most bound[i], plus the rounding of the result, from `want`.
[[nodiscard]] std::string within_bound(const Tensor& got, const Array& want, const Array& bound);
/// Same shape, dtype and bits (including the sign of zero and the payload of a NaN).
[[nodiscard]] std::string same_bits(const Tensor& a, const Tensor& b);

}  // namespace braid::test

#define CHECK_CLOSE(got, want, tol) CHECK(::braid::test::close(got, want, tol) == "")
#define CHECK_EXACT(got, want) CHECK(::braid::test::exact(got, want) == "")
#define CHECK_SAME_BITS(a, b) CHECK(::braid::test::same_bits(a, b) == "")
