// Matrix products: checks and layouts. KernelTable::gemm and gemm_pair do the arithmetic.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <braid/core/kernel_args/gemm.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// A tensor whose last two dims suit the kernel: one of them has stride 1. Copies it if necessary.
struct Matrix {
  explicit Matrix(const Tensor& t) : held(t) {
    if (!take()) {
      held = t.contiguous();
      (void)take();
    }
  }
  Tensor held;
  bool transposed = false;
  std::int64_t ld = 0;

 private:
  bool take() {
    const int r = held.dim();
    const std::int64_t rows = held.shape()[r - 2], columns = held.shape()[r - 1],
                       by_row = held.strides()[r - 2], by_column = held.strides()[r - 1];
    if ((by_column == 1 || columns == 1) && (by_row >= columns || rows == 1)) {
      transposed = false;
      ld = std::max<std::int64_t>({1, columns, rows == 1 ? 0 : by_row});
      return true;
    }
    if ((by_row == 1 || rows == 1) && (by_column >= rows || columns == 1)) {
      transposed = true;
      ld = std::max<std::int64_t>({1, rows, columns == 1 ? 0 : by_column});
      return true;
    }
    return false;
  }
};

void check_matmul(const char* op, const Tensor& a, const Tensor& b) {
  (void)detail::defined(a.impl());
  (void)detail::defined(b.impl());
  ops::check_device(op, a, b);
  ops::check_dtype(op, a, b);
  if (a.dtype() == DType::bool_ || a.dtype() == DType::uint8)
    throw DTypeError(str(op, ": expected floating point, int32 or int64, got ", a.dtype()));
}

/// The product op(a) op(b) of the last two dims; op transposes if ta or tb. Requires equal batch
/// dims. bias: [n] or undefined. sum_a: also sums the rows of op(a); requires matrices whose
/// product is not empty. Keeps the memory that the kernel reads alive until the kernel is queued.
class Product {
 public:
  Product(const char* op, const Tensor& a, bool ta, const Tensor& b, bool tb, const Tensor& bias,
          Activation activation, bool sum_a)
      : op_(op),
        // allocated before any operand is copied, so that an impossible result fails first
        c_(make_tensor(shape_of(a, ta, b, tb), a.dtype(), a.device())) {
    if (sum_a) sum_a_ = make_tensor({c_.shape()[0]}, a.dtype(), a.device());
    if (c_.numel() == 0) return;
    const int r = a.dim();
    const Matrix x(a), y(b);
    x_ = x.held;
    y_ = y.held;
    if (bias.defined()) bias_ = bias.contiguous();
    args_.dtype = a.dtype();
    args_.m = c_.shape()[r - 2];
    args_.n = c_.shape()[r - 1];
    args_.k = a.shape()[ta ? r - 2 : r - 1];
    args_.ta = x.transposed != ta;
    args_.tb = y.transposed != tb;
    args_.accumulate = false;
    args_.lda = x.ld;
    args_.ldb = y.ld;
    args_.ldc = args_.n;
    args_.a = x_.id()->data();
    args_.b = y_.id()->data();
    args_.c = c_.id()->data();
    args_.bias = bias_.defined() ? bias_.id()->data() : nullptr;
    args_.activation = activation;
    args_.sum_a = sum_a ? sum_a_.id()->data() : nullptr;
    args_.batch = r > 2 ? c_.shape()[r - 3] : 1;
    args_.batch_a = r > 2 ? x_.strides()[r - 3] : 0;
    args_.batch_b = r > 2 ? y_.strides()[r - 3] : 0;
    args_.batch_c = args_.m * args_.n;
  }

  /// The kernel handles the innermost batch dim. This function loops over the outer ones.
  void launch() const {
    if (c_.numel() == 0) return;
    const int r = c_.dim();
    std::int64_t outer = 1;
    for (int d = 0; d < r - 3; ++d) outer *= c_.shape()[d];
    const auto size = static_cast<std::int64_t>(size_of(args_.dtype));
    GemmArgs args = args_;
    for (std::int64_t i = 0; i < outer; ++i) {
      std::int64_t at_a = 0, at_b = 0, rest = i;
      for (int d = r - 4; d >= 0; --d) {
        at_a += rest % c_.shape()[d] * x_.strides()[d];
        at_b += rest % c_.shape()[d] * y_.strides()[d];
        rest /= c_.shape()[d];
      }
      // an operand without elements may have no memory
      if (args_.a) args.a = static_cast<const char*>(args_.a) + at_a * size;
      if (args_.b) args.b = static_cast<const char*>(args_.b) + at_b * size;
      args.c = static_cast<char*>(args_.c) + i * args.batch * args.batch_c * size;
      braid::launch(op_, c_.device(), &KernelTable::gemm, args);
    }
  }

