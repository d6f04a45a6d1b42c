#include <algorithm>

#include <braid/core/ops/linear.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/matmul.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;

const std::vector<DType> kTypes{DType::int32,    DType::int64,   DType::float16,
                                DType::bfloat16, DType::float32, DType::float64};

/// (K + 2) · Σ |a| |b|, in units of the accumulator's rounding error.
Array product_bound(const Array& a, const Array& b) {
  const double k = static_cast<double>(a.shape.back());
  return reference::map(reference::matmul(reference::abs(a), reference::abs(b)),
                        [k](double s) { return (k + 2) * s; });
}

/// A bias is one more product, wherever in the sum it is added.
Array layer_bound(const Array& x, const Array& w, const Array& b) {
  const double k = static_cast<double>(x.shape.back());
  return reference::map(reference::linear(reference::abs(x), reference::abs(w), reference::abs(b)),
                        [k](double s) { return (k + 3) * s; });
}

}  // namespace

void add_product_cases(std::vector<OpCase>& list) {
  struct Shapes {
    const char* variant;
    Sizes a, b;
  };
  for (const Shapes& s : std::vector<Shapes>{{"", {2, 3}, {3, 4}},
                                             {"vector by vector", {3}, {3}},
                                             {"vector by matrix", {3}, {3, 2}},
                                             {"matrix by vector", {2, 3}, {3}},
                                             {"one column", {3, 2}, {2, 1}},
                                             {"outer product", {3, 1}, {1, 4}},
                                             {"batch", {2, 2, 3}, {2, 3, 2}},
                                             {"batch by matrix", {2, 2, 3}, {3, 2}},
                                             {"matrix by batch", {2, 3}, {2, 3, 2}},
                                             {"broadcast batches", {2, 1, 2, 3}, {2, 3, 2}},
                                             {"batch by vector", {2, 2, 3}, {3}},
                                             {"vector by batch", {3}, {2, 3, 2}}}) {
    OpCase c;
    c.op = "matmul";
    c.variant = s.variant;
    c.inputs = {{s.a}, {s.b}};
    c.call = function_of([](T a, T b) { return matmul(a, b); });
    c.torch = "torch.matmul(x0, x1)";
    c.expected = expecting(reference::matmul);
    c.dtypes = kTypes;
    c.accuracy = Accuracy::bound;
    c.bound = expecting(product_bound);
    list.push_back(c);
  }
  for (const Shapes& s : std::vector<Shapes>{{"rows", {4, 3}, {2, 3}},
                                             {"vector", {3}, {2, 3}},
                                             {"batch", {2, 2, 3}, {2, 3}},
                                             {"one output", {4, 3}, {1, 3}}}) {
    OpCase c;
    c.op = "linear";
    c.variant = s.variant;
    c.inputs = {{s.a}, {s.b}, {{s.b[0]}}};
    c.call = function_of([](T x, T w, T b) { return linear(x, w, b); });
    c.torch = "F.linear(x0, x1, x2)";
    c.expected = expecting(
        [](const Array& x, const Array& w, const Array& b) { return reference::linear(x, w, b); });
    c.dtypes = kTypes;
    c.accuracy = Accuracy::bound;
    c.bound = expecting(layer_bound);
    list.push_back(c);
    c.variant += ", no bias";
    c.inputs.pop_back();
    c.call = function_of([](T x, T w) { return linear(x, w); });
    c.torch = "F.linear(x0, x1)";
    c.expected = expecting([](const Array& x, const Array& w) { return reference::linear(x, w); });
    c.bound = expecting(
        [](const Array& x, const Array& w) { return product_bound(x, reference::transposed(w)); });
    list.push_back(c);
  }
  for (const Shapes& s : std::vector<Shapes>{
           {"rows", {4, 3}, {2, 3}}, {"vector", {3}, {2, 3}}, {"batch", {2, 2, 3}, {2, 3}}}) {
    OpCase c;
    c.op = "linear_relu";
    c.variant = s.variant;
    c.inputs = {{s.a}, {s.b}, {{s.b[0]}}};
    c.call = function_of([](T x, T w, T b) { return linear_relu(x, w, b); });
    c.torch = "F.relu(F.linear(x0, x1, x2))";
    const auto relu = [](double v) { return std::max(v, 0.0); };
    c.expected = expecting([relu](const Array& x, const Array& w, const Array& b) {
      return reference::map(reference::linear(x, w, b), relu);
    });
    c.dtypes = kTypes;
    c.accuracy = Accuracy::bound;
    c.bound = expecting(layer_bound);
    list.push_back(c);
  }
  on_device::add_product_errors(list);
}

}  // namespace braid::test
