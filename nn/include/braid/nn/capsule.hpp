#pragma once
#include <cstdint>
#include <string>

#include <braid/nn/conv.hpp>

// Capsules: a layer's numbers in vectors, whose length says how sure it is that a thing is there,
// and whose direction says what the thing is like. The loss is nn::capsule_margin_loss, the whole
// network docs/tutorials/capsnet.cpp, formulas and traps docs/notes/capsules.md.
//
// Source    Sabour, Frosst & Hinton 2017, Dynamic Routing Between Capsules, arXiv:1710.09829
namespace braid::nn {

/// v = ‖s‖² / (1 + ‖s‖²) · s / ‖s‖ along the last dim: the direction of s, and a length between 0
/// and 1.
///
/// Shapes    s [.., size], rank >= 1 → v, same shape
/// Types     floating point; float16 and bfloat16 in float32, rounded once
/// Gradient  made of recorded ops; 0 at s = 0, where v is 0 (1 / ‖s‖ is rsqrt(‖s‖² + 1e-12))
/// Throws    DTypeError, ShapeError
[[nodiscard]] Tensor squash(const Tensor& s);

struct RoutingOptions {
  int iterations = 3;
  /// no gradient through the coupling coefficients, only through the last sum: less time and memory
  bool detach_routing = false;
  Tensor bias = {};  ///< [out, size], added to each s
};
/// Routing by agreement: each of `in` capsules votes for the vectors of `out` ones, and its vote
/// counts the more for one of these, the more the others agree. b = 0; then `iterations` times: c =
/// softmax of b over the out capsules, s_j = Σ_i c_ij votes_ij (+ bias), v_j = squash(s_j), b_ij +=
/// votes_ij · v_j. Each sample of the batch has its own b, so that a split of the batch changes
/// nothing.
///
/// Shapes    votes [n, in, out, size] → v [n, out, size]
/// Types     floating point; votes of float16 and bfloat16 are summed in float32
/// Gradient  through all iterations, or, with detach_routing, the last sum alone; made of recorded
///           ops
/// Throws    ArgumentError for iterations < 1; ShapeError, DTypeError, DeviceError
[[nodiscard]] Tensor dynamic_routing(const Tensor& votes, const RoutingOptions& options = {});

/// The lengths of capsules [.., size] → [..], the scores of a classification. Gradient 0 for a
/// length of 0. Throws DTypeError, ShapeError.
[[nodiscard]] Tensor capsule_lengths(const Tensor& capsules);

/// What a decoder sees: all capsules but one are 0. The one is the label's, or without labels the
/// longest.
///
/// Shapes    capsules [n, classes, size], labels [n] int64 → [n, classes, size]. A label outside
///           the classes: all are 0
/// Gradient  to the capsule that is kept
/// Throws    ShapeError, DTypeError, DeviceError
[[nodiscard]] Tensor mask_capsules(const Tensor& capsules, const Tensor& labels = {});

struct PrimaryCapsulesOptions {
  Size2 stride = 2;
  ConvPadding padding = 0;
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
/// A convolution whose channels are `types` capsules of `size` numbers at each place, squashed.
/// Capsule (type, y, x) has the channels type · size to type · size + size - 1 of the place (y, x),
/// not numbers of several places.
///
/// Shapes    x [n, in, h, w] → [n, types · oh · ow, size], in order of type, row, column;
///           conv.weight [types · size, in, kh, kw], conv.bias
/// Throws    ArgumentError for sizes below 1; in a call what nn::Conv2d throws
struct PrimaryCapsules : Module {
  Conv2d conv;
  std::int64_t size;

  PrimaryCapsules(std::int64_t in_channels, std::int64_t types, std::int64_t capsule_size,
                  Size2 kernel_size, const PrimaryCapsulesOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  BRAID_FIELDS(conv)
};

struct DigitCapsulesOptions {
  int iterations = 3;
  bool detach_routing = false;
  bool bias = false;  ///< a bias for each s, as the authors' code has it; the paper has none
  std::optional<Device> device = {};
  std::optional<DType> dtype = {};
};
/// Capsules that route: capsule i votes weight_ij u_i for capsule j, dynamic_routing joins the
/// votes.
///
/// Shapes    u [n, in_capsules, in_size] → [n, out_capsules, out_size]; weight [in_capsules,
///           in_size, out_capsules · out_size], bias [out_capsules, out_size], undefined without
/// Starts    weight normal with deviation 0.1, cut at two of them, bias 0.1, as the authors' code
/// Memory    the votes, n · in_capsules · out_capsules · out_size numbers, are made once; a
///           backward makes as many for each sum over them
/// Throws    ArgumentError for sizes and iterations below 1; in a call ShapeError, DTypeError,
///           DeviceError
struct DigitCapsules : Module {
  Parameter weight, bias;
  std::int64_t out_capsules;
  int iterations;
  bool detach_routing;

  DigitCapsules(std::int64_t in_capsules, std::int64_t in_size, std::int64_t capsules,
                std::int64_t size, const DigitCapsulesOptions& options = {});
  [[nodiscard]] Tensor operator()(const Tensor& u) const;
  [[nodiscard]] std::string extra() const;
  BRAID_FIELDS(weight, bias)
};

}  // namespace braid::nn
