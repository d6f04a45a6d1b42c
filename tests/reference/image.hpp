#pragma once
// Convolution, pooling and resizing by their definitions. Images are [n, c, h, w].
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/array.hpp"

namespace reference {

/// Convolution parameters; sizes are (height, width).
struct ConvRule {
  Sizes stride{1, 1}, pad{0, 0}, dilation{1, 1}, out{};
  Int groups = 1;
};

inline double pixel(const Array& x, Int n, Int c, Int h, Int w) {
  if (h < 0 || w < 0 || h >= at(x.shape, 2) || w >= at(x.shape, 3)) return 0;
  return value(x, {n, c, h, w});
}

/// weight [out, in / groups, kh, kw]; an empty bias means no bias.
inline Array conv(const Array& x, const Array& weight, const Array& bias, const ConvRule& r) {
  const Int in = at(weight.shape, 1), outs = at(weight.shape, 0) / r.groups;
  return generate(
      {at(x.shape, 0), at(weight.shape, 0), at(r.out, 0), at(r.out, 1)}, [&](const Sizes& y) {
        long double sum = bias.size() == 0 ? 0 : bias[at(y, 1)];
        for (Int c = 0; c < in; ++c)
          for (Int i = 0; i < at(weight.shape, 2); ++i)
            for (Int j = 0; j < at(weight.shape, 3); ++j) {
              const Int h = at(y, 2) * at(r.stride, 0) - at(r.pad, 0) + i * at(r.dilation, 0);
              const Int w = at(y, 3) * at(r.stride, 1) - at(r.pad, 1) + j * at(r.dilation, 1);
              sum += static_cast<long double>(value(weight, {at(y, 1), c, i, j})) *
                     static_cast<long double>(pixel(x, at(y, 0), at(y, 1) / outs * in + c, h, w));
            }
        return static_cast<double>(sum);
      });
}

/// weight [in, out / groups, kh, kw]: each input is spread over the outputs that its kernel covers.
inline Array conv_transposed(const Array& x, const Array& weight, const Array& bias,
                             const ConvRule& r) {
  const Int outs = at(weight.shape, 1), ins = at(weight.shape, 0) / r.groups;
  Array y({at(x.shape, 0), outs * r.groups, at(r.out, 0), at(r.out, 1)});
  const Sizes strides = row_major(y.shape);
  for_each(x.shape, [&](const Sizes& p) {
    for (Int o = 0; o < outs; ++o)
      for (Int i = 0; i < at(weight.shape, 2); ++i)
        for (Int j = 0; j < at(weight.shape, 3); ++j) {
          const Int h = at(p, 2) * at(r.stride, 0) - at(r.pad, 0) + i * at(r.dilation, 0);
          const Int w = at(p, 3) * at(r.stride, 1) - at(r.pad, 1) + j * at(r.dilation, 1);
          if (h < 0 || w < 0 || h >= at(r.out, 0) || w >= at(r.out, 1)) continue;
          y[offset({at(p, 0), at(p, 1) / ins * outs + o, h, w}, strides)] +=
              value(x, p) * value(weight, {at(p, 1), o, i, j});
        }
  });
  if (bias.size() > 0) {
    Int k = 0;
    for_each(y.shape, [&](const Sizes& p) { y[k++] += bias[at(p, 1)]; });
  }
  return y;
}

/// The input elements, with their weights, that one output position reads along one dim.
struct Seen {
  Sizes element;
  std::vector<double> weight;
};
using Rule = std::vector<Seen>;

/// Windows over `in` elements. divisor: 0 divides by the number of elements that exist, -1 counts
/// the padding too, and a positive number is the divisor itself.
inline Rule windows(Int in, Int out, Int kernel, Int stride, Int pad, Int dilation, Int divisor) {
  Rule rule;
  for (Int o = 0; o < out; ++o) {
    Seen seen;
    Int counted = 0;
    for (Int k = 0; k < kernel; ++k) {
      const Int i = o * stride - pad + k * dilation;
      if (i < in + pad) ++counted;
      if (i >= 0 && i < in) seen.element.push_back(i);
    }
    const auto exist = static_cast<Int>(seen.element.size());
    seen.weight.assign(seen.element.size(), 1.0 / static_cast<double>(divisor > 0   ? divisor
                                                                      : divisor < 0 ? counted
                                                                                    : exist));
    rule.push_back(seen);
  }
  return rule;
}
inline Rule adaptive(Int in, Int out) {
  Rule rule;
  for (Int o = 0; o < out; ++o) {
    Seen seen;
    // output o covers [o in / out, (o + 1) in / out); element i covers [i, i + 1)
    for (Int i = 0; i < in; ++i)
      if ((o + 1) * in > i * out && o * in < (i + 1) * out) seen.element.push_back(i);
    seen.weight.assign(seen.element.size(), 1.0 / static_cast<double>(seen.element.size()));
    rule.push_back(seen);
  }
  return rule;
}
/// `factor`: in / out, or the scale that the caller gives.
inline Rule nearest(Int in, Int out, double factor) {
  Rule rule;
  for (Int o = 0; o < out; ++o)
    rule.push_back(
        {{std::min(in - 1, static_cast<Int>(std::floor(static_cast<double>(o) * factor + 1e-9)))},
         {1.0}});
  return rule;
}
inline Rule linear_between(Int in, Int out, double factor, bool corners) {
  Rule rule;
  for (Int o = 0; o < out; ++o) {
    const double of_corners =
        out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0.0;
    const double source = corners ? static_cast<double>(o) * of_corners
                                  : std::max(0.0, (static_cast<double>(o) + 0.5) * factor - 0.5);
    const Int first = std::min(in - 1, static_cast<Int>(source)),
              second = std::min(in - 1, first + 1);
    const double part = std::min(1.0, source - static_cast<double>(first));
    if (second == first) rule.push_back({{first}, {1.0}});
    else rule.push_back({{first, second}, {1 - part, part}});
  }
  return rule;
}

/// Computes Σ weight · x over the elements that each output position reads.
inline Array weighted(const Array& x, const Rule& down, const Rule& across) {
  return generate({at(x.shape, 0), at(x.shape, 1), static_cast<Int>(down.size()),
                   static_cast<Int>(across.size())},
                  [&](const Sizes& y) {
                    const Seen &h = down.at(static_cast<std::size_t>(at(y, 2))),
                               &w = across.at(static_cast<std::size_t>(at(y, 3)));
                    long double sum = 0;
                    for (std::size_t i = 0; i < h.element.size(); ++i)
                      for (std::size_t j = 0; j < w.element.size(); ++j)
                        sum += static_cast<long double>(h.weight[i] * w.weight[j]) *
                               static_cast<long double>(
                                   value(x, {at(y, 0), at(y, 1), h.element[i], w.element[j]}));
                    return static_cast<double>(sum);
                  });
}

/// Returns {the largest element that each position reads, its index in the image}; a NaN counts as
/// the largest.
inline std::vector<Array> largest(const Array& x, const Rule& down, const Rule& across) {
  Array y({at(x.shape, 0), at(x.shape, 1), static_cast<Int>(down.size()),
           static_cast<Int>(across.size())}),
      index(y.shape);
  Int k = 0;
  for_each(y.shape, [&](const Sizes& p) {
    double best = -std::numeric_limits<double>::infinity();
    Int where = -1;
    for (const Int i : down.at(static_cast<std::size_t>(at(p, 2))).element)
      for (const Int j : across.at(static_cast<std::size_t>(at(p, 3))).element) {
        const double v = value(x, {at(p, 0), at(p, 1), i, j});
        if (where < 0 || v > best || std::isnan(v)) best = v, where = i * at(x.shape, 3) + j;
      }
    y[k] = best;
    index[k++] = static_cast<double>(where);
  });
  return {y, index};
}

}  // namespace reference
