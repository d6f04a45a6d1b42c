#include <braid/parallel/loss.hpp>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/shape.hpp>

namespace braid::parallel {

LossSum total(std::span<const LossSum> parts, Device device) {
  if (parts.empty()) throw ArgumentError("total: expected at least one part of a loss, got none");
  std::vector<Tensor> sums, counts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto add = [&](const Tensor& t, const char* what, std::vector<Tensor>& list) {
      if (!t.defined())
        throw ArgumentError(
            str("total: expected a ", what, " in every part, got none in part ", i));
      if (t.numel() != 1)
        throw ShapeError(
            str("total: expected a ", what, " of one element, got ", t.shape(), " in part ", i));
      list.push_back(t.to(device).reshape({1}));
    };
    add(parts[i].sum, "sum", sums);
    add(parts[i].count, "count", counts);
  }
  return {cat(sums).sum(), cat(counts).sum()};
}
LossSum total(const std::vector<LossSum>& parts, Device device) {
  return total(std::span<const LossSum>(parts), device);
}

Tensor weighted_mean(const Tensor& means, std::span<const std::int64_t> rows) {
  if (!is_floating(means.dtype()))
    throw DTypeError(str("weighted_mean: expected means of floating point, got ", means.dtype()));
  if (means.dim() != 1 || means.size(0) != static_cast<std::int64_t>(rows.size()))
    throw ShapeError(str("weighted_mean: expected means [", rows.size(),
                         "], one for each chunk, got ", means.shape()));
  double all = 0;
  for (const std::int64_t n : rows) {
    if (n < 0) throw ArgumentError(str("weighted_mean: expected rows >= 0, got ", n));
    all += static_cast<double>(n);
  }
  if (all == 0) throw ArgumentError("weighted_mean: expected rows in one chunk at least, got none");
  std::vector<double> shares;
  for (const std::int64_t n : rows) shares.push_back(static_cast<double>(n) / all);
  return (means * tensor(shares, {.device = means.device(), .dtype = means.dtype()})).sum();
}
Tensor weighted_mean(const Tensor& means, const std::vector<std::int64_t>& rows) {
  return weighted_mean(means, std::span<const std::int64_t>(rows));
}

}  // namespace braid::parallel
