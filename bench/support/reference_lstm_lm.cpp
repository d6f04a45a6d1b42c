// The word language model in plain double loops. The inner loops add a multiple of one row to
// another, so they are fast enough to run before each benchmark.
#include <algorithm>
#include <cmath>

#include "support/formula.hpp"
#include "support/lstm_lm.hpp"

namespace bench {
namespace {

using Numbers = std::vector<double>;
std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// A parameter and its gradient.
struct Weight {
  Numbers value, grad;
  Weight(std::int64_t count, std::uint64_t number, std::int64_t fan_in) : grad(size(count)) {
    const std::vector<float> start = weights(count, number, fan_in);
    value.assign(start.begin(), start.end());
  }
};

/// c [m, n] += a [m, k] b [k, n].
void add_product(const double* a, const double* b, double* c, std::size_t m, std::size_t k,
                 std::size_t n) {
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t p = 0; p < k; ++p) {
      const double factor = a[i * k + p];
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += factor * b[p * n + j];
    }
}
Numbers transposed(const Numbers& a, std::size_t rows, std::size_t columns) {
  Numbers t(a.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  return t;
}
/// grad [out, in] += dyᵀ x over `rows` rows.
void add_weight_grad(Weight& w, const Numbers& dy, const Numbers& x, std::size_t rows,
                     std::size_t out, std::size_t in) {
  const Numbers t = transposed(dy, rows, out);
  add_product(t.data(), x.data(), w.grad.data(), out, rows, in);
}
void add_columns(Weight& b, const Numbers& dy) {
  for (std::size_t i = 0; i < dy.size(); ++i) b.grad[i % b.grad.size()] += dy[i];
}
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// One layer, with the values that forward saves for backward.
struct Layer {
  std::size_t steps, batch, n;
  Weight w_ih, w_hh, b_ih, b_hh;
  Numbers x, gates, h_before, c;  // [T B, n], activations [T B, 4 n], [T B, n], [(T + 1) B, n]

  Layer(const LstmLmSizes& s, std::uint64_t first)
      : steps(size(s.steps)),
        batch(size(s.batch)),
        n(size(s.width)),
        w_ih(4 * s.width * s.width, first, s.width),
        w_hh(4 * s.width * s.width, first + 1, s.width),
        b_ih(4 * s.width, first + 2, s.width),
        b_hh(4 * s.width, first + 3, s.width) {}

  Numbers forward(const Numbers& input) {
    x = input;
    const std::size_t rows = steps * batch, cells = batch * n;
    const Numbers ih = transposed(w_ih.value, 4 * n, n), hh = transposed(w_hh.value, 4 * n, n);
    gates.resize(rows * 4 * n);
    for (std::size_t i = 0; i < gates.size(); ++i)
      gates[i] = b_ih.value[i % (4 * n)] + b_hh.value[i % (4 * n)];
    add_product(x.data(), ih.data(), gates.data(), rows, n, 4 * n);
    h_before.assign(rows * n, 0);
    c.assign((rows + batch) * n, 0);
    Numbers y(rows * n);
    for (std::size_t t = 0; t < steps; ++t) {
      if (t > 0) std::copy_n(&y[(t - 1) * cells], cells, &h_before[t * cells]);
      double* const step = &gates[t * 4 * cells];
      add_product(&h_before[t * cells], hh.data(), step, batch, n, 4 * n);
      for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t j = 0; j < n; ++j) {
          double* const g = step + b * 4 * n + j;
          g[0] = sigmoid(g[0]), g[n] = sigmoid(g[n]), g[2 * n] = std::tanh(g[2 * n]),
          g[3 * n] = sigmoid(g[3 * n]);
          const std::size_t at = t * cells + b * n + j;
          c[at + cells] = g[n] * c[at] + g[0] * g[2 * n];
          y[at] = g[3 * n] * std::tanh(c[at + cells]);
        }
    }
    return y;
  }

  /// Returns the gradient of the input.
  Numbers backward(const Numbers& dy) {
    const std::size_t rows = steps * batch, cells = batch * n;
    Numbers d(rows * 4 * n), dh(cells), dc(cells), dx(rows * n);
    for (std::size_t t = steps; t-- > 0;) {
      for (std::size_t b = 0; b < batch; ++b)
        for (std::size_t j = 0; j < n; ++j) {
          const std::size_t cell = b * n + j, at = t * cells + cell;
          const double* const g = &gates[t * 4 * cells + b * 4 * n + j];
          double* const to = &d[t * 4 * cells + b * 4 * n + j];
          const double squashed = std::tanh(c[at + cells]), arriving = dy[at] + dh[cell],
                       dstate = dc[cell] + arriving * g[3 * n] * (1 - squashed * squashed);
          to[0] = dstate * g[2 * n] * g[0] * (1 - g[0]);
          to[n] = dstate * c[at] * g[n] * (1 - g[n]);
          to[2 * n] = dstate * g[0] * (1 - g[2 * n] * g[2 * n]);
          to[3 * n] = arriving * squashed * g[3 * n] * (1 - g[3 * n]);
          dc[cell] = dstate * g[n];
        }
      std::fill(dh.begin(), dh.end(), 0.0);
      add_product(&d[t * 4 * cells], w_hh.value.data(), dh.data(), batch, 4 * n, n);
    }
    add_product(d.data(), w_ih.value.data(), dx.data(), rows, 4 * n, n);
    add_weight_grad(w_ih, d, x, rows, 4 * n, n);
    add_weight_grad(w_hh, d, h_before, rows, 4 * n, n);
    add_columns(b_ih, d);
    add_columns(b_hh, d);
    return dx;
  }
};

/// Returns the mean loss and overwrites the logits with its gradient.
double cross_entropy(Numbers& logits, const std::vector<std::int64_t>& label, std::size_t classes) {
  double loss = 0;
  const double rows = static_cast<double>(label.size());
  for (std::size_t r = 0; r < label.size(); ++r) {
    double* const row = &logits[r * classes];
    const double top = *std::max_element(row, row + classes);
    double sum = 0;
    for (std::size_t k = 0; k < classes; ++k) sum += std::exp(row[k] - top);
    loss += top + std::log(sum) - row[label[r]];
    for (std::size_t k = 0; k < classes; ++k) row[k] = std::exp(row[k] - top) / (sum * rows);
    row[label[r]] -= 1 / rows;
  }
  return loss / rows;
}

}  // namespace

