// A custom op, softsign(x) = x / (1 + |x|), outside the library. custom_op/softsign.cpp has its
// checks, its CPU loop and its gradient; custom_op/softsign.cu has its kernels, which run on
// Braid's streams. This program uses the op. The same code runs on the CPU, on a GPU, and on the
// GPU emulation.
#include <braid/braid.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "custom_op/softsign.hpp"

using namespace braid;

/// A model uses it like any other op.
struct Net : nn::Module {
  nn::Linear fc1{4, 8}, fc2{8, 1};
  Tensor operator()(const Tensor& x) const { return fc2(mine::softsign(fc1(x))); }
  BRAID_FIELDS(fc1, fc2)
};

int main() {
  const Device device = best_device(), host;

  const Tensor x = tensor({-3.0, -1.0, 0.5, 1.0, 3.0}).to(device).requires_grad_();
  const Tensor y = mine::softsign(x);
  std::cout << "y   " << y.detach().to(host) << '\n';

  // The gradient, and its gradient.
  const Tensor dx = grad(y.sum(), {x}, false, true)[0];
  std::cout << "y'  " << dx.detach().to(host) << '\n';
  std::cout << "y'' " << grad(dx.sum(), {x})[0].to(host) << '\n';

  // Compare with finite differences in float64: the first test of a new gradient.
  double worst = 0;
  for (const double at : {-2.0, -0.3, 0.7, 5.0}) {
    const auto f = [&](double v) {
      return mine::softsign(tensor({v}, {.dtype = DType::float64}).to(device)).item<double>();
    };
    const Tensor point = tensor({at}, {.dtype = DType::float64}).to(device).requires_grad_();
    mine::softsign(point).backward();
    worst = std::max(worst,
                     std::abs(point.grad().item<double>() - (f(at + 1e-6) - f(at - 1e-6)) / 2e-6));
  }
  std::cout << "gradient and differences agree: " << std::boolalpha << (worst < 1e-8) << '\n';

  // In a model that is split over all devices, each replica queues its kernels on its own device's
  // stream.
  manual_seed(1);
  parallel::DataParallel model(Net{});
  to(model, device);
  const Tensor rows = randn({64, 4}, {.device = device}), target = rows.sum({1}, true) * 0.5;
  optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    const Tensor loss = nn::mse_loss(model(rows), target);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  std::cout << "it learns: " << (last < 0.05 * first) << '\n';
}
