// Reductions beyond sums and extremes.
#include <algorithm>
#include <limits>

#include <braid/core/ops/create.hpp>
#include <braid/core/ops/reduce.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/statistics.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using Kind = Input::Kind;
using T = const Tensor&;

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Dims {
  const char* variant;
  Sizes shape, dims;
  bool keepdim;
};

const std::vector<Dims>& dims_of_statistics() {
  static const std::vector<Dims> list{{"all", {2, 3, 2}, {}, false},
                                      {"last dim", {3, 4}, {-1}, false},
                                      {"first dim, keepdim", {3, 4}, {0}, true},
                                      {"middle dim", {2, 3, 2}, {1}, false},
                                      {"two dims", {2, 3, 2}, {0, 2}, false},
                                      {"all, keepdim", {2, 3}, {}, true}};
  return list;
}

/// Words for dims and keepdim.
std::string in_torch(const Dims& d) {
  std::string text = "dim=";
  if (d.dims.empty()) text += "None";
  else {
    text += "(";
    for (const std::int64_t i : d.dims) text += str(i, ", ");
    text += ")";
  }
  return text + (d.keepdim ? ", keepdim=True" : "");
}

template <class F>
OpCase statistic(const char* op, const Dims& d, std::string variant, Kind kind, Function call,
                 F fold, std::string torch) {
  OpCase c;
  c.op = op;
  c.variant = std::move(variant);
  c.inputs = {{d.shape, kind}};
  c.call = std::move(call);
  c.expected = expecting(
      [d, fold](const Array& a) { return reference::reduce(a, d.dims, d.keepdim, fold); });
  c.dtypes = floating_dtypes();
  c.torch = std::move(torch);
  return c;
}

double log2_ceil(double n) { return n > 1 ? std::ceil(std::log2(n)) : 0; }
double size_of_mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += std::fabs(x);
  return sum / static_cast<double>(v.size());
}

/// In roundings: the squares' sum, and the mean's own error E, which moves every difference: 2 E
/// Σ|x - mean| / (n - c).
double error_of_variance(const std::vector<double>& v, double correction) {
  const double n = static_cast<double>(v.size()), of_mean = (log2_ceil(n) + 3) * size_of_mean(v);
  return (log2_ceil(n) + 8) * reference::variance(v, correction) +
         2 * (of_mean + size_of_mean(v)) * 2 * size_of_mean(v) * n / std::max(1.0, n - correction);
}

/// The bound of each result by its group.
template <class F> auto bound_of(const Dims& d, F fold) {
  return expecting(
      [d, fold](const Array& a) { return reference::reduce(a, d.dims, d.keepdim, fold); });
}

/// Three wrong dims, types and tensors.
template <class F> void refuse(OpCase& c, F f, bool floating = true) {
  const std::string op = c.op;
  const auto x = [] { return on_device::zeros({2, 3}); };
  c.errors.push_back({"dims", [=] { (void)f(x(), {2}); }, "IndexError", op + ": expected .*got 2"});
  c.errors.push_back(
      {"dims", [=] { (void)f(x(), {0, -3}); }, "IndexError", op + ": expected .*got -3"});
  c.errors.push_back(
      {"dims", [=] { (void)f(x(), {1, -1}); }, "ShapeError", op + ": expected each dim once"});
  c.errors.push_back({"x", [=] { (void)f(Tensor(), {}); }, "ArgumentError", "undefined"});
  if (floating) {
    for (const DType t : {DType::bool_, DType::int64, DType::uint8})
      c.errors.push_back({"x", [=] { (void)f(x().to(t), {}); }, "DTypeError",
                          str(op, ": expected a floating point tensor, got ", t)});
  } else {
    c.errors.push_back({"x", [=] { (void)f(on_device::zeros({}), {1}); }, "IndexError",
                        op + ": expected .*got 1"});
    c.errors.push_back({"x", [=] { (void)f(on_device::zeros({2}), {0, 0}); }, "ShapeError",
                        op + ": expected each dim once"});
  }
}

