#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/reduce.hpp"
#include "reference/softmax.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;

struct Dims {
  const char* variant;
  Sizes shape, dims;
  bool keepdim;
};

const std::vector<Dims>& dims_of_reductions() {
  static const std::vector<Dims> list{
      {"all", {2, 3, 2}, {}, false},
      {"all, keepdim", {2, 3}, {}, true},
      {"last dim", {3, 4}, {-1}, false},
      {"first dim", {3, 4}, {0}, false},
      {"middle dim", {2, 3, 2}, {1}, false},
      {"two dims", {2, 3, 2}, {0, 2}, false},
      {"dims out of order", {2, 3, 2}, {2, 1}, true},
      {"last dim, keepdim", {2, 3}, {1}, true},
      {"rank 0", {}, {}, false},
      {"dim of size 1", {3, 1}, {1}, false},
      {"all dims by name", {2, 2}, {0, 1}, false},
  };
  return list;
}

DType summed(DType t) { return is_floating(t) ? t : DType::int64; }

double log2_ceil(double n) { return n > 1 ? std::ceil(std::log2(n)) : 0; }

/// A tuple of Python's.
std::string tuple(const Sizes& sizes) {
  std::string text = "(";
  for (const std::int64_t s : sizes) text += str(s, ", ");
  return text + ")";
}

OpCase reduction(const char* op, const Dims& d, Kind kind, Function call,
                 std::function<Array(const Array&)> expected) {
  OpCase c;
  c.op = op;
  c.variant = d.variant;
  c.inputs = {{d.shape, kind}};
  c.call = std::move(call);
  c.expected = expecting([expected](const Array& a) { return expected(a); });
  c.dtypes = floating_dtypes();
  return c;
}

constexpr const char* kNanChosen =
    "a NaN is what was chosen, so it gets the gradient; PyTorch makes it NaN for all elements";

/// amax and amin share the gradient among equal elements, as ours do; PyTorch's max and min with a
/// dim give it to one of them.
std::string in_torch(const char* op, const Dims& d) {
  return str("torch.", op, "(x0, dim=", tuple(d.dims), d.keepdim ? ", keepdim=True)" : ")");
}

void add_sums(std::vector<OpCase>& list) {
  for (const Dims& d : dims_of_reductions()) {
    const Shape dims(d.dims);
    const bool keep = d.keepdim;
    OpCase c = reduction("sum", d, Kind::value,
                         function_of([dims, keep](T x) { return sum(x, dims, keep); }),
                         [d](const Array& a) { return reference::sum(a, d.dims, d.keepdim); });
    c.dtypes = all_dtypes();
    c.torch = in_torch("sum", d);
    c.result = summed;
    c.accuracy = Accuracy::bound;
    c.bound = expecting([d](const Array& a) {
      const Array sums = reference::sum(reference::abs(a), d.dims, d.keepdim);
      const double terms = static_cast<double>(a.size()) /
                           static_cast<double>(std::max<std::int64_t>(sums.size(), 1));
      return reference::map(sums, [terms](double s) { return (log2_ceil(terms) + 2) * s; });
    });
    list.push_back(c);
    c = reduction("mean", d, Kind::value,
                  function_of([dims, keep](T x) { return mean(x, dims, keep); }),
                  [d](const Array& a) { return reference::mean(a, d.dims, d.keepdim); });
    c.torch = in_torch("mean", d);
    c.accuracy = Accuracy::bound;
    c.bound = expecting([d](const Array& a) {
      const Array sums = reference::sum(reference::abs(a), d.dims, d.keepdim);
      const double terms = static_cast<double>(a.size()) /
                           static_cast<double>(std::max<std::int64_t>(sums.size(), 1));
      return reference::map(sums, [terms](double s) { return (log2_ceil(terms) + 3) * s / terms; });
    });
    list.push_back(c);
    c = reduction("max", d, Kind::distinct,
                  function_of([dims, keep](T x) { return max(x, dims, keep); }),
                  [d](const Array& a) { return reference::max(a, d.dims, d.keepdim); });
    c.dtypes = all_dtypes();
    c.kinks = true;
    c.torch = in_torch("amax", d);
    c.differs = {{"nan.*gradient", kNanChosen}};
    list.push_back(c);
    OpCase m = reduction("min", d, Kind::distinct,
                         function_of([dims, keep](T x) { return min(x, dims, keep); }),
                         [d](const Array& a) { return reference::min(a, d.dims, d.keepdim); });
    m.dtypes = c.dtypes;
    m.kinks = true;
    m.torch = in_torch("amin", d);
    m.differs = c.differs;
    list.push_back(m);
  }
  // The members are the same functions.
  list.push_back(reduction("sum", {"member", {2, 3}, {}, false}, Kind::value,
                           function_of([](T x) { return x.sum(); }),
                           [](const Array& a) { return reference::sum(a); }));
  list.back().torch = "x0.sum()";
  list.back().accuracy = Accuracy::tolerance;
  list.push_back(reduction("sum", {"member with dims", {2, 3}, {}, false}, Kind::value,
                           function_of([](T x) { return x.sum({0}, true); }),
                           [](const Array& a) { return reference::sum(a, {0}, true); }));
  list.back().torch = "x0.sum(0, True)";
  list.back().accuracy = Accuracy::tolerance;
  list.push_back(reduction("mean", {"member", {2, 3}, {}, false}, Kind::value,
                           function_of([](T x) { return x.mean(); }),
                           [](const Array& a) { return reference::mean(a); }));
  list.back().torch = "x0.mean()";
  list.back().accuracy = Accuracy::tolerance;
  list.push_back(reduction("mean", {"member with dims", {2, 3}, {}, false}, Kind::value,
                           function_of([](T x) { return x.mean({-1}); }),
                           [](const Array& a) { return reference::mean(a, {-1}); }));
  list.back().torch = "x0.mean(-1)";
  list.back().accuracy = Accuracy::tolerance;
  list.push_back(reduction("max", {"member", {2, 3}, {}, false}, Kind::distinct,
                           function_of([](T x) { return x.max(); }),
                           [](const Array& a) { return reference::max(a); }));
  list.back().torch = "x0.max()";
  list.back().kinks = true;
}

