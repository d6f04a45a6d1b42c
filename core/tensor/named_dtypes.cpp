// Functions that compute in a dtype that the caller names. An Autocast does not choose another one.
#include <braid/core/autocast.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>
#include <braid/core/ops/statistics.hpp>

namespace braid {
namespace {
/// Calls f(x.to(dtype)) without Autocast. The result has that dtype.
template <class F> Tensor named(const Tensor& x, DType dtype, F f) {
  const Autocast off(DType::bfloat16, false);
  return f(x.to(dtype)).to(dtype);
}
}  // namespace

Tensor sum(const Tensor& x, const IntList& dims, bool keepdim, DType dtype) {
  return named(x, dtype, [&](const Tensor& t) { return sum(t, dims, keepdim); });
}
Tensor sum(const Tensor& x, DType dtype) { return sum(x, {}, false, dtype); }
Tensor norm(const Tensor& x, double p, const IntList& dims, bool keepdim, DType dtype) {
  return named(x, dtype, [&](const Tensor& t) { return norm(t, p, dims, keepdim); });
}
Tensor norm(const Tensor& x, double p, DType dtype) { return norm(x, p, {}, false, dtype); }
Tensor softmax(const Tensor& x, std::int64_t dim, DType dtype) {
  return named(x, dtype, [&](const Tensor& t) { return softmax(t, dim); });
}
Tensor log_softmax(const Tensor& x, std::int64_t dim, DType dtype) {
  return named(x, dtype, [&](const Tensor& t) { return log_softmax(t, dim); });
}

}  // namespace braid
