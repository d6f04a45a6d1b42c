#pragma once
#include <cstdint>
#include <string>

#include <braid/nn/conv.hpp>

// Capsules: a layer's outputs are vectors. The length of a vector says how likely it is that an
// object is present; its direction describes the object. The loss is nn::capsule_margin_loss;
// docs/tutorials/capsnet.cpp is a whole network; docs/notes/capsules.md has the formulas and
// pitfalls.
//
// Source    Sabour, Frosst & Hinton 2017, Dynamic Routing Between Capsules, arXiv:1710.09829
namespace braid::nn {

/// v = ‖s‖² / (1 + ‖s‖²) · s / ‖s‖ along the last dim: a vector with the direction of s and a
/// length between 0 and 1.
///
/// Shapes    s [.., size], rank >= 1 → v, same shape
/// Types     floating point; float16 and bfloat16 are computed in float32 and rounded once
/// Gradient  of any order, by recorded ops. At s = 0 both v and its gradient are 0 (1 / ‖s‖ is
///           computed as rsqrt(‖s‖² + 1e-12))
/// Throws    DTypeError, ShapeError
[[nodiscard]] Tensor squash(const Tensor& s);

/// The options of dynamic_routing.
struct RoutingOptions {
  int iterations = 3;
  /// The gradient flows through the last weighted sum only, not through the coupling coefficients.
  /// Saves time and memory.
  bool detach_routing = false;
  Tensor bias = {};  ///< [out, size], added to each s
};
/// Routing by agreement. Each of `in` capsules votes for the vector of each of `out` capsules. A
/// vote gets more weight for an output capsule the more it agrees with the other votes for it.
/// Starts with b = 0, then repeats `iterations` times: c = softmax of b over the out capsules; s_j
/// = Σ_i c_ij votes_ij (+ bias); v_j = squash(s_j); b_ij += votes_ij · v_j. Every sample has its
/// own b, so splitting a batch does not change the result.
///
/// Shapes    votes [n, in, out, size] → v [n, out, size]
/// Types     floating point; float16 and bfloat16 votes are summed in float32
/// Gradient  of any order, by recorded ops: through all iterations, or, with detach_routing,
///           through the last sum only
/// Throws    ArgumentError if iterations < 1; ShapeError, DTypeError, DeviceError
[[nodiscard]] Tensor dynamic_routing(const Tensor& votes, const RoutingOptions& options = {});

/// Returns the lengths of capsules, [.., size] → [..]: the class scores of a capsule network. The
/// gradient is 0 where the length is 0.
///
/// Throws    DTypeError, ShapeError
[[nodiscard]] Tensor capsule_lengths(const Tensor& capsules);

/// Sets all capsules of a sample to 0 except one: that of its label, or, without labels, the
/// longest. The result is the input of a decoder.
///
/// Shapes    capsules [n, classes, size], labels [n] int64 → [n, classes, size]. If a label is
///           outside [0, classes), all capsules of that sample are 0
/// Gradient  to the capsule that is kept
/// Throws    ShapeError, DTypeError, DeviceError
[[nodiscard]] Tensor mask_capsules(const Tensor& capsules, const Tensor& labels = {});

/// The options of PrimaryCapsules: those of its convolution.
struct PrimaryCapsulesOptions {
  Size2 stride = 2;
  ConvPadding padding = 0;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
/// A convolution whose output channels are grouped into capsules, followed by squash. At each
/// position there are `types` capsules of `size` numbers. Capsule (type, y, x) consists of channels
/// type · size … type · size + size - 1 at position (y, x); it does not mix positions.
///
/// Shapes    x [n, in, h, w] → [n, types · oh · ow, size], ordered by type, row, column;
///           conv.weight [types · size, in, kh, kw], conv.bias [types · size]
/// Throws    ArgumentError if a size is below 1. A call throws ShapeError unless x has 4 dims, and
///           what nn::Conv2d throws
struct PrimaryCapsules : Module {
  Conv2d conv;
  std::int64_t size;

  PrimaryCapsules(std::int64_t in_channels, std::int64_t types, std::int64_t size,
                  Size2 kernel_size, const PrimaryCapsulesOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& x))
  BRAID_FIELDS_DECLARED(conv)
};

/// The options of DigitCapsules; the first two are those of dynamic_routing.
struct DigitCapsulesOptions {
  int iterations = 3;
  bool detach_routing = false;
  bool bias = false;  ///< adds a bias to each s, as the authors' code does; the paper has none
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
/// Capsules with routing: capsule i votes weight_ij u_i for capsule j; dynamic_routing combines the
/// votes.
///
/// Shapes    u [n, in_capsules, in_size] → [n, out_capsules, out_size]; weight [in_capsules,
///           in_size, out_capsules · out_size]; bias [out_capsules, out_size], undefined without
///           bias
/// Starts    weight from a normal distribution with standard deviation 0.1, truncated at ±0.2; bias
///           0.1, as in the authors' code
/// Memory    the votes, n · in_capsules · out_capsules · out_size numbers, are computed once;
///           backward allocates as many for each sum over them
/// Throws    ArgumentError if a size or iterations is below 1. A call throws ShapeError, DTypeError
///           or DeviceError
///
///     const nn::PrimaryCapsules primary(256, 32, 8, 9);
///     const nn::DigitCapsules digits(1152, 8, 10, 16);
///     const Tensor scores = nn::capsule_lengths(digits(primary(randn({4, 256, 20, 20}))));
struct DigitCapsules : Module {
  Parameter weight, bias;
  std::int64_t out_capsules;
  int iterations;
  bool detach_routing;

  DigitCapsules(std::int64_t in_capsules, std::int64_t in_size, std::int64_t out_capsules,
                std::int64_t out_size, const DigitCapsulesOptions& options = {});
  BRAID_FORWARD(Tensor, (const Tensor& u))
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS_DECLARED(weight, bias)
};

}  // namespace braid::nn
