#pragma once
#include <braid/core/tensor.hpp>
#include <braid/parallel/communicator.hpp>

namespace braid::parallel {

/// Returns the view of a contiguous tensor's elements for a communicator.
[[nodiscard]] inline BufferView view_of(const Tensor& t) {
  return {t.id()->data(), t.numel(), t.dtype(), t.device()};
}
[[nodiscard]] inline std::size_t bytes_of(const Tensor& t) {
  return static_cast<std::size_t>(t.numel()) * size_of(t.dtype());
}

}  // namespace braid::parallel
