#pragma once
#include <optional>

#include <braid/core/autograd.hpp>
#include <braid/core/device.hpp>
#include <braid/core/dtype.hpp>
#include <braid/core/int_list.hpp>
#include <braid/core/scalar.hpp>
#include <braid/core/tensor.hpp>

// LibTorch's names of types and constants, so that its code compiles with
// `namespace torch = braid;`.
namespace braid {

/// LibTorch's names of the types DType, IntList, GradMode and NoGrad.
using ScalarType = DType;
using Dtype = DType;
using IntArrayRef = IntList;
using std::nullopt;
using std::optional;
using AutoGradMode = GradMode;
using NoGradGuard = NoGrad;

/// The dtype in which an op combines tensors of two dtypes, and of two tensors. Unlike PyTorch's, a
/// tensor without dimensions counts as any other.
[[nodiscard]] inline DType promote_types(DType a, DType b) noexcept { return promote(a, b); }
[[nodiscard]] inline DType result_type(const Tensor& a, const Tensor& b) {
  return promote(a.dtype(), b.dtype());
}
/// float32: the dtype of factories that are given none. It cannot be changed.
[[nodiscard]] inline DType get_default_dtype() noexcept { return DType::float32; }
/// num_threads()
[[nodiscard]] inline int get_num_threads() { return num_threads(); }

/// The dtypes and device types.
///
///     const Tensor whole = zeros({2, 3}, kInt64), half = randn({2, 3}).to(kFloat16);
inline constexpr DType kBool = DType::bool_, kByte = DType::uint8, kUInt8 = DType::uint8,
                       kInt = DType::int32, kInt32 = DType::int32, kLong = DType::int64,
                       kInt64 = DType::int64, kHalf = DType::float16, kFloat16 = DType::float16,
                       kBFloat16 = DType::bfloat16, kFloat = DType::float32,
                       kFloat32 = DType::float32, kDouble = DType::float64,
                       kFloat64 = DType::float64;
inline constexpr DeviceType kCPU = DeviceType::cpu, kCUDA = DeviceType::cuda;

namespace detail {
// Dtypes that Braid does not have: to use one is an error of the compiler that names these structs.
struct braid_has_no_int8_use_kInt32_or_kUInt8 {
  operator DType() const = delete;
};
struct braid_has_no_int16_use_kInt32 {
  operator DType() const = delete;
};
struct braid_has_no_complex_numbers {
  operator DType() const = delete;
};
}  // namespace detail
inline constexpr detail::braid_has_no_int8_use_kInt32_or_kUInt8 kChar{}, kInt8{};
inline constexpr detail::braid_has_no_int16_use_kInt32 kShort{}, kInt16{};
inline constexpr detail::braid_has_no_complex_numbers kComplexFloat{}, kComplexDouble{};

}  // namespace braid
