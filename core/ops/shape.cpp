// Functions that return views: split, chunk, unbind, movedim, unflatten and others.
#include <braid/core/ops/shape.hpp>

#include <algorithm>

#include <braid/core/ops/join.hpp>

#include "autograd/view_history.hpp"
#include "common.hpp"

namespace braid {
namespace {

int dim_of_parts(const char* op, const Tensor& x, std::int64_t dim) {
  if (x.dim() == 0) throw ShapeError(str(op, ": expected a tensor with dimensions, got a scalar"));
  return wrap_dim(op, dim, x.dim());
}

/// One of several views of x that cover it together.
Tensor part(const Tensor& x, int d, std::int64_t start, std::int64_t length) {
  Tensor y = x.narrow(d, start, length);
  detail::be_one_of_many(y);
  return y;
}

std::vector<Tensor> parts_of(const char* op, const Tensor& x, std::int64_t size, int d) {
  const std::int64_t n = x.shape()[d];
  return ops::listed(op, n == 0 ? 1 : (n - 1) / size + 1, [&](std::int64_t i) {
    return part(x, d, i * size, std::min(size, n - i * size));
  });
}

}  // namespace

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim) {
  const int d = dim_of_parts("split", x, dim);
  if (size < 1) throw ArgumentError(str("split: expected a size >= 1, got ", size));
  return parts_of("split", x, std::min(size, std::max<std::int64_t>(x.shape()[d], 1)), d);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim) {
  const int d = dim_of_parts("chunk", x, dim);
  if (chunks < 1) throw ArgumentError(str("chunk: expected at least one chunk, got ", chunks));
  const std::int64_t n = x.shape()[d];
  if (n == 0) return ops::listed("chunk", chunks, [&](std::int64_t) { return part(x, d, 0, 0); });
  return parts_of("chunk", x, (n - 1) / chunks + 1, d);
}

std::vector<Tensor> unbind(const Tensor& x, std::int64_t dim) {
  const int d = dim_of_parts("unbind", x, dim);
  return ops::listed("unbind", x.shape()[d], [&](std::int64_t i) {
    Tensor y = x.select(d, i);
    detail::be_one_of_many(y);
    return y;
  });
}

Tensor movedim(const Tensor& x, const IntList& source, const IntList& destination) {
  const int rank = x.dim();
  if (source.size() != destination.size())
    throw ShapeError(
        str("movedim: expected lists of one length, got ", source, " and ", destination));
  Shape order = Shape::filled(rank, -1);
  bool taken[kMaxRank] = {};
  for (std::size_t i = 0; i < source.size(); ++i) {
    const int from = wrap_dim("movedim", source[i], rank),
              to = wrap_dim("movedim", destination[i], rank);
    if (rank == 0) continue;
    if (taken[from] || order[to] >= 0)
      throw ShapeError(str("movedim: expected each dim once, got ", source, " and ", destination));
    taken[from] = true;
    order[to] = from;
  }
  int next = 0;
  for (int d = 0; d < rank; ++d) {
    if (order[d] >= 0) continue;
    while (taken[next]) ++next;
    order[d] = next++;
  }
  return x.permute(order);
}
Tensor movedim(const Tensor& x, std::int64_t source, std::int64_t destination) {
  return movedim(x, IntList(source), IntList(destination));
}

Tensor swapaxes(const Tensor& x, std::int64_t a, std::int64_t b) {
  (void)wrap_dim("swapaxes", a, x.dim());
  (void)wrap_dim("swapaxes", b, x.dim());
  return x.transpose(a, b);
}

Tensor unflatten(const Tensor& x, std::int64_t dim, const Shape& sizes) {
  const int d = dim_of_parts("unflatten", x, dim);
  if (sizes.empty()) throw ShapeError("unflatten: expected at least one size, got none");
  std::int64_t known = 1;
  int open = 0;
  for (const std::int64_t s : sizes) {
    if (s < -1 || (s >= 0 && __builtin_mul_overflow(known, s, &known)))
      throw ShapeError(str("unflatten: expected sizes >= 0, and one -1 at most, got ", sizes));
    open += s == -1;
  }
  const std::int64_t n = x.shape()[d];
  if (open > 1 || (open == 0 ? known != n : known == 0 || n % known != 0))
    throw ShapeError(str("unflatten: expected sizes whose product is ", n, " (dim ", d, " of ",
                         x.shape(), "), got ", sizes));
  Shape shape = x.shape();
  shape.erase(d);
  for (int i = 0; i < sizes.rank(); ++i) shape.insert(d + i, sizes[i] == -1 ? n / known : sizes[i]);
  return x.view(shape);
}

Tensor expand_as(const Tensor& x, const Tensor& other) { return x.expand(other.shape()); }
Tensor view_as(const Tensor& x, const Tensor& other) { return x.view(other.shape()); }
Tensor reshape_as(const Tensor& x, const Tensor& other) { return x.reshape(other.shape()); }

Tensor broadcast_to(const Tensor& x, const Shape& shape) { return x.expand(shape); }

}  // namespace braid