  /// Computes two products of matrices, neither of them empty, with one kernel call.
  static void launch_pair(const Product& first, const Product& second) {
    braid::launch(second.op_, first.c_.device(), &KernelTable::gemm_pair,
                  GemmPairArgs{first.args_, second.args_});
  }

  [[nodiscard]] const Tensor& result() const { return c_; }
  [[nodiscard]] const Tensor& sum_a() const { return sum_a_; }

 private:
  static Shape shape_of(const Tensor& a, bool ta, const Tensor& b, bool tb) {
    const int r = a.dim();
    Shape shape = a.shape();
    shape[r - 2] = a.shape()[ta ? r - 1 : r - 2];
    shape[r - 1] = b.shape()[tb ? r - 2 : r - 1];
    return shape;
  }
  const char* op_;
  Tensor c_, sum_a_, x_, y_, bias_;
  GemmArgs args_{};
};

/// Computes a product. Not recorded.
Tensor product(const char* op, const Tensor& a, bool ta, const Tensor& b, bool tb,
               const Tensor& bias = {}, Activation activation = Activation::none) {
  const Product made(op, a, ta, b, tb, bias, activation, false);
  made.launch();
  return made.result();
}

/// A recorded product. Each gradient is again a product, of the two other tensors, transposed as
/// needed. So no views are created.
Tensor batched(const Tensor& a, bool ta, const Tensor& b, bool tb) {
  Tensor c = product("matmul", a, ta, b, tb);
  if (!needs_grad({a, b})) return c;
  return record(
      "matmul", {a, b}, c,
      [sa = SavedTensor(a), sb = SavedTensor(b), ta, tb](const Tensor& dc, Needs needs) -> Grads {
        Tensor da, db;
        if (needs[0]) da = ta ? batched(sb.get(), tb, dc, true) : batched(dc, false, sb.get(), !tb);
        if (needs[1]) db = tb ? batched(dc, true, sa.get(), ta) : batched(sa.get(), !ta, dc, false);
        return {da, db};
      });
}

Shape batch_of(const Tensor& t) {
  Shape s;
  for (int i = 0; i + 2 < t.dim(); ++i) s.push_back(t.shape()[i]);
  return s;
}

Tensor expand_batch(const Tensor& t, const Shape& batch) {
  Shape s = batch;
  s.push_back(t.shape()[t.dim() - 2]);
  s.push_back(t.shape()[t.dim() - 1]);
  return t.expand(s);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check_matmul("matmul", a, b);
  if (a.dim() == 0 || b.dim() == 0)
    throw ShapeError(
        str("matmul: expected tensors of rank >= 1, got ", a.shape(), " and ", b.shape()));
  const std::int64_t inner = a.shape().back(), other = b.shape()[b.dim() == 1 ? 0 : b.dim() - 2];
  if (inner != other)
    throw ShapeError(str("matmul: inner dimensions differ: expected b.shape[",
                         b.dim() == 1 ? 0 : b.dim() - 2, "] == ", inner, " (a is ", a.shape(),
                         "), got b ", b.shape()));
  const Tensor x = a.dim() == 1 ? a.unsqueeze(0) : a, y = b.dim() == 1 ? b.unsqueeze(1) : b;
  Tensor c;
  if (x.dim() > 2 && y.dim() == 2) {  // one large product instead of many small ones
    Shape shape = x.shape();
    shape[x.dim() - 1] = 1;
    const std::int64_t rows = shape.numel();
    shape[x.dim() - 1] = y.shape()[1];
    c = batched(x.reshape({rows, inner}), false, y, false).reshape(shape);
  } else if (x.dim() == 2 && y.dim() == 2) {
    c = batched(x, false, y, false);
  } else {
    const Shape batch = broadcast_shapes("matmul", batch_of(x), batch_of(y));
    c = batched(expand_batch(x, batch), false, expand_batch(y, batch), false);
  }
  if (b.dim() == 1) c = c.squeeze(-1);
  if (a.dim() == 1) c = c.squeeze(b.dim() == 1 ? -1 : -2);
  return c;
}

