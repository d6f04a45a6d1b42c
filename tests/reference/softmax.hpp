#pragma once
// Softmax and cross entropy, by their formulas in double precision.
#include "reference/reduce.hpp"

namespace reference {

inline Array log_softmax(const Array& x, Int dim = -1) {
  const Array top = max(x, {dim}, true);
  const Array shifted = zip(x, top, [](double a, double m) { return a - m; });
  const Array norm = map(sum(map(shifted, [](double v) { return std::exp(v); }), {dim}, true),
                         [](double v) { return std::log(v); });
  return zip(shifted, norm, [](double a, double l) { return a - l; });
}

inline Array softmax(const Array& x, Int dim = -1) {
  const Array top = max(x, {dim}, true);
  const Array e = zip(x, top, [](double a, double m) { return std::exp(a - m); });
  return zip(e, sum(e, {dim}, true), [](double a, double s) { return a / s; });
}

/// -log softmax(logits)[label], summed or averaged over the rows.
inline Array cross_entropy(const Array& logits, const Array& labels, bool take_mean) {
  const Int rows = at(logits.shape, 0), classes = at(logits.shape, 1);
  const Array p = rows > 0 ? log_softmax(logits, 1) : logits;
  long double loss = 0;
  for (Int i = 0; i < rows; ++i)
    loss -= static_cast<long double>(p[i * classes + static_cast<Int>(labels[i])]);
  if (take_mean) loss /= static_cast<long double>(rows);
  return Array(Sizes{}, std::vector<double>{static_cast<double>(loss)});
}

inline Array mse_loss(const Array& a, const Array& b, bool take_mean) {
  const Array square = zip(a, b, [](double x, double y) { return (x - y) * (x - y); });
  return take_mean ? mean(square) : sum(square);
}

}  // namespace reference
