#pragma once
// Matrix products by the definition.
#include "reference/elementwise.hpp"

namespace reference {

/// NumPy's rule: a vector is a row on the left and a column on the right, and that dim is removed
/// from the result. Leading dims broadcast.
inline Array matmul(const Array& a, const Array& b) {
  const bool row = rank(a) == 1, column = rank(b) == 1;
  Array x = a, y = b;
  if (row) x.shape.insert(x.shape.begin(), 1);
  if (column) y.shape.push_back(1);
  const Int m = at(x.shape, rank(x) - 2), k = at(x.shape, rank(x) - 1),
            n = at(y.shape, rank(y) - 1);
  if (at(y.shape, rank(y) - 2) != k) throw std::logic_error("reference::matmul");
  const Sizes batch_a(x.shape.begin(), x.shape.end() - 2),
      batch_b(y.shape.begin(), y.shape.end() - 2);
  const Sizes batch = broadcast(batch_a, batch_b);
  // Indices of the matrices, so that batches broadcast as elementwise operands do.
  Array number_a(batch_a), number_b(batch_b);
  for (Int i = 0; i < number_a.size(); ++i) number_a[i] = static_cast<double>(i);
  for (Int i = 0; i < number_b.size(); ++i) number_b[i] = static_cast<double>(i);
  Sizes shape = batch;
  if (!row) shape.push_back(m);
  if (!column) shape.push_back(n);
  Array c(shape);
  Int out = 0;
  const double *const left = x.data.data(), *const right = y.data.data();
  for_each(batch, [&](const Sizes& index) {
    const Int base_a = static_cast<Int>(broadcast_value(number_a, index)) * m * k;
    const Int base_b = static_cast<Int>(broadcast_value(number_b, index)) * k * n;
    for (Int i = 0; i < m; ++i) {
      for (Int j = 0; j < n; ++j) {
        long double sum = 0;
        for (Int p = 0; p < k; ++p)
          sum += static_cast<long double>(left[base_a + i * k + p]) *
                 static_cast<long double>(right[base_b + p * n + j]);
        c[out++] = static_cast<double>(sum);
      }
    }
  });
  return c;
}

/// The transpose of a matrix.
inline Array transposed(const Array& a) {
  Array out({at(a.shape, 1), at(a.shape, 0)});
  for (Int i = 0; i < at(a.shape, 0); ++i)
    for (Int j = 0; j < at(a.shape, 1); ++j)
      out[j * at(a.shape, 0) + i] = a[i * at(a.shape, 1) + j];
  return out;
}

/// x weightᵀ + bias; an empty bias means no bias.
inline Array linear(const Array& x, const Array& weight, const Array& bias = Array(Sizes{0})) {
  const Array y = matmul(x, transposed(weight));
  return bias.size() == 0 ? y : zip(y, bias, [](double a, double b) { return a + b; });
}

}  // namespace reference
