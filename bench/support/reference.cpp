#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "support/formula.hpp"
#include "support/reference_layers.hpp"

namespace bench {

using namespace plain;

std::vector<double> reference_losses(const std::vector<std::int64_t>& sizes, std::int64_t rows,
                                     bool squared, int steps, bool adam) {
  std::vector<Layer> layers;
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    const std::int64_t in = sizes[l], out = sizes[l + 1];
    layers.push_back({static_cast<std::size_t>(in), static_cast<std::size_t>(out),
                      widen(weights(in * out, 2 * l, in)), widen(weights(out, 2 * l + 1, in))});
  }
  const auto n = static_cast<std::size_t>(rows);
  const Matrix x = widen(uniform(rows * sizes.front(), kInputSeed));
  const Matrix target = squared ? widen(uniform(rows * sizes.back(), kTargetSeed)) : Matrix();
  const std::vector<std::int64_t> label =
      squared ? std::vector<std::int64_t>()
              : labels(rows, static_cast<std::uint32_t>(sizes.back()), kTargetSeed);

  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    std::vector<Matrix> inputs = {x};
    for (std::size_t l = 0; l < layers.size(); ++l) {
      Matrix y = forward(layers[l], inputs.back(), n);
      if (l + 1 < layers.size())
        for (double& v : y) v = std::max(v, 0.0);
      inputs.push_back(std::move(y));
    }
    Matrix d = inputs.back();
    losses.push_back(squared ? squared_error(d, target) : cross_entropy(d, label));
    for (std::size_t l = layers.size(); l-- > 0;) {
      d = backward(layers[l], inputs[l], d, n, adam ? step + 1 : 0);
      if (l > 0)
        for (std::size_t i = 0; i < d.size(); ++i) d[i] *= inputs[l][i] > 0;
    }
  }
  return losses;
}

std::vector<double> reference_cnn_losses(std::int64_t rows, int steps) {
  const auto n = static_cast<std::size_t>(rows);
  const auto conv = [](std::int64_t in, std::int64_t out, std::size_t side, std::uint64_t k) {
    return Conv{static_cast<std::size_t>(in), static_cast<std::size_t>(out), side,
                widen(weights(out * in * 9, k, in * 9)), widen(weights(out, k + 1, in * 9))};
  };
  const auto dense = [](std::int64_t in, std::int64_t out, std::uint64_t k) {
    return Layer{static_cast<std::size_t>(in), static_cast<std::size_t>(out),
                 widen(weights(out * in, k, in)), widen(weights(out, k + 1, in))};
  };
  const auto relu = [](Matrix y) {
    for (double& v : y) v = std::max(v, 0.0);
    return y;
  };
  Conv first = conv(1, 32, 28, 0), second = conv(32, 64, 13, 2);
  Layer hidden = dense(1600, 128, 4), last = dense(128, 10, 6);
  const Matrix x = widen(uniform(rows * 28 * 28, kInputSeed));
  const std::vector<std::int64_t> label = labels(rows, 10, kTargetSeed);
  // gradient of max pooling and of the ReLU before it
  const auto unpool = [](const Pooled& p, const Matrix& dy, const Matrix& y) {
    Matrix dx(y.size(), 0.0);
    for (std::size_t i = 0; i < dy.size(); ++i)
      if (y[p.from[i]] > 0) dx[p.from[i]] = dy[i];
    return dx;
  };
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const Matrix y1 = relu(forward(first, x, n));
    const Pooled p1 = max_pool(y1, n * 32, 26);
    const Matrix y2 = relu(forward(second, p1.y, n));
    const Pooled p2 = max_pool(y2, n * 64, 11);
    const Matrix y3 = relu(forward(hidden, p2.y, n));
    Matrix d = forward(last, y3, n);
    losses.push_back(cross_entropy(d, label));
    d = backward(last, y3, d, n);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] *= y3[i] > 0;
    d = unpool(p2, backward(hidden, p2.y, d, n), y2);
    d = unpool(p1, backward(second, p1.y, d, n), y1);
    (void)backward(first, x, d, n);
  }
  return losses;
}

std::string compare_losses(const std::vector<double>& got, const std::vector<double>& want,
                           double rtol) {
  std::ostringstream out;
  out.precision(9);
  if (got.size() != want.size()) {
    out << "expected " << want.size() << " losses, got " << got.size();
    return out.str();
  }
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - want[i]) <= rtol * std::abs(want[i]))) {
      out << "loss of step " << i + 1 << ": expected " << want[i] << ", got " << got[i];
      break;
    }
  return out.str();
}

}  // namespace bench
