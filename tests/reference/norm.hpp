#pragma once
// Normalisation, the dropout mask and attention, by their formulas in double precision.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "reference/array.hpp"

namespace reference {

/// y = (x - mean) / sqrt(var + eps) weight + bias. Elements with the same set(index) are normalised
/// together; affine(index) is the index into weight and bias.
inline Array normalised(const Array& x, const Array* weight, const Array* bias,
                        const std::function<Int(const Sizes&)>& set,
                        const std::function<Int(const Sizes&)>& affine, bool center, double eps) {
  struct Sums {
    double sum = 0, squares = 0, count = 0;
  };
  std::map<Int, Sums> sets;
  for_each(x.shape, [&](const Sizes& index) {
    Sums& s = sets[set(index)];
    s.sum += value(x, index), ++s.count;
  });
  for_each(x.shape, [&](const Sizes& index) {
    Sums& s = sets[set(index)];
    const double centred = value(x, index) - (center ? s.sum / s.count : 0);
    s.squares += centred * centred;
  });
  Array y(x.shape);
  for_each(x.shape, [&](const Sizes& index) {
    const Sums& s = sets[set(index)];
    const double w = weight ? (*weight)[affine(index)] : 1, b = bias ? (*bias)[affine(index)] : 0;
    y[offset(index, row_major(x.shape))] = (value(x, index) - (center ? s.sum / s.count : 0)) /
                                               std::sqrt(s.squares / s.count + eps) * w +
                                           b;
  });
  return y;
}

/// Normalises over the last `dims` dims: layer norm or, without center, RMS norm.
inline Array layer_norm(const Array& x, int dims, const Array* weight, const Array* bias,
                        bool center, double eps) {
  Int n = 1;
  for (int d = rank(x) - dims; d < rank(x); ++d) n *= at(x.shape, d);
  const Sizes strides = row_major(x.shape);
  return normalised(
      x, weight, bias, [=](const Sizes& i) { return offset(i, strides) / n; },
      [=](const Sizes& i) { return offset(i, strides) % n; }, center, eps);
}

inline Array group_norm(const Array& x, Int groups, const Array* weight, const Array* bias,
                        double eps) {
  const Int per_group = at(x.shape, 1) / groups;
  return normalised(
      x, weight, bias, [=](const Sizes& i) { return i[0] * groups + i[1] / per_group; },
      [](const Sizes& i) { return i[1]; }, true, eps);
}

inline Array batch_norm(const Array& x, const Array* weight, const Array* bias, double eps) {
  return normalised(
      x, weight, bias, [](const Sizes& i) { return i[1]; }, [](const Sizes& i) { return i[1]; },
      true, eps);
}

/// Word i % 4 of block i / 4 of Philox4x32-10 (Salmon et al. 2011).
inline std::uint32_t philox_word(std::uint64_t seed, std::uint64_t stream, std::uint64_t i) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(i / 4), static_cast<std::uint32_t>(i / 4 >> 32),
                        static_cast<std::uint32_t>(stream),
                        static_cast<std::uint32_t>(stream >> 32)};
  std::uint32_t k[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    const std::uint32_t next[4] = {
        static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(a)};
    for (int j = 0; j < 4; ++j) c[j] = next[j];
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  return c[i % 4];
}

/// Returns the dropout factor of element i: 0 with probability p, else 1 / (1 - p).
inline double drop_factor(std::uint64_t seed, std::uint64_t stream, Int i, double p) {
  return static_cast<double>(philox_word(seed, stream, static_cast<std::uint64_t>(i))) < p * 0x1p32
             ? 0
             : 1 / (1 - p);
}

/// softmax(scale q kᵀ + mask) v for [.., queries, width], [.., keys, width], [.., keys,
/// value_width] with equal leading dims. mask: [queries, keys] or null; -inf hides a key.
/// factor(index of the probability): the dropout factor.
inline Array attention(const Array& q, const Array& k, const Array& v, const Array* mask,
                       bool causal, double scale, const std::function<double(Int)>& factor = {}) {
  const int r = rank(q);
  const Int queries = at(q.shape, r - 2), width = at(q.shape, r - 1), keys = at(k.shape, r - 2),
            value_width = at(v.shape, r - 1);
  Sizes shape = q.shape;
  at(shape, r - 1) = value_width;
  Array out(shape);
  const Int heads = queries * value_width > 0 ? out.size() / (queries * value_width) : 0;
  for (Int h = 0; h < heads; ++h)
    for (Int i = 0; i < queries; ++i) {
      std::vector<double> p(static_cast<std::size_t>(keys));
      double top = -INFINITY, sum = 0;
      for (Int j = 0; j < keys; ++j) {
        double s = 0;
        for (Int e = 0; e < width; ++e)
          s += q[(h * queries + i) * width + e] * k[(h * keys + j) * width + e];
        s *= scale;
        if (mask) s += (*mask)[i * keys + j];
        if (causal && j > i) s = -INFINITY;
        p[static_cast<std::size_t>(j)] = s;
        top = std::max(top, s);
      }
      for (double& x : p) sum += x = top == -INFINITY ? 0 : std::exp(x - top);
      for (Int j = 0; j < keys; ++j) {
        const double weight = sum > 0 ? p[static_cast<std::size_t>(j)] / sum *
                                            (factor ? factor((h * queries + i) * keys + j) : 1)
                                      : 0;
        for (Int e = 0; e < value_width; ++e)
          out[(h * queries + i) * value_width + e] += weight * v[(h * keys + j) * value_width + e];
      }
    }
  return out;
}

}  // namespace reference
