#include <optional>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/nn/capsule.hpp>
#include <braid/nn/init.hpp>

#include "layers/call.hpp"

namespace braid::nn {
namespace {

void check_vectors(const char* op, const char* name, const Tensor& x) {
  if (!is_floating(x.dtype()))
    throw DTypeError(str(op, ": expected ", name, " of a floating point dtype, got ", x.dtype()));
  if (x.dim() < 1)
    throw ShapeError(
        str(op, ": expected ", name, " with vectors along the last dim, got a scalar"));
}
void check_iterations(const char* op, int iterations) {
  if (iterations < 1) throw ArgumentError(str(op, ": expected iterations >= 1, got ", iterations));
}
void check_bias(const char* op, const Tensor& bias, const Tensor& votes, const Shape& shape) {
  if (!bias.defined()) return;
  if (bias.device() != votes.device())
    throw DeviceError(str(op, ": expected bias on ", votes.device(), ", got ", bias.device()));
  if (bias.dtype() != votes.dtype())
    throw DTypeError(str(op, ": expected bias to be ", votes.dtype(), ", got ", bias.dtype()));
  if (bias.shape() != shape)
    throw ShapeError(str(op, ": expected bias ", shape, ", got ", bias.shape()));
}

/// Returns the dot product of each vote [m, in, size] with its v [m, 1, size]: [m, 1, in]. This is
/// matmul(v, votesᵀ), but the gradient for the votes has the memory layout of the votes.
Tensor products(const Tensor& votes, const Tensor& v) {
  Tensor y;
  {
    const NoGrad guard;
    y = matmul(v, votes.transpose(1, 2));
  }
  if (!needs_grad({votes, v})) return y;
  return record("agreement", {votes, v}, y,
                [saved_votes = SavedTensor(votes), saved_v = SavedTensor(v)](const Tensor& dy,
                                                                             Needs needs) -> Grads {
                  return {needs[0] ? matmul(dy.transpose(1, 2), saved_v.get()) : Tensor(),
                          needs[1] ? matmul(dy, saved_votes.get()) : Tensor()};
                });
}

/// Routes votes [in, n · out, size], the layout in which a batched matrix product leaves them. Each
/// round is one product for the sums and one for the agreement, on the votes without a copy.
Tensor route(const Tensor& votes, std::int64_t n, std::int64_t out, const RoutingOptions& o) {
  const std::int64_t in = votes.size(0), size = votes.size(2);
  const Tensor u = votes.transpose(0, 1);
  Tensor agreement, v;  // [n, out, in], [n, out, size]
  for (int round = 1; round <= o.iterations; ++round) {
    std::optional<NoGrad> guard;
    if (o.detach_routing && round < o.iterations) guard.emplace();
    Tensor s;
    if (agreement.defined()) s = matmul(softmax(agreement, 1).reshape({n * out, 1, in}), u);
    else s = mul(sum(u, {1}), 1.0 / static_cast<double>(out));  // equal coefficients
    s = s.reshape({n, out, size});
    v = squash(o.bias.defined() ? s + o.bias : s);
    if (round == o.iterations) break;
    const Tensor more = products(u, v.reshape({n * out, 1, size})).reshape({n, out, in});
    agreement = agreement.defined() ? agreement + more : more;
  }
  return v;
}

}  // namespace

Tensor squash(const Tensor& s) {
  check_vectors("squash", "s", s);
  if (size_of(s.dtype()) == 2) return squash(s.to(DType::float32)).to(s.dtype());
  constexpr double kEps = 1e-12;
  const Tensor square_length = sum(square(s), {-1}, true);
  return s * (square_length / add(square_length, 1) * rsqrt(add(square_length, kEps)));
}

Tensor dynamic_routing(const Tensor& votes, const RoutingOptions& o) {
  constexpr const char* op = "dynamic_routing";
  check_vectors(op, "votes", votes);
  if (votes.dim() != 4)
    throw ShapeError(str(op, ": expected votes [n, in, out, size], got ", votes.shape()));
  check_iterations(op, o.iterations);
  const std::int64_t n = votes.size(0), in = votes.size(1), out = votes.size(2),
                     size = votes.size(3);
  check_bias(op, o.bias, votes, {out, size});
  if (size_of(votes.dtype()) == 2) {
    RoutingOptions wide = o;
    if (o.bias.defined()) wide.bias = o.bias.to(DType::float32);
    return dynamic_routing(votes.to(DType::float32), wide).to(votes.dtype());
  }
  return route(votes.transpose(0, 1).reshape({in, n * out, size}), n, out, o);
}

Tensor capsule_lengths(const Tensor& capsules) {
  check_vectors("capsule_lengths", "capsules", capsules);
  return norm(capsules, 2, {-1});
}

Tensor mask_capsules(const Tensor& capsules, const Tensor& labels) {
  constexpr const char* op = "mask_capsules";
  check_vectors(op, "capsules", capsules);
  if (capsules.dim() != 3)
    throw ShapeError(str(op, ": expected capsules [n, classes, size], got ", capsules.shape()));
  if (labels.defined()) {
    if (labels.dtype() != DType::int64)
      throw DTypeError(str(op, ": expected labels of int64, got ", labels.dtype()));
    if (labels.device() != capsules.device())
      throw DeviceError(
          str(op, ": expected labels on ", capsules.device(), ", got ", labels.device()));
    if (labels.shape() != Shape{capsules.size(0)})
      throw ShapeError(str(op, ": expected labels [", capsules.size(0), "], got ", labels.shape()));
  }
  const Tensor kept = labels.defined() ? labels : capsule_lengths(capsules.detach()).argmax(1);
  return where(
      eq(kept.unsqueeze(1), arange(capsules.size(1), {.device = capsules.device()})).unsqueeze(2),
      capsules, 0.0);
}

namespace {

std::int64_t product(const char* layer, const char* what, std::int64_t a, std::int64_t b) {
  std::int64_t n = 0;
  if (__builtin_mul_overflow(a, b, &n))
    throw ArgumentError(str(layer, ": expected ", what, " below 2^63, got ", a, " and ", b));
  return n;
}

/// Makes the convolution of PrimaryCapsules. Checks types and size before multiplying them.
Conv2d primary_conv(std::int64_t in, std::int64_t types, std::int64_t size, Size2 kernel,
                    const PrimaryCapsulesOptions& o) {
  if (types < 1) throw ArgumentError(str("PrimaryCapsules: expected types >= 1, got ", types));
  if (size < 1) throw ArgumentError(str("PrimaryCapsules: expected size >= 1, got ", size));
  return {in,
          product("PrimaryCapsules", "types · size", types, size),
          kernel,
          {.stride = o.stride, .padding = o.padding, .device = o.device, .dtype = o.dtype}};
}

}  // namespace

PrimaryCapsules::PrimaryCapsules(std::int64_t in_channels, std::int64_t types,
                                 std::int64_t capsule_size, Size2 kernel_size,
                                 const PrimaryCapsulesOptions& o)
    : conv(primary_conv(in_channels, types, capsule_size, kernel_size, o)), size(capsule_size) {}

Tensor PrimaryCapsules::forward(const Tensor& x) const {
  if (x.dim() != 4)
    throw ShapeError(str("PrimaryCapsules: expected x [n, in, h, w], got ", x.shape()));
  const Tensor maps = conv(x);  // [n, types · size, oh, ow]
  const std::int64_t n = maps.size(0), types = maps.size(1) / size,
                     places = maps.size(2) * maps.size(3);
  return squash(
      maps.reshape({n, types, size, places}).transpose(2, 3).reshape({n, types * places, size}));
}
BRAID_LAYER_CALL(Tensor, PrimaryCapsules, (const Tensor& x), (x))

DigitCapsules::DigitCapsules(std::int64_t in_capsules, std::int64_t in_size, std::int64_t capsules,
                             std::int64_t capsule_size, const DigitCapsulesOptions& o)
    : out_capsules(capsules), iterations(o.iterations), detach_routing(o.detach_routing) {
  const auto check = [](const char* name, std::int64_t got) {
    if (got < 1) throw ArgumentError(str("DigitCapsules: expected ", name, " >= 1, got ", got));
  };
  check("in_capsules", in_capsules);
  check("in_size", in_size);
  check("out_capsules", capsules);
  check("out_size", capsule_size);
  check_iterations("DigitCapsules", iterations);
  const FactoryOptions made{.device = o.device, .dtype = o.dtype};
  const std::int64_t all =
      product("DigitCapsules", "out_capsules · out_size", capsules, capsule_size);
  weight = Parameter(empty({in_capsules, in_size, all}, made));
  init::trunc_normal_(weight, 0, 0.1, -0.2, 0.2);
  if (o.bias) bias = Parameter(full({capsules, capsule_size}, 0.1, made));
}

Tensor DigitCapsules::forward(const Tensor& u) const {
  const std::int64_t in = weight.size(0), size = weight.size(2) / out_capsules;
  if (u.dim() != 3 || u.size(1) != in || u.size(2) != weight.size(1))
    throw ShapeError(
        str("DigitCapsules: expected u [n, ", in, ", ", weight.size(1), "], got ", u.shape()));
  const std::int64_t n = u.size(0);
  // one matrix product for each input capsule
  const Tensor votes = matmul(u.transpose(0, 1), weight).reshape({in, n, out_capsules, size});
  return dynamic_routing(
      votes.transpose(0, 1),
      {.iterations = iterations, .detach_routing = detach_routing, .bias = bias});
}
BRAID_LAYER_CALL(Tensor, DigitCapsules, (const Tensor& u), (u))

std::string DigitCapsules::extra() const {
  if (!weight.defined()) return "moved from";
  return str(weight.size(0), ", ", weight.size(1), ", ", out_capsules, ", ",
             weight.size(2) / out_capsules, ", iterations=", iterations,
             detach_routing ? ", detach_routing=true" : "", bias.defined() ? ", bias=true" : "");
}

BRAID_FIELDS_DEFINED(PrimaryCapsules, conv)
BRAID_FIELDS_DEFINED(DigitCapsules, weight, bias)

}  // namespace braid::nn