void add_spreads(std::vector<OpCase>& list) {
  for (const Dims& d : dims_of_statistics())
    for (const double correction : {1.0, 0.0}) {
      const Shape dims(d.dims);
      const bool keep = d.keepdim;
      const std::string variant = str(d.variant, correction == 1 ? "" : ", biased"),
                        words = str("(x0, ", in_torch(d), ", correction=", correction, ")");
      const auto variance = [correction](const std::vector<double>& v) {
        return reference::variance(v, correction);
      };
      const auto of_variance = [correction](const std::vector<double>& v) {
        return error_of_variance(v, correction);
      };
      OpCase c = statistic("var", d, variant, Kind::value,
                           function_of([=](T x) { return var(x, dims, keep, correction); }),
                           variance, "torch.var" + words);
      c.accuracy = Accuracy::bound;
      c.bound = bound_of(d, of_variance);
      if (variant == "all") refuse(c, [](T x, const Shape& s) { return var(x, s); });
      list.push_back(c);

      c = statistic(
          "std", d, variant, Kind::value,
          function_of([=](T x) { return braid::std(x, dims, keep, correction); }),
          [correction](const std::vector<double>& v) {
            return std::sqrt(reference::variance(v, correction));
          },
          "torch.std" + words);
      c.accuracy = Accuracy::bound;
      // the mean's error adds no more than itself to the root
      c.bound = bound_of(d, [correction](const std::vector<double>& v) {
        const double n = static_cast<double>(v.size()),
                     root = std::sqrt(reference::variance(v, correction));
        return (log2_ceil(n) / 2 + 6) * root +
               std::sqrt(n / std::max(1.0, n - correction)) * (log2_ceil(n) + 4) * size_of_mean(v);
      });
      c.kinks = true;  // a root of 0
      if (variant == "all") refuse(c, [](T x, const Shape& s) { return braid::std(x, s); });
      list.push_back(c);

      c = statistic("var_mean", d, variant, Kind::value,
                    function_of([=](T x) -> std::vector<Tensor> {
                      const VarMean y = var_mean(x, dims, keep, correction);
                      return {y.var, y.mean};
                    }),
                    variance, "torch.var_mean" + words);
      c.expected = [d, variance](const std::vector<Array>& a) {
        return std::vector<Array>{reference::reduce(a[0], d.dims, d.keepdim, variance),
                                  reference::mean(a[0], d.dims, d.keepdim)};
      };
      c.accuracy = Accuracy::bound;
      c.bound = [d, of_variance](const std::vector<Array>& a) {
        return std::vector<Array>{
            reference::reduce(a[0], d.dims, d.keepdim, of_variance),
            reference::reduce(a[0], d.dims, d.keepdim, [](const std::vector<double>& v) {
              return (log2_ceil(static_cast<double>(v.size())) + 3) * size_of_mean(v);
            })};
      };
      if (variant == "all") refuse(c, [](T x, const Shape& s) { return var_mean(x, s); });
      list.push_back(c);
    }
}

void add_logsumexps(std::vector<OpCase>& list) {
  for (const Dims& d : dims_of_statistics()) {
    const Shape dims(d.dims);
    const bool keep = d.keepdim;
    OpCase c = statistic(
        "logsumexp", d, d.variant, Kind::value,
        function_of([=](T x) { return logsumexp(x, dims, keep); }), reference::log_sum_exp,
        d.dims.empty() ? (keep ? "torch.logsumexp(x0, tuple(range(x0.dim())), keepdim=True)"
                               : "torch.logsumexp(x0, tuple(range(x0.dim())))")
                       : str("torch.logsumexp(x0, ", in_torch(d), ")"));
    c.accuracy = Accuracy::bound;
    // exp's 8 roundings and the difference's, the sum's; log's 8; the last addition
    c.bound = bound_of(d, [](const std::vector<double>& v) {
      if (v.empty()) return 0.0;
      double largest = -kInf, range = 0;
      for (const double x : v) largest = std::max(largest, x);
      for (const double x : v) range = std::max(range, largest - x);
      const double y = reference::log_sum_exp(v);
      return range + 10 + log2_ceil(static_cast<double>(v.size())) + 8 * std::fabs(y - largest) +
             std::fabs(y);
    });
    if (c.variant == "all") refuse(c, [](T x, const Shape& s) { return logsumexp(x, s); });
    list.push_back(c);
  }
}

