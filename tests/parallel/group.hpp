#pragma once
// What the tests of parallel share: groups of devices, what is on them, and a small model.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/device.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/random.hpp>
#include <braid/core/tensor.hpp>
#include <braid/nn/linear.hpp>
#include <braid/nn/module.hpp>
#include <braid/nn/walks.hpp>

#include "support/on_device.hpp"

namespace braid::test {

/// The first n devices.
inline std::vector<Device> group(int n) {
  std::vector<Device> list = devices();
  list.resize(static_cast<std::size_t>(n));
  return list;
}
inline Device device(int i) { return devices().at(static_cast<std::size_t>(i)); }

/// How often this process was warned with exactly this text.
[[nodiscard]] int warnings_with(std::string_view text);

/// The bytes in use on each device.
inline std::vector<std::size_t> in_use() {
  std::vector<std::size_t> bytes;
  for (const Device d : devices()) bytes.push_back(memory_stats(d).in_use);
  return bytes;
}

/// The numbers of now: a later step does not change them.
inline std::vector<Tensor> copies_of(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> list;
  for (const Tensor& t : tensors) list.push_back(t.detach().clone());
  return list;
}
inline std::vector<double> numbers(const Tensor& t) { return t.to_vector<double>(); }

/// Two layers, a buffer that counts the rows it saw in place, and a plain field.
struct Net : nn::Module {
  nn::Linear fc1{4, 8}, fc2{8, 3};
  nn::Buffer seen{zeros({1})};
  mutable int calls = 0;
  Tensor operator()(const Tensor& x) const {
    ++calls;
    seen.add_(static_cast<double>(x.size(0)));
    return fc2(tanh(fc1(x)));
  }
  BRAID_FIELDS(fc1, fc2, seen)
};

}  // namespace braid::test
