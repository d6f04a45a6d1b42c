#pragma once
// Tensors that tests make are noted while a list is set, so that a test can see afterwards that
// none was changed.
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/tensor.hpp>

namespace braid::test {

/// A tensor and what it was when it was made.
struct Noted {
  Tensor tensor, copy;
  Shape shape, strides;
  std::uint64_t version;
};

/// The list of this thread; none most of the time.
inline std::vector<Noted>*& noted_tensors() {
  static thread_local std::vector<Noted>* list = nullptr;
  return list;
}

inline Tensor noted(Tensor t) {
  if (noted_tensors() != nullptr) {
    const NoGrad guard;
    noted_tensors()->push_back({t, t.clone(), t.shape(), t.strides(), t.version()});
  }
  return t;
}

}  // namespace braid::test
