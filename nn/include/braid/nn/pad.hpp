#pragma once
#include <cstdint>
#include <string>

#include <braid/core/ops/pad.hpp>
#include <braid/nn/module.hpp>

// Padding layers, for nn::Sequential. braid::pad documents shapes, modes and errors. One number
// pads every side; else there are two numbers per dim, beginning with the last dim.
namespace braid::nn {

namespace detail {
/// The common part of the padding layers.
struct Pad : Module {
  IntList padding;
  PadMode mode;
  double value;
  /// Throws ArgumentError, naming the layer, unless there are 1 or 2 `dims` numbers.
  Pad(const char* name, int dims, PadMode mode, const IntList& padding, double value = 0);
  BRAID_FORWARD(Tensor, (const Tensor& x))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS()
};
}  // namespace detail

// X(Layer, dims, mode): the layers and their tests are made from this list.
#define BRAID_PAD_LAYERS(X)         \
  X(ZeroPad1d, 1, constant)         \
  X(ZeroPad2d, 2, constant)         \
  X(ZeroPad3d, 3, constant)         \
  X(ReflectionPad1d, 1, reflect)    \
  X(ReflectionPad2d, 2, reflect)    \
  X(ReflectionPad3d, 3, reflect)    \
  X(ReplicationPad1d, 1, replicate) \
  X(ReplicationPad2d, 2, replicate) \
  X(ReplicationPad3d, 3, replicate) \
  X(CircularPad1d, 1, circular)     \
  X(CircularPad2d, 2, circular)     \
  X(CircularPad3d, 3, circular)

#define BRAID_PAD(Layer, dims, mode_)                                                  \
  struct Layer : detail::Pad {                                                         \
    explicit Layer(const IntList& sizes) : Pad(#Layer, dims, PadMode::mode_, sizes) {} \
    BRAID_FIELDS_OF(Pad)                                                               \
  };
BRAID_PAD_LAYERS(BRAID_PAD)
#undef BRAID_PAD

#define BRAID_PAD(Layer, dims)                                   \
  struct Layer : detail::Pad {                                   \
    Layer(const IntList& sizes, double number)                   \
        : Pad(#Layer, dims, PadMode::constant, sizes, number) {} \
    BRAID_FIELDS_OF(Pad)                                         \
  };
BRAID_PAD(ConstantPad1d, 1)
BRAID_PAD(ConstantPad2d, 2)
BRAID_PAD(ConstantPad3d, 3)
#undef BRAID_PAD

}  // namespace braid::nn
