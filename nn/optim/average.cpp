#include <algorithm>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/nn/optim/average.hpp>

namespace braid::optim {

namespace { constexpr const char* kOutside = "a call outside of a captured step, got one inside"; }

Average::Average(std::vector<Tensor> parameters, const AverageOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  if (!(options.decay >= 0 && options.decay <= 1))
    throw ArgumentError(str("Average: expected 0 <= decay <= 1, got ", options.decay));
  if (parameters_.empty()) throw ArgumentError("Average: expected at least one parameter, got 0");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].defined())
      throw ArgumentError(
          str("Average: expected defined parameters, got an undefined one at position ", i));
    if (!is_floating(parameters_[i].dtype()))
      throw DTypeError(str("Average: expected floating point parameters, got ",
                           parameters_[i].dtype(), " at position ", i));
  }
  // Allocated here so that a state can be loaded into them. The first update overwrites them.
  const NoGrad guard;
  for (const Tensor& p : parameters_)
    average_.emplace_back(
        p.detach().to(p.device(), size_of(p.dtype()) == 2 ? DType::float32 : p.dtype(), true));
  updates_ = nn::Buffer(zeros({1}, {.device = Device(), .dtype = DType::int64}));
}

auto Average::braid_fields() -> std::tuple<std::vector<nn::Buffer>&, nn::Buffer&> {
  return std::tie(average_, updates_);
}
auto Average::braid_fields() const
    -> std::tuple<const std::vector<nn::Buffer>&, const nn::Buffer&> {
  return std::tie(average_, updates_);
}

std::int64_t Average::updates() const { return updates_.item<std::int64_t>(); }

void Average::update() {
  ::braid::detail::StepCapture::refuse("Average: update", kOutside);
  if (swapped_in())
    throw ArgumentError(
        "Average: update: expected the model's own parameters, got the averaged ones; swap_out "
        "first");
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].shape() != average_[i].shape())
      throw ShapeError(str("Average: update: expected parameter ", i, " of shape ",
                           average_[i].shape(), ", got ", parameters_[i].shape()));
  const NoGrad guard;
  std::vector<Tensor> now, moved;  // do everything that can fail first
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i];
    moved.push_back(average_[i].to(p.device()));  // the same tensor if it is there already
    now.push_back(p.detach().to(average_[i].dtype()));
  }
  for (std::size_t i = 0; i < moved.size(); ++i)
    if (average_[i].device() != moved[i].device()) average_[i] = nn::Buffer(std::move(moved[i]));
  const double n = static_cast<double>(updates());
  const double decay = n == 0             ? 0
                       : options_.equal   ? n / (n + 1)
                       : options_.warm_up ? std::min(options_.decay, (1 + n) / (10 + n))
                                          : options_.decay;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (n == 0) average_[i].copy_(now[i]);
    else average_[i].mul_(decay), average_[i].add_(now[i], 1 - decay);
  }
  updates_.add_(1.0);
}

void Average::swap_in() {
  ::braid::detail::StepCapture::refuse("Average: swap_in", kOutside);
  if (swapped_in())
    throw ArgumentError(
        "Average: swap_in: expected the model's own parameters, got the averaged ones");
  if (updates() == 0) throw ArgumentError("Average: swap_in: expected at least one update, got 0");
  const NoGrad guard;
  std::vector<Tensor> own, averaged;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i];
    own.push_back(p.detach().clone());
    averaged.push_back(average_[i].to(p.device(), p.dtype()));
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].copy_(averaged[i]);
  own_.swap(own);
}

void Average::swap_out() {
  ::braid::detail::StepCapture::refuse("Average: swap_out", kOutside);
  if (!swapped_in())
    throw ArgumentError("Average: swap_out: expected the averaged parameters, got the model's own");
  const NoGrad guard;
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].copy_(own_[i]);
  own_.clear();
}

}  // namespace braid::optim
