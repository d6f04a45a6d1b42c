#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/kernel_args/optim.hpp>
#include <braid/core/internal/statistics_type.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/nn/optim/clip.hpp>

namespace braid::optim {
namespace {

std::vector<Tensor> gradients_of(const char* name, std::span<const Tensor> parameters) {
  std::vector<Tensor> list;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!parameters[i].defined())
      throw ArgumentError(
          str(name, ": expected defined parameters, got an undefined one at position ", i));
    if (const Tensor g = parameters[i].grad(); g.defined()) list.push_back(g.detach());
  }
  return list;
}

/// Tensors of one device and dtype, as the items of a kernel call.
struct List {
  Device device;
  DType dtype;
  std::vector<OptimItem> items;

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(items.size()); }
};
/// Each list has the tensors of one device and dtype, which must be contiguous.
std::vector<List> lists_of(std::span<const Tensor> tensors) {
  std::vector<List> lists;
  for (const Tensor& t : tensors) {
    auto found = std::ranges::find_if(lists, [&](const List& list) {
      return list.device == t.device() && list.dtype == t.dtype();
    });
    if (found == lists.end()) found = lists.insert(found, {t.device(), t.dtype(), {}});
    found->items.push_back({t.id()->data(), nullptr, nullptr, nullptr, t.numel()});
  }
  return lists;
}

/// The norm, and the factor if there is a max_norm.
GradClip norm_of(const char* name, const List& list, double p, std::optional<double> max_norm) {
  const FactoryOptions like{.device = list.device, .dtype = statistics_type(list.dtype)};
  const GradClip made{empty({}, like), max_norm ? empty({}, like) : Tensor()};
  launch(name, list.device, &KernelTable::total_norm,
         TotalNormArgs{list.dtype, list.items.data(), list.count(), p, made.norm.id()->data(),
                       max_norm.value_or(0), max_norm ? made.factor.id()->data() : nullptr});
  return made;
}

GradClip total_norm(const char* name, std::span<const Tensor> tensors, double p,
                    std::optional<double> max_norm, bool error_if_nonfinite) {
  if (max_norm && !(*max_norm >= 0))
    throw ArgumentError(str(name, ": expected max_norm >= 0, got ", *max_norm));
  if (!(p >= 0)) throw ArgumentError(str(name, ": expected norm_type >= 0, got ", p));
  const NoGrad guard;
  std::vector<Tensor> dense;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined())
      throw ArgumentError(
          str(name, ": expected defined tensors, got an undefined one at position ", i));
    if (!is_floating(tensors[i].dtype()))
      throw DTypeError(str(name, ": expected floating point tensors, got ", tensors[i].dtype(),
                           " at position ", i));
    dense.push_back(tensors[i].detach().contiguous());
  }
  if (dense.empty()) return {zeros({}), ones({})};
  const std::vector<List> lists = lists_of(dense);
  GradClip total;
  if (lists.size() == 1) {
    total = norm_of(name, lists[0], p, max_norm);
  } else {
    // The total norm is the norm of the norms; for p = 0 (the number of non-zeros) it is their sum.
    std::vector<Tensor> norms;
    for (const List& list : lists) {
      const Tensor norm = norm_of(name, list, p, {}).norm;
      norms.push_back(norms.empty() ? norm : norm.to(norms[0].device(), norms[0].dtype()));
    }
    const std::vector<Tensor> all{stack(norms)};
    total = norm_of(name, lists_of(all)[0], p == 0 ? 1 : p, max_norm);
  }
  if (error_if_nonfinite && !std::isfinite(total.norm.item<double>()))
    throw ArgumentError(str(name, ": expected a finite total norm of order ", p, ", got ",
                            total.norm.item<double>()));
  return total;
}

/// True if two of the tensors share memory: one kernel call must not change both.
bool share_memory(std::span<const Tensor> tensors) {
  std::vector<std::pair<const char*, const char*>> ranges;
  for (const Tensor& t : tensors) {
    if (t.numel() == 0) continue;
    const char* const begin = static_cast<const char*>(t.id()->data());
    ranges.emplace_back(begin, begin + t.numel() * static_cast<std::int64_t>(size_of(t.dtype())));
  }
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) return true;
  return false;
}