namespace {

/// Returns {dyᵀ x, Σ_rows dy}, neither of them empty, from one pass over dy. Recorded.
std::pair<Tensor, Tensor> weight_and_bias_grads(const Tensor& dy, const Tensor& x) {
  const Product made("linear_backward", dy, true, x, false, {}, Activation::none, true);
  made.launch();
  if (!needs_grad({dy, x})) return {made.result(), made.sum_a()};
  const std::array<Tensor, 2> inputs{dy, x}, outputs{made.result(), made.sum_a()};
  record_many("linear_backward", inputs, outputs, dy.device(),
              [sdy = SavedTensor(dy), sx = SavedTensor(x)](std::span<const Tensor> g,
                                                           Needs needs) -> Grads {
                Tensor ddy, dx;
                if (needs[0])
                  ddy = g[0].defined() ? linear(sx.get(), g[0], g[1])
                                       : g[1].unsqueeze(0).expand(sdy.get().shape());
                if (needs[1] && g[0].defined()) dx = batched(sdy.get(), false, g[0], false);
                return {ddy, dx};
              });
  return {outputs[0], outputs[1]};
}

/// Returns the gradients of z = x wᵀ + b. One pass over dz computes dW and db. dx and dW are
/// computed together, unless they have to be differentiated again.
Grads linear_grads(const Tensor& dz, const SavedTensor& saved_x, const SavedTensor& saved_weight,
                   Needs needs) {
  Tensor x, weight, dx, dw, db;
  if (needs[0]) weight = saved_weight.get();
  if (needs[1]) x = saved_x.get();
  const bool sums = needs[1] && needs[2] && dz.shape()[1] > 0 && x.shape()[1] > 0;
  if (needs[0] && needs[1] && dz.numel() > 0 && x.numel() > 0 && !needs_grad({dz, x, weight})) {
    const Product input("linear_backward", dz, false, weight, false, {}, Activation::none, false);
    const Product other("linear_backward", dz, true, x, false, {}, Activation::none, sums);
    Product::launch_pair(input, other);
    dx = input.result(), dw = other.result(), db = other.sum_a();
  } else {
    if (needs[0]) dx = batched(dz, false, weight, false);
    if (sums) std::tie(dw, db) = weight_and_bias_grads(dz, x);
    else if (needs[1]) dw = batched(dz, true, x, false);
  }
  if (needs[2] && !db.defined()) db = sum(dz, {0});
  return {std::move(dx), std::move(dw), std::move(db)};
}

/// Computes y = activation(x wᵀ + b) for a matrix x. Recorded.
Tensor linear_rows(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   Activation activation) {
  Tensor y = product(op, x, false, weight, true, bias, activation);
  if (!needs_grad({x, weight, bias})) return y;
  if (activation == Activation::none)
    return record(
        op, {x, weight, bias}, y,
        [sx = SavedTensor(x), sw = SavedTensor(weight)](const Tensor& dy, Needs needs) -> Grads {
          return linear_grads(dy, sx, sw, needs);
        });
  return record(op, {x, weight, bias}, y,
                [sx = SavedTensor(x), sw = SavedTensor(weight), sy = SavedTensor::output(y)](
                    const Tensor& dy, Needs needs) -> Grads {
                  return linear_grads(ops::relu_backward(sy.get(), dy), sx, sw, needs);
                });
}

/// The same for x of any rank, whose leading dims become rows. Checks the operands.
Tensor linear_with(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                   Activation activation) {
  check_matmul(op, x, weight);
  if (weight.dim() != 2)
    throw ShapeError(str(op, ": expected weight [out, in], got ", weight.shape()));
  const std::int64_t in = weight.shape()[1], out = weight.shape()[0];
  if (x.dim() == 0 || x.shape().back() != in)
    throw ShapeError(
        str(op, ": expected x [.., ", in, "] for weight ", weight.shape(), ", got ", x.shape()));
  if (bias.defined()) {
    ops::check_device(op, x, bias);
    ops::check_dtype(op, x, bias);
    if (bias.shape() != Shape{out})
      throw ShapeError(str(op, ": expected bias [", out, "] for weight ", weight.shape(), ", got ",
                           bias.shape()));
  }
  if (x.dim() == 2) return linear_rows(op, x, weight, bias, activation);
  Shape shape = x.shape();
  shape[x.dim() - 1] = 1;
  const std::int64_t rows = shape.numel();
  shape[x.dim() - 1] = out;
  return linear_rows(op, x.reshape({rows, in}), weight, bias, activation).reshape(shape);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_with("linear", x, weight, bias, Activation::none);
}
Tensor linear_relu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear_with("linear_relu", x, weight, bias, Activation::relu);
}

}  // namespace braid
