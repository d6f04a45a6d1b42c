#include <braid/core/ops/sort.hpp>

#include <braid/core/internal/kernel_args/searchsorted.hpp>
#include <braid/core/internal/kernel_args/sort.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// Returns the first k elements of each sorted row. The gradient goes to the positions that they
/// came from, which are all different.
ValuesIndices first_of_rows(const char* op, const Tensor& a, std::int64_t k, bool descending) {
  const Tensor x = a.contiguous();
  const std::int64_t n = x.shape().back();
  Shape shape = x.shape();
  shape[shape.rank() - 1] = k;
  ValuesIndices y{make_tensor(shape, x.dtype(), x.device()),
                  make_tensor(shape, DType::int64, x.device())};
  if (y.values.numel())
    launch(op, x.device(), &KernelTable::sort,
           SortArgs{x.dtype(), x.id()->data(), y.values.id()->data(),
                    static_cast<std::int64_t*>(y.indices.id()->data()), x.numel() / n, n, k,
                    descending});
  if (!needs_grad({x})) return y;
  y.values =
      record(op, {x}, y.values,
             [saved = SavedTensor(y.indices), whole = x.shape()](const Tensor& dy) -> Grads {
               return {ops::scattered("scatter", ops::filled(whole, 0, dy.dtype(), dy.device()), -1,
                                      saved.get(), dy, false)};
             });
  return y;
}

ValuesIndices own(const Tensor& values, const Tensor& indices) {
  return {ops::own_result(values), ops::own_result(indices)};
}

/// The same along any dim, which is moved to the end and back.
ValuesIndices first_of(const char* op, const Tensor& x, std::int64_t k, int d, bool descending) {
  if (x.dim() == 0) {
    // also for k = 0, as in PyTorch: a scalar gives a scalar
    const ValuesIndices y = first_of_rows(op, x.reshape({1}), 1, descending);
    return own(y.values.reshape({}), y.indices.reshape({}));
  }
  if (d == x.dim() - 1) return first_of_rows(op, x, k, descending);
  const ValuesIndices y = first_of_rows(op, x.transpose(d, -1), k, descending);
  return own(y.values.transpose(d, -1), y.indices.transpose(d, -1));
}

std::int64_t size_of_dim(const Tensor& x, int d) { return x.dim() == 0 ? 1 : x.shape()[d]; }

/// Returns the elements at `index`, which an argmax or argmin with keepdim has returned.
ValuesIndices chosen(const char* op, const Tensor& x, std::int64_t dim, bool keepdim,
                     const Tensor& index) {
  const Tensor values = ops::gathered(op, x, dim, index);
  if (keepdim || x.dim() == 0) return {values, index};
  return own(values.squeeze(dim), index.squeeze(dim));
}

}  // namespace

ValuesIndices sort(const Tensor& x, std::int64_t dim, bool descending) {
  const int d = wrap_dim("sort", dim, x.dim());
  return first_of("sort", x, size_of_dim(x, d), d, descending);
}

Tensor argsort(const Tensor& x, std::int64_t dim, bool descending) {
  const int d = wrap_dim("argsort", dim, x.dim());
  return first_of("argsort", x.detach(), size_of_dim(x, d), d, descending).indices;
}

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool out_int32, bool right,
                    std::optional<std::string_view> side) {
  const DType dtype = sorted_sequence.dtype();
  if (side && *side != "left" && *side != "right")
    throw ArgumentError(
        str("searchsorted: expected the side \"left\" or \"right\", got \"", *side, '"'));
  if (side == "left" && right)
    throw ArgumentError("searchsorted: expected one side, got \"left\" and right = true");
  if (out_int32 && sorted_sequence.dim() > 0 && sorted_sequence.size(-1) > INT32_MAX)
    throw ArgumentError(str("searchsorted: expected a sequence of at most ", INT32_MAX,
                            " elements for an int32 result, got ", sorted_sequence.size(-1)));
  if (sorted_sequence.device() != values.device())
    throw DeviceError(str("searchsorted: expected tensors on one device, got ",
                          sorted_sequence.device(), " and ", values.device()));
  if (dtype == DType::bool_) throw DTypeError("searchsorted: expected numbers, got bool");
  if (values.dtype() != dtype)
    throw DTypeError(
        str("searchsorted: expected values of dtype ", dtype, ", got ", values.dtype()));
  const int rank = sorted_sequence.dim();
  bool fits = rank == 1 || (rank > 1 && rank == values.dim());
  for (int d = 0; fits && rank > 1 && d < rank - 1; ++d)
    fits = sorted_sequence.shape()[d] == values.shape()[d];
  if (!fits)
    throw ShapeError(
        str("searchsorted: expected a sequence of rank 1, or one with the leading sizes "
            "of the values ",
            values.shape(), ", got ", sorted_sequence.shape()));
  const Tensor sequence = sorted_sequence.contiguous(), wanted = values.contiguous();
  Tensor y = make_tensor(wanted.shape(), DType::int64, wanted.device());
  const std::int64_t n = sequence.shape().back(), all = y.numel(),
                     m = rank == 1 ? all : wanted.shape().back();
  if (all != 0)
    launch("searchsorted", y.device(), &KernelTable::searchsorted,
           SearchsortedArgs{dtype, sequence.id()->data(), wanted.id()->data(),
                            static_cast<std::int64_t*>(y.id()->data()), all / m, m, n,
                            rank == 1 ? 0 : n, right || side == "right"});
  return out_int32 ? y.to(DType::int32) : y;
}

ValuesIndices topk(const Tensor& x, std::int64_t k, std::int64_t dim, bool largest,
                   bool /*sorted*/) {
  const int d = wrap_dim("topk", dim, x.dim());
  if (k < 0 || k > size_of_dim(x, d))
    throw ArgumentError(str("topk: expected k in [0, ", size_of_dim(x, d), "] for dim ", d, " of ",
                            x.shape(), ", got ", k));
  return first_of("topk", x, k, d, largest);
}

ValuesIndices max(const Tensor& x, std::int64_t dim, bool keepdim) {
  const int d = wrap_dim("max", dim, x.dim());
  if (size_of_dim(x, d) == 0)
    throw ShapeError(
        str("max: expected at least one element to choose from, got shape ", x.shape()));
  return chosen("max", x, d, keepdim, argmax(x, d, true));
}

ValuesIndices min(const Tensor& x, std::int64_t dim, bool keepdim) {
  const int d = wrap_dim("min", dim, x.dim());
  if (size_of_dim(x, d) == 0)
    throw ShapeError(
        str("min: expected at least one element to choose from, got shape ", x.shape()));
  return chosen("min", x, d, keepdim, argmin(x, d, true));
}

}  // namespace braid
