#pragma once
#include <cstdint>

#include <braid/core/tensor.hpp>

// What the modules above core know of a tensor, as bits of TensorImpl::marks.
namespace braid::nn::detail {

enum class Mark : std::uint8_t {
  tied = 1,     ///< a parameter that nn::tie has given to another module too
  replica = 2,  ///< a copy of a parameter or buffer, made by replicate
};
[[nodiscard]] inline bool has_mark(const Tensor& t, Mark mark) noexcept {
  return (t.id()->marks & static_cast<std::uint8_t>(mark)) != 0;
}
inline void set_mark(const Tensor& t, Mark mark, bool on = true) noexcept {
  const auto bit = static_cast<std::uint8_t>(mark);
  std::uint8_t& marks = t.id()->marks;
  marks = static_cast<std::uint8_t>(on ? marks | bit : marks & ~bit);
}

}  // namespace braid::nn::detail
