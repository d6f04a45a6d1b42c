#pragma once
// How GPT-2 is trained: AdamW with weight decay for matrices alone, a warm-up and a cosine, and
// gradients whose norm is at most 1.
#include <memory>

#include "model.hpp"

namespace gpt2 {

struct TrainerOptions {
  double lr = 6e-4;
  std::int64_t steps = 1, warm_up = 0;  ///< of the optimizer
  double weight_decay = 0.1;
  std::int64_t parts = 1;  ///< a batch is computed in so many parts, whose gradients are added
  bool autocast = false;   ///< products in bfloat16; weights, gradients and sums stay float32
};

/// A model with its optimizer, over all devices of the best kind or those of a list.
class Trainer {
 public:
  Trainer(GPT2&& model, const TrainerOptions& options,
          const parallel::DeviceList& on = devices(best_device().type()))
      : device_(on.list().at(0)),
        model_(placed(std::move(model), on)),
        options_(options),
        parameters_(parameters(model_)),
        optimizer_(groups(parameters_, options)),
        schedule_(optimizer_, curve(options)) {}

  /// One step of the optimizer. Returns the loss, the mean over all tokens of the batch; it does
  /// not depend on the number of parts or devices, but for rounding.
  Tensor step(const data::NextToken& batch) {
    const std::int64_t rows = batch.input.size(0),
                       part =
                           std::max<std::int64_t>(1, (rows + options_.parts - 1) / options_.parts);
    Tensor loss;
    for (std::int64_t first = 0; first < rows; first += part) {
      const std::int64_t n = std::min(part, rows - first);
      const Tensor sum = [&] {
        const Autocast mixed(DType::bfloat16, options_.autocast);  // for the forward only
        return sum_of({batch.input.narrow(0, first, n), batch.target.narrow(0, first, n)});
      }();
      const Tensor share = sum / static_cast<double>(batch.target.numel());
      share.backward();
      loss = loss.defined() ? loss + share.detach() : share.detach();
    }
    optimizer_.step(optim::clip_grad_norm(parameters_, 1).factor);
    optimizer_.zero_grad();
    schedule_.step();
    return loss;
  }
  /// The loss of a batch, without learning from it.
  [[nodiscard]] double loss(const data::NextToken& batch) {
    const NoGrad guard;
    const EvalGuard evaluating(model_);
    return sum_of(batch).item<double>() / static_cast<double>(batch.target.numel());
  }

  [[nodiscard]] GPT2& model() noexcept { return model_.module.transformer; }
  [[nodiscard]] parallel::DataParallel<WithLoss>& parts() noexcept { return model_; }
  [[nodiscard]] optim::AdamW& optimizer() noexcept { return optimizer_; }
  [[nodiscard]] optim::LambdaSchedule& schedule() noexcept { return schedule_; }

 private:
  static parallel::DataParallel<WithLoss> placed(GPT2&& model, const parallel::DeviceList& on) {
    to(model, on.list().at(0));
    return parallel::DataParallel(WithLoss(std::move(model)), on);
  }
  static std::vector<optim::AdamW::Group> groups(const std::vector<Tensor>& all,
                                                 const TrainerOptions& o) {
    const optim::AdamWOptions options{.lr = o.lr, .beta2 = 0.95, .weight_decay = o.weight_decay};
    optim::AdamW::Group decayed{{}, options}, others{{}, options};
    others.options.weight_decay = 0;
    for (const Tensor& p : all) (p.dim() >= 2 ? decayed : others).parameters.push_back(p);
    return {decayed, others};
  }
  /// A linear warm-up, then half a cosine down to a tenth of the rate.
  static optim::LambdaOptions curve(const TrainerOptions& o) {
    const auto rise = static_cast<double>(o.warm_up), all = static_cast<double>(o.steps);
    return {[rise, fall = std::max(1.0, all - rise)](std::int64_t step) {
      const auto t = static_cast<double>(step);
      if (t < rise) return (t + 1) / (rise + 1);
      return 0.55 + 0.45 * std::cos(3.14159265358979 * std::min(1.0, (t - rise) / fall));
    }};
  }
  [[nodiscard]] Tensor sum_of(const data::NextToken& batch) const {
    const auto parts = model_.replicas(batch.input.to(device_), batch.target.to(device_));
    return parallel::total(parts, device_).sum;
  }

  Device device_;
  parallel::DataParallel<WithLoss> model_;
  TrainerOptions options_;
  std::vector<Tensor> parameters_;
  optim::AdamW optimizer_;
  optim::LambdaSchedule schedule_;
};

}  // namespace gpt2
