#pragma once
// The losses by their formulas in double precision, term by term.
#include <string>

#include "reference/softmax.hpp"

namespace reference {

/// Applies a reduction by name to the terms.
inline Array joined(const Array& terms, const std::string& reduction) {
  return reduction == "none" ? terms : reduction == "sum" ? sum(terms) : mean(terms);
}

struct Classes {
  std::vector<double> weight;  // empty: all 1
  double smoothing = 0;
  Int ignored = -100;
};

/// x [n, classes, d1, …]: log-probabilities; labels [n, d1, …]. Returns the terms, and in `divisor`
/// the number that the mean divides by.
inline Array label_terms(const Array& x, const Array& labels, const Classes& c, double& divisor) {
  const Int n = at(x.shape, 0), classes = at(x.shape, 1), inner = n > 0 ? labels.size() / n : 0;
  const auto weight = [&](Int k) {
    return c.weight.empty() ? 1.0 : c.weight.at(static_cast<std::size_t>(k));
  };
  Array terms(labels.shape);
  divisor = 0;
  for (Int i = 0; i < n; ++i)
    for (Int j = 0; j < inner; ++j) {
      const auto label = static_cast<Int>(labels[i * inner + j]);
      if (label == c.ignored) continue;
      const auto log_p = [&](Int k) { return x[(i * classes + k) * inner + j]; };
      double even = 0;
      for (Int k = 0; k < classes; ++k) even -= weight(k) * log_p(k);
      terms[i * inner + j] = -(1 - c.smoothing) * weight(label) * log_p(label) +
                             c.smoothing / static_cast<double>(classes) * even;
      divisor += weight(label);
    }
  return terms;
}
inline Array joined(const Array& terms, double divisor, const std::string& reduction) {
  if (reduction != "mean") return joined(terms, reduction);
  return map(sum(terms), [divisor](double s) { return s / divisor; });
}

/// The same with probabilities as targets, of x's shape.
inline Array probability_terms(const Array& x, const Array& target, const Classes& c) {
  const Int n = at(x.shape, 0), classes = at(x.shape, 1);
  Sizes shape = x.shape;
  shape.erase(shape.begin() + 1);
  Array terms(shape);
  const Int inner = n > 0 ? terms.size() / n : 0;
  for (Int i = 0; i < n; ++i)
    for (Int k = 0; k < classes; ++k)
      for (Int j = 0; j < inner; ++j) {
        const Int e = (i * classes + k) * inner + j;
        const double t = target[e] * (1 - c.smoothing) + c.smoothing / static_cast<double>(classes);
        terms[i * inner + j] -=
            t * (c.weight.empty() ? 1.0 : c.weight.at(static_cast<std::size_t>(k))) * x[e];
      }
  return terms;
}

inline double softplus(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
inline double positive(double x) { return x > 0 ? x : 0; }

/// Returns f(index of the first element of a's vector, its length) for every vector along the last
/// dim.
template <class F> Array over_vectors(const Array& a, F f) {
  Sizes shape = a.shape;
  const Int d = shape.back();
  shape.pop_back();
  Array out(shape);
  for (Int i = 0; i < out.size(); ++i) out[i] = f(i * d, d);
  return out;
}

inline double distance(const Array& a, const Array& b, Int begin, Int d, double eps) {
  double s = 0;
  for (Int i = begin; i < begin + d; ++i) s += (a[i] - b[i] + eps) * (a[i] - b[i] + eps);
  return std::sqrt(s);
}
inline double cosine(const Array& a, const Array& b, Int begin, Int d) {
  double ab = 0, aa = 1e-12, bb = 1e-12;
  for (Int i = begin; i < begin + d; ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return ab / std::sqrt(aa * bb);
}

inline Array capsule_terms(const Array& lengths, const Array& labels, double present, double absent,
                           double lambda) {
  return over_vectors(lengths, [&](Int begin, Int classes) {
    double total = 0;
    for (Int k = 0; k < classes; ++k) {
      const double v = lengths[begin + k],
                   there = labels[begin / classes] == static_cast<double>(k) ? 1 : 0;
      total += there * positive(present - v) * positive(present - v) +
               lambda * (1 - there) * positive(v - absent) * positive(v - absent);
    }
    return total;
  });
}

}  // namespace reference
