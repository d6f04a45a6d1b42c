#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/trace.hpp>

// Splits a tensor over devices and concatenates it again. Each is the other's gradient.
namespace braid::parallel {

/// The location of the pieces of a tensor.
struct Pieces {
  int dim = 0;
  bool scalars = false;  // the pieces have no dimensions, the whole is a vector
  // every piece is contiguous in separate memory, also on the device of the whole: results computed
  // from it do not depend on the device that it is on
  bool separate = false;
  std::vector<std::int64_t> sizes;
  std::vector<Device> devices;
};

/// The name and phase of its spans in a recording.
struct Traced {
  const char* name;
  trace::Phase phase;
};

/// Returns piece i along dim on devices[i]: a view if x is on that device, else a copy. One
/// recorded op.
[[nodiscard]] std::vector<Tensor> cut(const Tensor& x, const Pieces& pieces,
                                      const Traced& traced = {"scatter", trace::Phase::scatter});
/// Concatenates the pieces to a tensor of `shape` on `device`; undefined ones are zeros. One
/// recorded op.
[[nodiscard]] Tensor join(std::span<const Tensor> parts, const Pieces& pieces, const Shape& shape,
                          DType dtype, Device device,
                          const Traced& traced = {"gather", trace::Phase::gather});

}  // namespace braid::parallel
