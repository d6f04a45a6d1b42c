#include "support/reference_layers.hpp"

#include <algorithm>
#include <cmath>

#include "support/formula.hpp"

namespace bench::plain {

Matrix widen(const std::vector<float>& v) { return Matrix(v.begin(), v.end()); }

Matrix forward(const Layer& layer, const Matrix& x, std::size_t rows) {
  Matrix y(rows * layer.out);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t o = 0; o < layer.out; ++o) {
      double sum = layer.bias[o];
      for (std::size_t i = 0; i < layer.in; ++i)
        sum += x[r * layer.in + i] * layer.weight[o * layer.in + i];
      y[r * layer.out + o] = sum;
    }
  return y;
}

namespace {

void sgd_step(Matrix& p, const Matrix& g) {
  for (std::size_t i = 0; i < p.size(); ++i) p[i] -= kLearningRate * g[i];
}

void adam_step(Matrix& p, const Matrix& g, Matrix& mean, Matrix& square, int step) {
  mean.resize(p.size()), square.resize(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) {
    mean[i] = 0.9 * mean[i] + 0.1 * g[i];
    square[i] = 0.999 * square[i] + 0.001 * g[i] * g[i];
    p[i] -= 0.001 / (1 - std::pow(0.9, step)) * mean[i] /
            (std::sqrt(square[i] / (1 - std::pow(0.999, step))) + 1e-8);
  }
}

}  // namespace

Matrix backward(Layer& layer, const Matrix& x, const Matrix& dy, std::size_t rows, int adam) {
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
  if (adam > 0) {
    adam_step(layer.weight, dweight, layer.weight_mean, layer.weight_square, adam);
    adam_step(layer.bias, dbias, layer.bias_mean, layer.bias_square, adam);
  } else {
    sgd_step(layer.weight, dweight);
    sgd_step(layer.bias, dbias);
  }
  return dx;
}

namespace {

/// Calls f(index in x, index in weight, index in y) for every multiplication.
template <class F> void for_products(const Conv& c, std::size_t n, F f) {
  const std::size_t to = c.side - 2;
  for (std::size_t image = 0; image < n; ++image)
    for (std::size_t o = 0; o < c.out; ++o)
      for (std::size_t i = 0; i < c.in; ++i)
        for (std::size_t k = 0; k < 9; ++k)
          for (std::size_t h = 0; h < to; ++h)
            for (std::size_t w = 0; w < to; ++w)
              f(((image * c.in + i) * c.side + h + k / 3) * c.side + w + k % 3,
                (o * c.in + i) * 9 + k, ((image * c.out + o) * to + h) * to + w);
}

}  // namespace

Matrix forward(const Conv& layer, const Matrix& x, std::size_t n) {
  const std::size_t places = (layer.side - 2) * (layer.side - 2);
  Matrix y(n * layer.out * places);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = layer.bias[i / places % layer.out];
  for_products(layer, n, [&](std::size_t from, std::size_t by, std::size_t to) {
    y[to] += x[from] * layer.weight[by];
  });
  return y;
}

Matrix backward(Conv& layer, const Matrix& x, const Matrix& dy, std::size_t n) {
  const std::size_t places = (layer.side - 2) * (layer.side - 2);
  Matrix dx(x.size(), 0.0), dweight(layer.weight.size(), 0.0), dbias(layer.out, 0.0);
  for (std::size_t i = 0; i < dy.size(); ++i) dbias[i / places % layer.out] += dy[i];
  for_products(layer, n, [&](std::size_t from, std::size_t by, std::size_t to) {
    dx[from] += dy[to] * layer.weight[by];
    dweight[by] += dy[to] * x[from];
  });
  for (std::size_t i = 0; i < dweight.size(); ++i) layer.weight[i] -= kLearningRate * dweight[i];
  for (std::size_t o = 0; o < layer.out; ++o) layer.bias[o] -= kLearningRate * dbias[o];
  return dx;
}

Pooled max_pool(const Matrix& x, std::size_t planes, std::size_t side) {
  const std::size_t to = side / 2;
  Pooled pooled;
  for (std::size_t p = 0; p < planes; ++p)
    for (std::size_t h = 0; h < to; ++h)
      for (std::size_t w = 0; w < to; ++w) {
        const std::size_t first = (p * side + 2 * h) * side + 2 * w;
        std::size_t best = first;
        for (const std::size_t at : {first + 1, first + side, first + side + 1})
          if (x[at] > x[best]) best = at;
        pooled.y.push_back(x[best]);
        pooled.from.push_back(best);
      }
  return pooled;
}

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
    for (std::size_t c = 0; c < classes; ++c)
      row[c] = (std::exp(row[c] - top) / sum - (c == at)) / static_cast<double>(rows);
  }
  return loss / static_cast<double>(rows);
}

}  // namespace bench::plain