void add_arg(std::vector<OpCase>& list) {
  for (const Dims& d : std::vector<Dims>{{"last dim", {3, 4}, {-1}, false},
                                         {"first dim", {3, 4}, {0}, false},
                                         {"middle dim, keepdim", {2, 3, 2}, {1}, true},
                                         {"vector", {5}, {0}, false}}) {
    const std::int64_t dim = d.dims[0];
    const bool keep = d.keepdim;
    for (const bool largest : {true, false}) {
      OpCase c = reduction(
          largest ? "argmax" : "argmin", d, Kind::value,
          function_of([=](T x) { return largest ? argmax(x, dim, keep) : argmin(x, dim, keep); }),
          [=](const Array& a) {
            return largest ? reference::argmax(a, dim, keep) : reference::argmin(a, dim, keep);
          });
      c.dtypes = all_dtypes();
      c.differs = {{"^bool: refused", "false < true here; PyTorch has no order of bool"}};
      c.torch = str("torch.", c.op, "(x0, ", dim, keep ? ", keepdim=True)" : ")");
      c.differentiable = false;
      c.result = [](DType) { return DType::int64; };
      list.push_back(c);
    }
  }
  list.push_back(reduction("argmax", {"member", {2, 3}, {}, false}, Kind::value,
                           function_of([](T x) { return x.argmax(1); }),
                           [](const Array& a) { return reference::argmax(a, 1); }));
  list.back().torch = "x0.argmax(1)";
  list.back().differentiable = false;
  list.back().result = [](DType) { return DType::int64; };
}

