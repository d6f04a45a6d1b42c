#include "optim_cases.hpp"

#include <algorithm>
#include <cmath>

namespace braid::test::on_device {

namespace {

Reference sgd_reference(const optim::SgdOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers& m, Numbers&, Numbers&, int step) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      double d = (o.maximize ? -g[i] : g[i]) + o.weight_decay * p[i];
      if (o.momentum != 0) {
        m[i] = step == 1 ? d : o.momentum * m[i] + (1 - o.dampening) * d;
        d = o.nesterov ? d + o.momentum * m[i] : m[i];
      }
      p[i] -= o.lr * d;
    }
  };
}

/// Adam, or AdamW.
template <class Options> Reference adam_reference(const Options& o, bool coupled) {
  return [o, coupled](Numbers& p, const Numbers& g, Numbers& m, Numbers& v, Numbers& s, int step) {
    const double bias1 = 1 - std::pow(o.beta1, step), bias2 = 1 - std::pow(o.beta2, step);
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = (o.maximize ? -g[i] : g[i]) + (coupled ? o.weight_decay * p[i] : 0);
      if (!coupled) p[i] *= 1 - o.lr * o.weight_decay;
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * d;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * d * d;
      s[i] = std::max(s[i], v[i]);
      p[i] -= o.lr / bias1 * m[i] / (std::sqrt(o.amsgrad ? s[i] : v[i]) / std::sqrt(bias2) + o.eps);
    }
  };
}

Reference rmsprop_reference(const optim::RMSpropOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers& m, Numbers& v, Numbers& s, int) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = (o.maximize ? -g[i] : g[i]) + o.weight_decay * p[i];
      v[i] = o.alpha * v[i] + (1 - o.alpha) * d * d;
      s[i] = o.alpha * s[i] + (1 - o.alpha) * d;
      m[i] = o.momentum * m[i] + d / (std::sqrt(o.centered ? v[i] - s[i] * s[i] : v[i]) + o.eps);
      p[i] -= o.lr * m[i];
    }
  };
}

Reference adagrad_reference(const optim::AdagradOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers&, Numbers& v, Numbers&, int step) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = (o.maximize ? -g[i] : g[i]) + o.weight_decay * p[i];
      v[i] += d * d + (step == 1 ? o.initial_accumulator_value : 0);
      p[i] -= o.lr / (1 + (step - 1) * o.lr_decay) * d / (std::sqrt(v[i]) + o.eps);
    }
  };
}

Reference lion_reference(const optim::LionOptions& o) {
  return [o](Numbers& p, const Numbers& g, Numbers& m, Numbers&, Numbers&, int) {
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double d = o.maximize ? -g[i] : g[i], way = o.beta1 * m[i] + (1 - o.beta1) * d;
      p[i] = p[i] * (1 - o.lr * o.weight_decay) - o.lr * (way > 0 ? 1 : way < 0 ? -1 : 0);
      m[i] = o.beta2 * m[i] + (1 - o.beta2) * d;
    }
  };
}

}  // namespace

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto sgd = [&](const std::string& name, const optim::SgdOptions& o) {
    list.push_back(
        {"SGD " + name,
         [o](std::vector<Tensor> p) { return std::make_unique<optim::SGD>(std::move(p), o); },
         sgd_reference(o)});
  };
  const auto adamw = [&](const std::string& name, const optim::AdamWOptions& o) {
    list.push_back(
        {"AdamW " + name,
         [o](std::vector<Tensor> p) { return std::make_unique<optim::AdamW>(std::move(p), o); },
         adam_reference(o, false)});
  };
  const auto adam = [&](const std::string& name, const optim::AdamOptions& o) {
    list.push_back(
        {"Adam " + name,
         [o](std::vector<Tensor> p) { return std::make_unique<optim::Adam>(std::move(p), o); },
         adam_reference(o, true)});
  };
  const auto rmsprop = [&](const std::string& name, const optim::RMSpropOptions& o) {
    list.push_back(
        {"RMSprop " + name,
         [o](std::vector<Tensor> p) { return std::make_unique<optim::RMSprop>(std::move(p), o); },
         rmsprop_reference(o)});
  };
  const auto adagrad = [&](const std::string& name, const optim::AdagradOptions& o) {
    list.push_back(
        {"Adagrad " + name,
         [o](std::vector<Tensor> p) { return std::make_unique<optim::Adagrad>(std::move(p), o); },
         adagrad_reference(o)});
  };
  const auto lion = [&](const std::string& name, const optim::LionOptions& o) {
    list.push_back(
        {"Lion " + name,
         [o](std::vector<Tensor> p) { return std::make_unique<optim::Lion>(std::move(p), o); },
         lion_reference(o)});
  };
  sgd("plain", {.lr = 0.1});
  sgd("weight decay", {.lr = 0.1, .weight_decay = 0.05});
  sgd("momentum", {.lr = 0.05, .momentum = 0.9});
  sgd("momentum, weight decay, dampening",
      {.lr = 0.05, .momentum = 0.8, .weight_decay = 0.01, .dampening = 0.3});
  sgd("nesterov, weight decay",
      {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  sgd("maximize", {.lr = 0.05, .momentum = 0.5, .weight_decay = 0.1, .maximize = true});
  sgd("lr 0", {.lr = 0});
  adamw("default", {});
  adamw("other betas", {.lr = 0.02, .beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.2});
  adamw("beta 0", {.lr = 0.02, .beta1 = 0, .beta2 = 0, .weight_decay = 0});
  adamw("amsgrad, maximize", {.lr = 0.02,
                              .beta1 = 0.5,
                              .beta2 = 0.6,
                              .weight_decay = 0.1,
                              .amsgrad = true,
                              .maximize = true});
  adam("default", {});
  adam("weight decay", {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-4, .weight_decay = 0.1});
  adam("amsgrad, maximize", {.lr = 0.02,
                             .beta1 = 0.5,
                             .beta2 = 0.6,
                             .eps = 1e-4,
                             .weight_decay = 0.1,
                             .amsgrad = true,
                             .maximize = true});
  rmsprop("default", {});
  rmsprop("momentum, weight decay",
          {.lr = 0.005, .alpha = 0.9, .eps = 1e-3, .weight_decay = 0.05, .momentum = 0.7});
  rmsprop("centered, maximize",
          {.lr = 0.005, .alpha = 0.7, .eps = 1e-2, .centered = true, .maximize = true});
  rmsprop("centered, momentum",
          {.lr = 0.005, .alpha = 0.7, .eps = 1e-2, .momentum = 0.5, .centered = true});
  adagrad("default", {});
  adagrad("decays", {.lr = 0.05,
                     .lr_decay = 0.1,
                     .weight_decay = 0.05,
                     .initial_accumulator_value = 0.2,
                     .maximize = true});
  lion("default", {});
  lion("weight decay, maximize",
       {.lr = 0.003, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1, .maximize = true});
  return list;
}

bool close(const Tracked& t, double tolerance) {
  const Numbers got = t.tensor.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - t.p[i]) <= tolerance * (1 + std::abs(t.p[i])))) return false;
  }
  return true;
}

Tensor leaf(const Shape& shape, DType dtype, Device device, std::uint64_t seed) {
  return random_tensor(test::sizes_of(shape), dtype, device, seed, -1, 1).requires_grad_();
}

}  // namespace braid::test::on_device