void add_norms(std::vector<OpCase>& list) {
  for (const double p : {2.0, 1.0, kInf, -kInf, 3.0, 0.5, 0.0})
    for (const Dims& d : dims_of_statistics()) {
      if (p != 2 && d.dims.size() != 1) continue;
      const Shape dims(d.dims);
      const bool keep = d.keepdim;
      const std::string of = std::isinf(p) ? (p > 0 ? "float('inf')" : "-float('inf')") : str(p);
      OpCase c = statistic(
          "norm", d, str(d.variant, ", p = ", p), std::isinf(p) ? Kind::distinct : Kind::nonzero,
          function_of([=](T x) { return norm(x, p, dims, keep); }),
          [p](const std::vector<double>& v) { return reference::norm(v, p); },
          str("torch.linalg.vector_norm(x0, ", of, ", ", in_torch(d), ")"));
      c.kinks = std::isinf(p);
      // a norm of many is too large for float16
      if (p == 0.5) c.dtypes = {DType::bfloat16, DType::float32, DType::float64};
      c.differentiable = p != 0;
      c.accuracy = Accuracy::bound;
      // each power's error, the sum's, the last power's: pow within 4 ULP
      c.bound = bound_of(d, [p](const std::vector<double>& v) {
        return std::isinf(p) || p == 0 ? 0
                                       : (10 + log2_ceil(static_cast<double>(v.size())) + 10) *
                                             std::max(1 / p, 1.0) * reference::norm(v, p);
      });
      if (c.variant == "last dim, p = 2") {
        refuse(c, [](T x, const Shape& s) { return norm(x, 2, s); });
        for (const Shape& shape : {Shape{0}, Shape{2, 0}, Shape{0, 3}})
          c.errors.push_back({"p", [shape] { (void)norm(on_device::zeros(shape), kInf); },
                              "ShapeError", "max: expected at least one element"});
        c.errors.push_back({"p", [] { (void)norm(on_device::zeros({2}), std::nan("")); },
                            "ArgumentError", "norm: expected a number p, got nan"});
      }
      list.push_back(c);
    }
}

void add_truths(std::vector<OpCase>& list) {
  for (const Dims& d : dims_of_statistics()) {
    const Shape dims(d.dims);
    const bool keep = d.keepdim;
    const auto add = [&](const char* op, auto f, auto fold, DType result,
                         const std::string& torch) {
      OpCase c = statistic(op, d, d.variant, Kind::value,
                           function_of([=](T x) { return f(x, dims, keep); }), fold, torch);
      c.dtypes = all_dtypes();
      c.differentiable = false;
      c.result = [result](DType) { return result; };
      if (c.variant == "all") refuse(c, [f](T x, const Shape& s) { return f(x, s, false); }, false);
      list.push_back(c);
    };
    const auto count = [](const std::vector<double>& v) {
      return static_cast<double>(
          std::count_if(v.begin(), v.end(), [](double x) { return x != 0; }));
    };
    const std::string words = str("(x0 != 0, ", in_torch(d), ")");
    add(
        "any", [](T x, const Shape& s, bool k) { return any(x, s, k); },
        [=](const std::vector<double>& v) { return count(v) > 0 ? 1.0 : 0.0; }, DType::bool_,
        "torch.any" + words);
    add(
        "all", [](T x, const Shape& s, bool k) { return all(x, s, k); },
        [=](const std::vector<double>& v) {
          return count(v) == static_cast<double>(v.size()) ? 1.0 : 0.0;
        },
        DType::bool_, "torch.all" + words);
    add(
        "count_nonzero", [](T x, const Shape& s, bool k) { return count_nonzero(x, s, k); }, count,
        DType::int64, "torch.sum" + words);
  }
  for (const bool largest : {true, false}) {
    OpCase c = statistic(
        largest ? "argmax" : "argmin", {"", {2, 3, 2}, {}, false}, "over all", Kind::value,
        function_of([=](T x) { return largest ? argmax(x) : argmin(x); }),
        [=](const std::vector<double>& v) {
          return static_cast<double>(largest ? reference::first_largest(v)
                                             : reference::first_smallest(v));
        },
        str("torch.", largest ? "argmax" : "argmin", "(x0)"));
    c.dtypes = {DType::uint8,    DType::int32,   DType::int64,  DType::float16,
                DType::bfloat16, DType::float32, DType::float64};
    c.differentiable = false;
    c.result = [](DType) { return DType::int64; };
    for (const Shape& shape : {Shape{0}, Shape{2, 0}})
      c.errors.push_back({"x",
                          [=] {
                            (void)(largest ? argmax(on_device::zeros(shape))
                                           : argmin(on_device::zeros(shape)));
                          },
                          "ShapeError", c.op + ": expected at least one element"});
    c.errors.push_back({"x", [=] { (void)(largest ? argmax(Tensor()) : argmin(Tensor())); },
                        "ArgumentError", "undefined"});
    list.push_back(c);
  }
}

}  // namespace

void add_statistics_cases(std::vector<OpCase>& list) {
  add_spreads(list);
  for (const char* op : {"var", "std", "var_mean"})
    BadInputs(list, op).free("correction",
                             "every number is one; n and more give an infinity or NaN");
  add_logsumexps(list);
  add_norms(list);
  add_truths(list);
}

}  // namespace braid::test
