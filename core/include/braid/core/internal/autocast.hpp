#pragma once
// How an op takes part in Autocast: it calls itself with converted arguments.
//
//     if (detail::autocasting()) [[unlikely]] {
//       const detail::Autocasted low(detail::Precision::low);
//       return matmul(low(a), low(b));
//     }
#include <cstdint>

#include <braid/core/autocast.hpp>

namespace braid::detail {

[[nodiscard]] inline bool autocasting() noexcept { return thread_state().autocast.has_value(); }

/// Whether an Autocast may convert tensors of both dtypes, so that they may differ.
[[nodiscard]] inline bool autocasting(DType a, DType b) noexcept {
  return autocasting() && is_floating(a) && a != DType::float64 && is_floating(b) &&
         b != DType::float64;
}

enum class Precision : std::uint8_t {
  low,  ///< the 16-bit type of the Autocast
  full  ///< float32
};

/// Converts arguments. While it exists, autocast is off, so that the op's parts keep their types.
class Autocasted {
 public:
  explicit Autocasted(Precision precision) noexcept
      : off_(std::exchange(thread_state().autocast, std::nullopt)),
        dtype_(precision == Precision::low ? *off_ : DType::float32) {}
  ~Autocasted() { thread_state().autocast = off_; }
  Autocasted(const Autocasted&) = delete;
  Autocasted& operator=(const Autocasted&) = delete;
  /// float32 to the 16-bit type, or 16-bit types to float32; all others stay.
  [[nodiscard]] Tensor operator()(const Tensor& t) const;

 private:
  std::optional<DType> off_;
  DType dtype_;
};

/// A tensor whose function needs float32 inside of an Autocast.
[[nodiscard]] Tensor in_full_precision(const Tensor& t);

}  // namespace braid::detail
