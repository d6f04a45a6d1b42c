#include "support/reference.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "support/formula.hpp"

namespace bench {
namespace {

using Matrix = std::vector<double>;  // row-major

Matrix widen(const std::vector<float>& v) { return Matrix(v.begin(), v.end()); }

struct Layer {
  std::size_t in, out;
  Matrix weight, bias;  // [out, in], [out]
};

// y[r, o] = x[r, :] · weight[o, :] + bias[o]
Matrix forward(const Layer& layer, const Matrix& x, std::size_t rows) {
  Matrix y(rows * layer.out);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < layer.out; ++o) {
      double sum = layer.bias[o];
      for (std::size_t i = 0; i < layer.in; ++i) sum += x[r * layer.in + i] * layer.weight[o * layer.in + i];
      y[r * layer.out + o] = sum;
    }
  return y;
}

// Gradient of the input; the layer takes its SGD step.
Matrix backward(Layer& layer, const Matrix& x, const Matrix& dy, std::size_t rows) {
  Matrix dx(rows * layer.in, 0.0), dweight(layer.weight.size(), 0.0), dbias(layer.out, 0.0);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < layer.out; ++o) {
      const double d = dy[r * layer.out + o];
      dbias[o] += d;
      for (std::size_t i = 0; i < layer.in; ++i) {
        dx[r * layer.in + i] += d * layer.weight[o * layer.in + i];
        dweight[o * layer.in + i] += d * x[r * layer.in + i];
      }
    }
  for (std::size_t i = 0; i < dweight.size(); ++i) layer.weight[i] -= kLearningRate * dweight[i];
  for (std::size_t o = 0; o < layer.out; ++o) layer.bias[o] -= kLearningRate * dbias[o];
  return dx;
}

// The mean loss; `y` becomes its gradient.
double squared_error(Matrix& y, const Matrix& target) {
  double sum = 0;
  const double n = static_cast<double>(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double d = y[i] - target[i];
    sum += d * d;
    y[i] = 2 * d / n;
  }
  return sum / n;
}

double cross_entropy(Matrix& y, const std::vector<std::int64_t>& label) {
  const std::size_t rows = label.size(), classes = y.size() / rows;
  double loss = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    double* row = &y[r * classes];
    const auto at = static_cast<std::size_t>(label[r]);
    const double top = *std::max_element(row, row + classes);
    double sum = 0;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(row[c] - top);
    loss += top + std::log(sum) - row[at];
    for (std::size_t c = 0; c < classes; ++c) row[c] = (std::exp(row[c] - top) / sum - (c == at)) / static_cast<double>(rows);
  }
  return loss / static_cast<double>(rows);
}

}  // namespace

std::vector<double> reference_losses(const std::vector<std::int64_t>& sizes, std::int64_t rows, bool squared, int steps) {
  std::vector<Layer> layers;
  for (std::size_t l = 0; l + 1 < sizes.size(); ++l) {
    const std::int64_t in = sizes[l], out = sizes[l + 1];
    layers.push_back({static_cast<std::size_t>(in), static_cast<std::size_t>(out), widen(weights(in * out, 2 * l, in)), widen(weights(out, 2 * l + 1, in))});
  }
  const auto n = static_cast<std::size_t>(rows);
  const Matrix x = widen(uniform(rows * sizes.front(), kInputSeed));
  const Matrix target = squared ? widen(uniform(rows * sizes.back(), kTargetSeed)) : Matrix();
  const std::vector<std::int64_t> label = squared ? std::vector<std::int64_t>() : labels(rows, static_cast<std::uint32_t>(sizes.back()), kTargetSeed);

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
      d = backward(layers[l], inputs[l], d, n);
      if (l > 0)
        for (std::size_t i = 0; i < d.size(); ++i) d[i] *= inputs[l][i] > 0;
    }
  }
  return losses;
}

std::string compare_losses(const std::vector<double>& got, const std::vector<double>& want, double rtol) {
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
