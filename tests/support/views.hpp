#pragma once
// Converts tensors to the buffer views that communicators take.
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/parallel/communicator.hpp>

namespace braid::test {

inline parallel::BufferView view_of(const Tensor& t) {
  return {t.id()->data(), t.numel(), t.dtype(), t.device()};
}
inline std::vector<parallel::BufferView> views_of(const std::vector<Tensor>& tensors) {
  std::vector<parallel::BufferView> views;
  for (const Tensor& t : tensors) views.push_back(view_of(t));
  return views;
}

}  // namespace braid::test
