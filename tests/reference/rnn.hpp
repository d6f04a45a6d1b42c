#pragma once
// Recurrent layers by their formulas, one element at a time.
#include <cmath>

#include "reference/array.hpp"
#include "reference/sums.hpp"

namespace reference {

enum class Recurrent { tanh, relu, lstm, gru };

/// sum + Σ a[from_a + i] b[from_b + i] over n terms.
inline double add_products(double sum, const Array& a, Int from_a, const Array& b, Int from_b,
                           Int n) {
  if (n <= 0) return sum;
  if (from_a < 0 || from_b < 0 || from_a + n > a.size() || from_b + n > b.size())
    throw std::out_of_range("reference::add_products");
  return add_products(sum, a.data.data() + from_a, 1, b.data.data() + from_b, 1, n).sum;
}

/// Output [T, B, H], last h and c [B, H] (c only for an LSTM).
struct RecurrentResult {
  Array output, h, c;
};

/// One layer in one direction. Empty biases mean no bias; empty `lengths` mean that all sequences
/// have T steps.
inline RecurrentResult recurrent(Recurrent kind, const Array& x, const Array& h_0, const Array& c_0,
                                 const Array& w_ih, const Array& w_hh, const Array& b_ih,
                                 const Array& b_hh, bool reverse = false,
                                 const std::vector<Int>& lengths = {}) {
  const Int steps = at(x.shape, 0), batch = at(x.shape, 1), inputs = at(x.shape, 2),
            hidden = at(h_0.shape, 1);
  RecurrentResult y{Array({steps, batch, hidden}), h_0, c_0};
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (Int b = 0; b < batch; ++b) {
    const Int length = lengths.empty() ? steps : lengths.at(static_cast<std::size_t>(b));
    for (Int s = 0; s < length; ++s) {
      const Int t = reverse ? length - 1 - s : s;
      const Array before = y.h;
      for (Int j = 0; j < hidden; ++j) {
        // The contribution of the input to gate k of unit j, and that of the state.
        const auto from_x = [&](Int k) {
          const Int row = k * hidden + j;
          return add_products(b_ih.size() > 0 ? b_ih[row] : 0, w_ih, row * inputs, x,
                              (t * batch + b) * inputs, inputs);
        };
        const auto from_h = [&](Int k) {
          const Int row = k * hidden + j;
          return add_products(b_hh.size() > 0 ? b_hh[row] : 0, w_hh, row * hidden, before,
                              b * hidden, hidden);
        };
        double& h = y.h[b * hidden + j];
        if (kind == Recurrent::lstm) {
          double& c = y.c[b * hidden + j];
          c = sigmoid(from_x(1) + from_h(1)) * c +
              sigmoid(from_x(0) + from_h(0)) * std::tanh(from_x(2) + from_h(2));
          h = sigmoid(from_x(3) + from_h(3)) * std::tanh(c);
        } else if (kind == Recurrent::gru) {
          const double r = sigmoid(from_x(0) + from_h(0)), z = sigmoid(from_x(1) + from_h(1)),
                       n = std::tanh(from_x(2) + r * from_h(2));
          h = (1 - z) * n + z * before[b * hidden + j];
        } else {
          const double sum = from_x(0) + from_h(0);
          h = kind == Recurrent::tanh ? std::tanh(sum) : sum > 0 ? sum : 0;
        }
        y.output[(t * batch + b) * hidden + j] = h;
      }
    }
  }
  return y;
}

}  // namespace reference
