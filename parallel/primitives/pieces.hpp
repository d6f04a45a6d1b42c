#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include <braid/core/tensor.hpp>
#include <braid/core/trace.hpp>

// Cutting a tensor over devices and joining it again: each is the other's gradient.
namespace braid::parallel {

/// Where the pieces of a tensor lie.
struct Pieces {
  int dim = 0;
  bool scalars = false;  // the pieces have no dimensions, the whole is a vector
  // every piece is dense in memory of its own, also on the device of the whole: what is computed
  // from it is the same wherever that is
  bool separate = false;
  std::vector<std::int64_t> sizes;
  std::vector<Device> devices;
};

/// What a recording calls it.
struct Traced {
  const char* name;
  trace::Phase phase;
};

/// Piece i along dim on devices[i]: a view where x is on that device, else a copy. One recorded op.
[[nodiscard]] std::vector<Tensor> cut(const Tensor& x, const Pieces& pieces,
                                      const Traced& traced = {"scatter", trace::Phase::scatter});
/// The pieces as one tensor of `shape` on `device`; undefined ones are zeros. One recorded op.
[[nodiscard]] Tensor join(std::span<const Tensor> parts, const Pieces& pieces, const Shape& shape,
                          DType dtype, Device device,
                          const Traced& traced = {"gather", trace::Phase::gather});

}  // namespace braid::parallel
