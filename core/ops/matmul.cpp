// Matrix products: checks and layouts. KernelTable::gemm and gemm_pair do the arithmetic. The
// products of specific ranks (mm, bmm, mv, dot) and tensordot are checks, then matmul.
#include <braid/core/ops/matmul.hpp>

#include <algorithm>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "matmul.hpp"

namespace braid {
namespace ops {
namespace {

/// The batch dims that one launch covers: from the innermost outwards, as long as one stride of
/// each operand steps through all of them.
struct Batch {
  Batch(const Tensor& a, const Tensor& b, const Shape& sizes) {
    for (outer = a.dim() - 2; outer > 0; --outer) {
      const int d = outer - 1;
      const std::int64_t step_a = a.strides()[d], step_b = b.strides()[d];
      if (sizes[d] == 1) continue;
      if (n == 1) by_a = step_a, by_b = step_b;
      else if (step_a != by_a * n || step_b != by_b * n) break;
      n *= sizes[d];
    }
    for (int d = 0; d < outer; ++d) launches *= sizes[d];
  }
  int outer = 0;  // the dims before this one are not covered
  std::int64_t n = 1, by_a = 0, by_b = 0, launches = 1;
};

/// A tensor whose last two dims suit the kernel: one of them has stride 1. Copies it if necessary.
struct Matrix {
  explicit Matrix(const Tensor& t) : held(t) {
    if (!take()) copy();
  }
  /// Makes it dense. The dim that has stride 1 keeps it.
  void copy() {
    const NoGrad guard;
    held = transposed ? held.transpose(-2, -1).contiguous().transpose(-2, -1) : held.contiguous();
    (void)take();
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

// A GPU copies this much in the time that the start of a kernel takes: 2 microseconds at the 4.3
// TB/s of an H200, read and written.
constexpr std::int64_t kCopiedPerLaunch = 4 * 1024 * 1024;

bool repeats(const Tensor& t) {
  for (int d = 0; d < t.dim(); ++d)
    if (t.strides()[d] == 0 && t.shape()[d] > 1) return true;
  return false;
}

/// Makes the product c of x and y, which takes several launches, one launch: copies the operands
/// whose batch dims no single stride steps through, such as heads that view and transpose have
/// split off. Does nothing if the copies would take longer than the launches that they save, or if
/// a copy of repeated elements would have more of them than c.
void join_batch(Matrix& x, Matrix& y, const Tensor& c, std::int64_t launches) {
  Matrix* copied[2];
  int count = 0;
  std::int64_t elements = 0;
  for (Matrix* const m : {&x, &y}) {
    const Tensor& t = m->held;
    if (Batch(t, t, t.shape()).launches == 1) continue;
    if (repeats(t) && t.numel() > c.numel()) return;
    copied[count++] = m;
    elements += t.numel();
  }
  const std::int64_t bytes = elements * static_cast<std::int64_t>(size_of(c.dtype()));
  if (bytes > (launches - 1 - count) * kCopiedPerLaunch) return;
  for (int i = 0; i < count; ++i) copied[i]->copy();
}

Shape shape_of(const Tensor& a, bool ta, const Tensor& b, bool tb) {
  const int r = a.dim();
  Shape shape = a.shape();
  shape[r - 2] = a.shape()[ta ? r - 1 : r - 2];
  shape[r - 1] = b.shape()[tb ? r - 2 : r - 1];
  return shape;
}

}  // namespace

void check_matmul(const char* op, const Tensor& a, const Tensor& b) {
  (void)detail::defined(a.impl());
  (void)detail::defined(b.impl());
  ops::check_device(op, a, b);
  ops::check_dtype(op, a, b);
  if (a.dtype() == DType::bool_ || a.dtype() == DType::uint8)
    throw DTypeError(str(op, ": expected floating point, int32 or int64, got ", a.dtype()));
}

Product::Product(const char* op, const Tensor& a, bool ta, const Tensor& b, bool tb,
                 const Tensor& bias, bool sum_a)
    : op_(op),
      // allocated before any operand is copied, so that an impossible result fails first
      c_(make_tensor(shape_of(a, ta, b, tb), a.dtype(), a.device())) {
  if (sum_a) sum_a_ = make_tensor({c_.shape()[0]}, a.dtype(), a.device());
  if (c_.numel() == 0) return;
  const int r = a.dim();
  Matrix x(a), y(b);
  Batch batch(x.held, y.held, c_.shape());
  if (batch.launches > 1 && c_.device().type() != DeviceType::cpu) {
    join_batch(x, y, c_, batch.launches);
    batch = Batch(x.held, y.held, c_.shape());
  }
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
  args_.sum_a = sum_a ? sum_a_.id()->data() : nullptr;
  args_.batch_c = args_.m * args_.n;
  args_.batch = batch.n, args_.batch_a = batch.by_a, args_.batch_b = batch.by_b;
  outer_ = batch.outer, launches_ = batch.launches;
}

void Product::then(Epilogue epilogue, const Tensor& other) {
  args_.epilogue = epilogue;
  other_ = other;
  args_.other = other.defined() ? other.id()->data() : nullptr;
}

Tensor Product::result(const Shape& shape) const {
  if (shape == c_.shape()) return c_;
  return make_tensor_on(c_.storage(), shape, contiguous_strides(shape), 0, c_.dtype());
}

void Product::launch() const {
  if (c_.numel() == 0) return;
  const auto size = static_cast<std::int64_t>(size_of(args_.dtype));
  GemmArgs args = args_;
  for (std::int64_t i = 0; i < launches_; ++i) {
    std::int64_t at_a = 0, at_b = 0, rest = i;
    for (int d = outer_ - 1; d >= 0; --d) {
      at_a += rest % c_.shape()[d] * x_.strides()[d];
      at_b += rest % c_.shape()[d] * y_.strides()[d];
      rest /= c_.shape()[d];
    }
    // an operand without elements may have no memory
    if (args_.a) args.a = static_cast<const char*>(args_.a) + at_a * size;
    if (args_.b) args.b = static_cast<const char*>(args_.b) + at_b * size;
    args.c = static_cast<char*>(args_.c) + i * args.batch * args.batch_c * size;
    if (args_.other)
      args.other = static_cast<char*>(args_.other) + i * args.batch * args.batch_c * size;
    braid::launch(op_, c_.device(), &KernelTable::gemm, args);
  }
}

void Product::launch_pair(const Product& first, const Product& second) {
  braid::launch(second.op_, first.c_.device(), &KernelTable::gemm_pair,
                GemmPairArgs{first.args_, second.args_});
}

Tensor product(const char* op, const Tensor& a, bool ta, const Tensor& b, bool tb,
               const Tensor& bias) {
  const Product made(op, a, ta, b, tb, bias);
  made.launch();
  return made.result();
}

Tensor recorded_product(const Tensor& a, bool ta, const Tensor& b, bool tb) {
  Tensor c = product("matmul", a, ta, b, tb);
  if (!needs_grad({a, b})) return c;
  return record("matmul", {a, b}, c,
                [sa = saved_for({b}, a), sb = saved_for({a}, b), ta, tb](const Tensor& dc,
                                                                         Needs needs) -> Grads {
                  Tensor da, db;
                  if (needs[0])
                    da = ta ? recorded_product(sb.get(), tb, dc, true)
                            : recorded_product(dc, false, sb.get(), !tb);
                  if (needs[1])
                    db = tb ? recorded_product(dc, true, sa.get(), ta)
                            : recorded_product(sa.get(), !ta, dc, false);
                  return {da, db};
                });
}

}  // namespace ops

namespace {

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

/// Throws as check_matmul, and for other ranks.
void check_operands(const char* op, const Tensor& a, const Tensor& b, int rank_a, int rank_b) {
  ops::check_matmul(op, a, b);
  if (a.dim() != rank_a || b.dim() != rank_b)
    throw ShapeError(str(op, ": expected tensors of rank ", rank_a, " and ", rank_b, ", got ",
                         a.shape(), " and ", b.shape()));
}
void check_inner(const char* op, const Tensor& a, const Tensor& b, std::int64_t inner_a,
                 std::int64_t inner_b) {
  if (inner_a != inner_b)
    throw ShapeError(
        str(op, ": expected equal inner dimensions, got ", a.shape(), " and ", b.shape()));
}

/// The wanted dims of x as indices >= 0. others() returns the remaining dims.
struct Dims {
  Shape dims;
  bool taken[kMaxRank] = {};
  Dims(const char* name, const Tensor& x, const IntList& wanted) {
    for (const std::int64_t d : wanted) {
      const int at = wrap_dim("tensordot", d, x.dim());
      if (taken[at])
        throw ArgumentError(
            str("tensordot: expected each dim of ", name, " once, got ", d, " again"));
      taken[at] = true;
      dims.push_back(at);
    }
  }
  [[nodiscard]] Shape others(const Tensor& x) const {
    Shape rest;
    for (int d = 0; d < x.dim(); ++d)
      if (!taken[d]) rest.push_back(d);
    return rest;
  }
};
Shape sizes_of(const Tensor& x, const Shape& dims) {
  Shape sizes;
  for (const std::int64_t d : dims) sizes.push_back(x.shape()[static_cast<int>(d)]);
  return sizes;
}
Shape joined(const Shape& a, const Shape& b) {
  Shape all = a;
  for (const std::int64_t d : b) all.push_back(d);
  return all;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return matmul(low(a), low(b));
  }
  ops::check_matmul("matmul", a, b);
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
    c = ops::recorded_product(x.reshape({rows, inner}), false, y, false).reshape(shape);
  } else if (x.dim() == 2 && y.dim() == 2) {
    c = ops::recorded_product(x, false, y, false);
  } else {
    const Shape batch = broadcast_shapes("matmul", batch_of(x), batch_of(y));
    c = ops::recorded_product(expand_batch(x, batch), false, expand_batch(y, batch), false);
  }
  if (b.dim() == 1) c = c.squeeze(-1);
  if (a.dim() == 1) c = c.squeeze(b.dim() == 1 ? -1 : -2);
  return ops::own_result(c);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return mm(low(a), low(b));
  }
  check_operands("mm", a, b, 2, 2);
  check_inner("mm", a, b, a.shape()[1], b.shape()[0]);
  return matmul(a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return bmm(low(a), low(b));
  }
  check_operands("bmm", a, b, 3, 3);
  if (a.shape()[0] != b.shape()[0])
    throw ShapeError(str("bmm: expected batches of one size, got ", a.shape(), " and ", b.shape()));
  check_inner("bmm", a, b, a.shape()[2], b.shape()[1]);
  return matmul(a, b);
}

Tensor mv(const Tensor& a, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return mv(low(a), low(b));
  }
  check_operands("mv", a, b, 2, 1);
  check_inner("mv", a, b, a.shape()[1], b.shape()[0]);
  return matmul(a, b);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return dot(low(a), low(b));
  }
  check_operands("dot", a, b, 1, 1);
  check_inner("dot", a, b, a.shape()[0], b.shape()[0]);
  return matmul(a, b);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  ops::check_device("outer", a, b);
  if (a.dim() != 1 || b.dim() != 1)
    throw ShapeError(str("outer: expected two vectors, got ", a.shape(), " and ", b.shape()));
  return mul(a.unsqueeze(1), b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const IntList& dims_a, const IntList& dims_b) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return tensordot(low(a), low(b), dims_a, dims_b);
  }
  check_operands("tensordot", a, b, a.dim(), b.dim());
  if (dims_a.size() != dims_b.size())
    throw ArgumentError(
        str("tensordot: expected as many dims of a as of b, got ", dims_a, " and ", dims_b));
  const Dims of_a("a", a, dims_a), of_b("b", b, dims_b);
  Tensor x = a, y = b;
  for (int i = 0; i < of_a.dims.rank(); ++i) {
    const std::int64_t da = of_a.dims[i], db = of_b.dims[i], n = a.shape()[static_cast<int>(da)],
                       m = b.shape()[static_cast<int>(db)];
    if (n == m) continue;
    if (n == 1) y = y.sum({db}, true).to(b.dtype());  // a sum of int32 is int64
    else if (m == 1) x = x.sum({da}, true).to(a.dtype());
    else
      throw ShapeError(str("tensordot: expected equal sizes of dim ", da, " of a and dim ", db,
                           " of b, got ", a.shape(), " and ", b.shape()));
  }
  const Shape left = of_a.others(x), right = of_b.others(y), rows = sizes_of(x, left),
              columns = sizes_of(y, right);
  const std::int64_t inner = sizes_of(x, of_a.dims).numel();
  const Tensor product =
      matmul(x.permute(joined(left, of_a.dims)).reshape({rows.numel(), inner}),
             y.permute(joined(of_b.dims, right)).reshape({inner, columns.numel()}));
  return ops::own_result(product.reshape(joined(rows, columns)));
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t dims) {
  if (detail::autocasting()) [[unlikely]] {
    const detail::Autocasted low(detail::Precision::low);
    return tensordot(low(a), low(b), dims);
  }
  if (dims < 0) throw ArgumentError(str("tensordot: expected dims >= 0, got ", dims));
  if (dims > a.dim() || dims > b.dim())
    throw ShapeError(str("tensordot: expected tensors of rank >= ", dims, ", got ", a.shape(),
                         " and ", b.shape()));
  Shape last, first;
  for (std::int64_t d = 0; d < dims; ++d) {
    last.push_back(a.dim() - dims + d);
    first.push_back(d);
  }
  return tensordot(a, b, last, first);
}

}  // namespace braid