/// Multiplies tensors in place, in one kernel call for each device and dtype. Tensors that are not
/// contiguous or that share memory are multiplied one after the other.
void scale(const char* name, std::span<const Tensor> tensors, const Tensor& factor) {
  std::vector<Tensor> together, single;
  for (const Tensor& t : tensors) (t.is_contiguous() ? together : single).push_back(t);
  if (share_memory(together)) single.assign(tensors.begin(), tensors.end()), together.clear();
  const std::vector<List> lists = lists_of(together);
  std::vector<Tensor> factors, products;  // do everything that can fail first
  for (const List& list : lists)
    factors.push_back(factor.to(list.device, statistics_type(list.dtype)));
  for (const Tensor& t : single) {
    const DType wide = statistics_type(t.dtype());
    factors.push_back(factor.to(t.device(), wide));
    products.push_back(t.dtype() == wide ? t
                                         : empty(t.shape(), {.device = t.device(), .dtype = wide}));
  }
  for (std::size_t i = 0; i < lists.size(); ++i)
    launch(name, lists[i].device, &KernelTable::scale_list,
           ScaleListArgs{lists[i].dtype, lists[i].items.data(), lists[i].count(),
                         factors[i].id()->data()});
  for (const Tensor& t : together) t.impl()->storage->bump_version();
  for (std::size_t i = 0; i < single.size(); ++i) {
    const bool narrow = products[i].dtype() != single[i].dtype();
    if (narrow) products[i].copy_(single[i]);
    products[i].mul_(factors[lists.size() + i]);
    if (narrow) single[i].copy_(products[i]);
  }
}

}  // namespace

Tensor get_total_norm(std::span<const Tensor> tensors, double norm_type, bool error_if_nonfinite) {
  return total_norm("get_total_norm", tensors, norm_type, {}, error_if_nonfinite).norm;
}

GradClip clip_grad_norm(std::span<const Tensor> parameters, double max_norm, double norm_type,
                        bool error_if_nonfinite) {
  return total_norm("clip_grad_norm", gradients_of("clip_grad_norm", parameters), norm_type,
                    max_norm, error_if_nonfinite);
}

Tensor clip_grad_norm_(std::span<const Tensor> parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  const char* const name = "clip_grad_norm_";
  const std::vector<Tensor> gradients = gradients_of(name, parameters);
  const GradClip clip = total_norm(name, gradients, norm_type, max_norm, error_if_nonfinite);
  const NoGrad guard;
  scale(name, gradients, clip.factor);
  return clip.norm;
}

void clip_grad_value_(std::span<const Tensor> parameters, double clip_value) {
  if (!(clip_value >= 0))
    throw ArgumentError(str("clip_grad_value_: expected clip_value >= 0, got ", clip_value));
  const std::vector<Tensor> gradients = gradients_of("clip_grad_value_", parameters);
  const NoGrad guard;
  std::vector<Tensor> clipped;
  for (const Tensor& g : gradients) {
    const FactoryOptions like{.device = g.device(), .dtype = g.dtype()};
    clipped.push_back(minimum(maximum(g, full({}, -clip_value, like)), full({}, clip_value, like)));
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i].copy_(clipped[i]);
}

Tensor get_total_norm(const std::vector<Tensor>& tensors, double norm_type,
                      bool error_if_nonfinite) {
  return get_total_norm(std::span<const Tensor>(tensors), norm_type, error_if_nonfinite);
}
GradClip clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                        bool error_if_nonfinite) {
  return clip_grad_norm(std::span<const Tensor>(parameters), max_norm, norm_type,
                        error_if_nonfinite);
}
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  return clip_grad_norm_(std::span<const Tensor>(parameters), max_norm, norm_type,
                         error_if_nonfinite);
}
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  clip_grad_value_(std::span<const Tensor>(parameters), clip_value);
}

}  // namespace braid::optim
