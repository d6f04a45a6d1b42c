#pragma once
// Records the tensors that a test makes while a list is set, so that the test can check afterwards
// that none was changed.
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/tensor.hpp>

namespace braid::test {

/// A tensor and a copy of its state at creation.
struct Noted {
  Tensor tensor, copy;
  Shape shape, strides;
  std::uint64_t version;
};

/// The list of this thread; null while nothing is recorded.
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
