#include <braid/nn/optim/grad_scaler.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/step_capture.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/nn/internal/state_fields.hpp>
#include <braid/nn/optim/clip.hpp>

namespace braid::optim {
namespace {

constexpr Device kHost{};  // cpu:0

/// The scale is a number of the host, which depends on gradients.
void check_not_recorded() {
  ::braid::detail::StepCapture::refuse(
      "GradScaler", "a captured step without a scale (bfloat16 needs none), got one with it");
}

void check_scale(const char* what, double scale) {
  if (!(scale > 0) || std::isinf(static_cast<float>(scale)))
    throw ArgumentError(
        str("GradScaler: expected ", what, " above 0 and finite in float32, got ", scale));
}

/// True if no element of the tensors is infinite or NaN. Waits for their devices.
bool all_finite(std::vector<Tensor> tensors) {
  // the norm's dtype, which is that of the first tensor, must hold every element
  std::stable_partition(tensors.begin(), tensors.end(),
                        [](const Tensor& t) { return t.dtype() == DType::float64; });
  return std::isfinite(
      get_total_norm(tensors, std::numeric_limits<double>::infinity()).item<double>());
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  check_scale("init_scale", options.init_scale);
  if (!(options.growth_factor > 1))
    throw ArgumentError(
        str("GradScaler: expected growth_factor above 1, got ", options.growth_factor));
  if (!(options.backoff_factor > 0 && options.backoff_factor < 1))
    throw ArgumentError(
        str("GradScaler: expected backoff_factor between 0 and 1, got ", options.backoff_factor));
  if (options.growth_interval < 1)
    throw ArgumentError(
        str("GradScaler: expected growth_interval >= 1, got ", options.growth_interval));
  scale_ = nn::Buffer(full({}, options.init_scale, {.device = kHost, .dtype = DType::float32}));
  growth_tracker_ = nn::Buffer(zeros({}, {.device = kHost, .dtype = DType::int64}));
}

auto GradScaler::braid_fields() -> std::tuple<nn::Buffer&, nn::Buffer&> {
  return std::tie(scale_, growth_tracker_);
}
auto GradScaler::braid_fields() const -> std::tuple<const nn::Buffer&, const nn::Buffer&> {
  return std::tie(scale_, growth_tracker_);
}

LoadReport GradScaler::load_state(std::span<const StateDict::value_type> dict,
                                  const LoadOptions& options) {
  const detail::StateField fields[] = {
      {"scale", &scale_, [](double v) { return v > 0 && !std::isinf(v); }, "finite and above 0"},
      {"growth_tracker", &growth_tracker_, &detail::is_count, detail::kCounts}};
  return detail::load_fields(fields, dict, options, ::braid::detail::signature<GradScaler>());
}

double GradScaler::get_scale() const { return options_.enabled ? scale_.item<double>() : 1; }

Tensor GradScaler::scale(const Tensor& loss) const {
  if (!options_.enabled) return loss;
  check_not_recorded();
  return mul(loss, get_scale());
}

GradScaler::Seen* GradScaler::seen(const void* optimizer) noexcept {
  const auto found = std::find_if(seen_.begin(), seen_.end(),
                                  [&](const Seen& each) { return each.optimizer == optimizer; });
  return found == seen_.end() ? nullptr : &*found;
}

GradScaler::Seen& GradScaler::unscale(const void* optimizer, std::span<const Tensor> parameters) {
  check_not_recorded();
  if (const Seen* const before = seen(optimizer))
    throw ArgumentError(
        str("GradScaler::unscale_: expected one call for an optimizer before "
            "update(), got a second one",
            before->stepped ? ", after step()" : ""));
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) {
      if (g.dtype() == DType::float16)
        throw DTypeError(
            "GradScaler::unscale_: expected gradients of float32 or float64, got "
            "float16; keep the parameters in float32 and use Autocast");
      gradients.push_back(g.detach());
    }
  const NoGrad guard;
  const double factor = 1 / get_scale();
  const bool finite = all_finite(gradients);
  for (const Tensor& g : gradients) g.mul_(factor);
  return seen_.emplace_back(Seen{optimizer, finite, false});
}

bool GradScaler::prepare_step(const void* optimizer, std::span<const Tensor> parameters) {
  Seen* before = seen(optimizer);
  if (before && before->stepped)
    throw ArgumentError(
        "GradScaler::step: expected one call for an optimizer before update(), got a second one");
  Seen& now = before ? *before : unscale(optimizer, parameters);
  if (!now.finite) now.stepped = true;
  return now.finite;
}

void GradScaler::note_step(const void* optimizer) noexcept {
  if (Seen* const now = seen(optimizer)) now->stepped = true;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  check_not_recorded();
  if (new_scale) {
    check_scale("new_scale", *new_scale);
    scale_.fill_(*new_scale);
    return seen_.clear();
  }
  if (seen_.empty())
    throw ArgumentError("GradScaler::update: expected a step() or unscale_() before, got none");
  const bool finite =
      std::all_of(seen_.begin(), seen_.end(), [](const Seen& each) { return each.finite; });
  seen_.clear();
  if (!finite) {
    scale_.mul_(options_.backoff_factor);
    growth_tracker_.fill_(0);
    return;
  }
  growth_tracker_.add_(1);
  if (growth_tracker_.item<std::int64_t>() < options_.growth_interval) return;
  growth_tracker_.fill_(0);
  const double grown = get_scale() * options_.growth_factor;
  if (!std::isinf(static_cast<float>(grown))) scale_.fill_(grown);
}

}  // namespace braid::optim