/// Errors of softmax in roundings, from those of its steps: x - max rounded, exp within 4 ULP (8
/// roundings), the bound of the sum, the division.
Array softmax_bound(const Array& x, std::int64_t dim) {
  const Array y = reference::softmax(x, dim),
              range = reference::zip(reference::max(x, {dim}, true), reference::min(x, {dim}, true),
                                     std::minus<>());
  const double terms =
      static_cast<double>(x.size()) / static_cast<double>(std::max<std::int64_t>(range.size(), 1));
  return reference::zip(
      y, range, [=](double v, double d) { return v * (2 * (d + 8) + log2_ceil(terms) + 4); });
}
/// Of x - (max + log Σ): the same sum, log within 4 ULP, two subtractions.
Array log_softmax_bound(const Array& x, std::int64_t dim) {
  const Array y = reference::log_softmax(x, dim),
              range = reference::zip(reference::max(x, {dim}, true), reference::min(x, {dim}, true),
                                     std::minus<>());
  const double terms =
      static_cast<double>(x.size()) / static_cast<double>(std::max<std::int64_t>(range.size(), 1));
  const Array of_lse = reference::zip(
      range, reference::max(y, {dim}, true),
      [=](double d, double largest) { return d + 10 + log2_ceil(terms) - 9 * largest; });
  return reference::zip(reference::zip(reference::abs(x), reference::abs(y),
                                       [](double a, double b) { return 2 * a + 2 * b; }),
                        of_lse, std::plus<>());
}
/// Of the sum over the rows of -log softmax at the label, times scale.
Array cross_entropy_bound(const Array& x, const Array& labels, bool take_mean) {
  const std::int64_t rows = reference::at(x.shape, 0), classes = reference::at(x.shape, 1);
  const Array y = reference::log_softmax(x, 1), bound = log_softmax_bound(x, 1);
  double errors = 0, sizes = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    errors += bound[i * classes + static_cast<std::int64_t>(labels[i])];
    sizes += std::fabs(y[i * classes + static_cast<std::int64_t>(labels[i])]);
  }
  return Array(Sizes{}, (errors + (log2_ceil(static_cast<double>(rows)) + 4) * sizes) /
                            (take_mean ? static_cast<double>(rows) : 1));
}

void add_softmaxes(std::vector<OpCase>& list) {
  for (const Dims& d : std::vector<Dims>{{"last dim", {3, 4}, {-1}, false},
                                         {"first dim", {3, 4}, {0}, false},
                                         {"middle dim", {2, 3, 2}, {1}, false},
                                         {"vector", {5}, {0}, false},
                                         {"one class", {3, 1}, {1}, false}}) {
    const std::int64_t dim = d.dims[0];
    OpCase c =
        reduction("softmax", d, Kind::value, function_of([dim](T x) { return softmax(x, dim); }),
                  [dim](const Array& a) { return reference::softmax(a, dim); });
    c.accuracy = Accuracy::bound;
    c.bound = expecting([dim](const Array& a) { return softmax_bound(a, dim); });
    c.torch = str("torch.softmax(x0, ", dim, ")");
    list.push_back(c);
    c = reduction("log_softmax", d, Kind::value,
                  function_of([dim](T x) { return log_softmax(x, dim); }),
                  [dim](const Array& a) { return reference::log_softmax(a, dim); });
    c.accuracy = Accuracy::bound;
    c.bound = expecting([dim](const Array& a) { return log_softmax_bound(a, dim); });
    c.torch = str("torch.log_softmax(x0, ", dim, ")");
    list.push_back(c);
  }
  for (const bool take_mean : {true, false}) {
    const Reduction r = take_mean ? Reduction::mean : Reduction::sum;
    OpCase c;
    c.op = "cross_entropy";
    c.variant = take_mean ? "mean" : "sum";
    c.inputs = {{{4, 3}}, {{4}, Kind::index, 3, false}};
    c.call = function_of([r](T x, T y) { return cross_entropy(x, y, r); });
    c.expected = expecting([take_mean](const Array& x, const Array& y) {
      return reference::cross_entropy(x, y, take_mean);
    });
    c.dtypes = floating_dtypes();
    c.accuracy = Accuracy::bound;
    c.bound = expecting([take_mean](const Array& x, const Array& y) {
      return cross_entropy_bound(x, y, take_mean);
    });
    c.torch = str("F.cross_entropy(x0, x1, reduction='", c.variant, "')");
    list.push_back(c);
    c.op = "mse_loss";
    c.inputs = {{{2, 3}}, {{2, 3}}};
    c.call = function_of([r](T x, T y) { return mse_loss(x, y, r); });
    c.expected = expecting([take_mean](const Array& x, const Array& y) {
      return reference::mse_loss(x, y, take_mean);
    });
    // each term: a difference, twice in a product
    c.bound = expecting([take_mean](const Array& x, const Array& y) {
      return reference::map(
          reference::mse_loss(x, y, take_mean),
          [n = static_cast<double>(x.size())](double v) { return (log2_ceil(n) + 6) * v; });
    });
    c.torch = str("F.mse_loss(x0, x1, reduction='", c.variant, "')");
    list.push_back(c);
  }
}

}  // namespace

void add_reduction_cases(std::vector<OpCase>& list) {
  add_sums(list);
  add_arg(list);
  add_softmaxes(list);
  on_device::add_reduction_errors(list);
}

}  // namespace braid::test
