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

/// Adam if `coupled`, otherwise AdamW.
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

template <class O, class Options>
void add(std::vector<Case>& list, const char* name, const Options& o, const Reference& reference) {
  const auto make = [o](std::vector<Tensor> p) { return std::make_unique<O>(std::move(p), o); };
  list.push_back({name, make, reference});
}

}  // namespace

std::vector<Case> cases() {
  using namespace optim;
  std::vector<Case> list;
  const auto sgd = [&](const char* name, const SgdOptions& o) {
    add<SGD>(list, name, o, sgd_reference(o));
  };
  const auto adamw = [&](const char* name, const AdamWOptions& o) {
    add<AdamW>(list, name, o, adam_reference(o, false));
  };
  const auto adam = [&](const char* name, const AdamOptions& o) {
    add<Adam>(list, name, o, adam_reference(o, true));
  };
  const auto rmsprop = [&](const char* name, const RMSpropOptions& o) {
    add<RMSprop>(list, name, o, rmsprop_reference(o));
  };
  const auto adagrad = [&](const char* name, const AdagradOptions& o) {
    add<Adagrad>(list, name, o, adagrad_reference(o));
  };
  const auto lion = [&](const char* name, const LionOptions& o) {
    add<Lion>(list, name, o, lion_reference(o));
  };
  // lr, momentum, weight_decay, dampening, nesterov, maximize
  sgd("SGD plain", {0.1});
  sgd("SGD weight decay", {0.1, 0, 0.05});
  sgd("SGD momentum", {0.05, 0.9});
  sgd("SGD momentum, weight decay, dampening", {0.05, 0.8, 0.01, 0.3});
  sgd("SGD nesterov, weight decay", {0.05, 0.9, 0.01, 0, true});
  sgd("SGD maximize", {0.05, 0.5, 0.1, 0, false, true});
  sgd("SGD lr 0", {0});
  // lr, beta1, beta2, eps, weight_decay, amsgrad, maximize
  adamw("AdamW default", {});
  adamw("AdamW other betas", {0.02, 0.5, 0.9, 1e-3, 0.2});
  adamw("AdamW beta 0", {0.02, 0, 0, 1e-8, 0});
  adamw("AdamW amsgrad, maximize", {0.02, 0.5, 0.6, 1e-8, 0.1, true, true});
  adam("Adam default", {});
  adam("Adam weight decay", {0.02, 0.8, 0.9, 1e-4, 0.1});
  adam("Adam amsgrad, maximize", {0.02, 0.5, 0.6, 1e-4, 0.1, true, true});
  // lr, alpha, eps, weight_decay, momentum, centered, maximize
  rmsprop("RMSprop default", {});
  rmsprop("RMSprop momentum, weight decay", {0.005, 0.9, 1e-3, 0.05, 0.7});
  rmsprop("RMSprop centered, maximize", {0.005, 0.7, 1e-2, 0, 0, true, true});
  rmsprop("RMSprop centered, momentum", {0.005, 0.7, 1e-2, 0, 0.5, true});
  // lr, lr_decay, weight_decay, initial_accumulator_value, eps, maximize
  adagrad("Adagrad default", {});
  adagrad("Adagrad decays", {0.05, 0.1, 0.05, 0.2, 1e-10, true});
  // lr, beta1, beta2, weight_decay, maximize
  lion("Lion default", {});
  lion("Lion weight decay, maximize", {0.003, 0.8, 0.95, 0.1, true});
  return list;
}

Tracked::Tracked(const Tensor& t)
    : tensor(t), p(t.to_vector<double>()), m(p.size()), v(p.size()), s(p.size()) {}

void Tracked::take(const Case& c, const Tensor& grad) {
  tensor.set_grad(grad);
  c.reference(p, grad.to_vector<double>(), m, v, s, ++step);
}

bool Tracked::close(double tolerance) const {
  const Numbers got = tensor.to_vector<double>();
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - p[i]) <= tolerance * (1 + std::abs(p[i])))) return false;
  return true;
}

Tensor leaf(const Shape& shape, std::uint64_t seed, DType dtype, Device device) {
  return random_tensor(test::sizes_of(shape), dtype, device, seed, -1, 1).requires_grad_();
}

}  // namespace braid::test::on_device