std::vector<double> reference_lstm_lm_losses(int steps, const LstmLmSizes& s) {
  const std::size_t n = size(s.width), rows = size(s.steps * s.batch), words = size(s.words);
  Weight encoder(s.words * s.width, 0, s.width);
  std::vector<Layer> layers;
  for (std::int64_t l = 0; l < s.layers; ++l)
    layers.emplace_back(s, 1 + 4 * static_cast<std::uint64_t>(l));
  const auto last = 1 + 4 * static_cast<std::uint64_t>(s.layers);
  Weight decoder(s.words * s.width, last, s.width), bias(s.words, last + 1, s.width);
  std::vector<Weight*> all{&encoder, &decoder, &bias};
  for (Layer& l : layers) all.insert(all.end(), {&l.w_ih, &l.w_hh, &l.b_ih, &l.b_hh});
  const auto classes = static_cast<std::uint32_t>(s.words);
  const std::vector<std::int64_t> input = labels(s.steps * s.batch, classes, kInputSeed),
                                  next = labels(s.steps * s.batch, classes, kTargetSeed);

  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    for (Weight* w : all) std::fill(w->grad.begin(), w->grad.end(), 0.0);
    Numbers h(rows * n);
    for (std::size_t r = 0; r < rows; ++r)
      std::copy_n(&encoder.value[size(input[r]) * n], n, &h[r * n]);
    for (Layer& l : layers) h = l.forward(h);
    Numbers logits(rows * words);
    for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = bias.value[i % words];
    const Numbers turned = transposed(decoder.value, words, n);
    add_product(h.data(), turned.data(), logits.data(), rows, n, words);
    losses.push_back(cross_entropy(logits, next, words));
    add_weight_grad(decoder, logits, h, rows, words, n);
    add_columns(bias, logits);
    Numbers d(rows * n);
    add_product(logits.data(), decoder.value.data(), d.data(), rows, words, n);
    for (std::size_t l = layers.size(); l-- > 0;) d = layers[l].backward(d);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t j = 0; j < n; ++j) encoder.grad[size(input[r]) * n + j] += d[r * n + j];
    double squares = 0;
    for (const Weight* w : all)
      for (const double g : w->grad) squares += g * g;
    const double factor = std::min(1.0, kClip / (std::sqrt(squares) + 1e-6));
    for (Weight* w : all)
      for (std::size_t i = 0; i < w->value.size(); ++i)
        w->value[i] -= kLearningRate * factor * w->grad[i];
  }
  return losses;
}

}  // namespace bench
