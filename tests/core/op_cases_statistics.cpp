// Cases of variances, log-sum-exp and norms.
#include <algorithm>

#include <braid/core/ops/statistics.hpp>

#include "folds.hpp"
#include "op_case_makers.hpp"
#include "reference/reduce.hpp"

namespace braid::test {
namespace {

/// The bound is computed for each group too.
void bound(OpCase& c, const Dims& d, Fold fold) {
  c.accuracy = Accuracy::bound;
  c.bound = folding(d, std::move(fold));
}

// The formulas of the references.
double variance_of(Numbers1 v, double correction) {
  L mean = 0, sum = 0;
  for (const double x : v) mean += x;
  mean /= static_cast<L>(v.size());
  for (const double x : v) sum += (x - mean) * (x - mean);
  return static_cast<double>(sum /
                             std::max(0.0L, static_cast<L>(v.size()) - static_cast<L>(correction)));
}

double log_sum_exp(Numbers1 v) {
  double largest = -kInf;
  for (const double x : v) largest = std::isnan(x) || x > largest ? x : largest;
  if (std::isinf(largest)) return largest;
  L sum = 0;
  for (const double x : v) sum += std::exp(static_cast<L>(x) - static_cast<L>(largest));
  return static_cast<double>(std::log(sum) + static_cast<L>(largest));
}

double norm_of(Numbers1 v, double p) {
  L sum = 0, largest = 0, smallest = kInf;
  for (const double x : v) {
    const L a = std::fabs(static_cast<L>(x));
    if (std::isnan(x)) return x;
    largest = std::max(largest, a);
    smallest = std::min(smallest, a);
    sum += p == 0 ? static_cast<L>(x != 0) : std::pow(a, static_cast<L>(p));
  }
  if (std::isinf(p)) return static_cast<double>(p > 0 ? largest : smallest);
  return static_cast<double>(p == 0 ? sum : std::pow(sum, 1 / static_cast<L>(p)));
}

double size_of_mean(Numbers1 v) {
  double sum = 0;
  for (const double x : v) sum += std::fabs(x);
  return sum / count(v);
}

/// In roundings: the error of the sum of squares, and that of the mean, E, which shifts every
/// difference: 2 E Σ|x - mean| / (n - c).
double error_of_variance(Numbers1 v, double correction) {
  const double n = count(v), of_mean = (log2_ceil(n) + 3) * size_of_mean(v);
  return (log2_ceil(n) + 8) * variance_of(v, correction) +
         2 * (of_mean + size_of_mean(v)) * 2 * size_of_mean(v) * n / std::max(1.0, n - correction);
}
/// The mean's error adds at most itself to the error of the root.
double error_of_root(Numbers1 v, double correction) {
  const double n = count(v), root = std::sqrt(variance_of(v, correction));
  return (log2_ceil(n) / 2 + 6) * root +
         std::sqrt(n / std::max(1.0, n - correction)) * (log2_ceil(n) + 4) * size_of_mean(v);
}

void add_spreads(Cases& list) {
  for (const Dims& d : kGroups)
    for (const double correction : {1.0, 0.0}) {
      const std::string variant = str(d.variant, correction == 1 ? "" : ", biased"),
                        words = str("(x0, ", in_torch(d), ", correction=", correction, ")");
      const auto variance = [correction](Numbers1 v) { return variance_of(v, correction); };
      const auto of_variance = [correction](Numbers1 v) {
        return error_of_variance(v, correction);
      };
      bound(folded(
                list, "var", d, variant, [=](T x) { return var(x, d.dims, correction, d.keepdim); },
                variance, "torch.var" + words),
            d, of_variance);
      OpCase& root = folded(
          list, "std", d, variant,
          [=](T x) { return braid::std(x, d.dims, correction, d.keepdim); },
          [variance](Numbers1 v) { return std::sqrt(variance(v)); }, "torch.std" + words);
      bound(root, d, [correction](Numbers1 v) { return error_of_root(v, correction); });
      root.kinks = true;  // not differentiable at 0
      OpCase& both = push(list, "var_mean", variant, "torch.var_mean" + words, {{d.shape}}, kFloats,
                          Accuracy::bound);
      both.call = [=](Tensors t) -> std::vector<Tensor> {
        const VarMean y = var_mean(t[0], d.dims, correction, d.keepdim);
        return {y.var, y.mean};
      };
      both.expected = [=](Arrays a) {
        return std::vector<Array>{folding(d, variance)(a)[0],
                                  reference::mean(a[0], d.dims, d.keepdim)};
      };
      const auto of_mean = [](Numbers1 v) { return (log2_ceil(count(v)) + 3) * size_of_mean(v); };
      both.bound = [=](Arrays a) {
        return std::vector<Array>{folding(d, of_variance)(a)[0], folding(d, of_mean)(a)[0]};
      };
    }
  refuse_folds(list, "var", [](T x, const Shape& s) { (void)var(x, s); });
  refuse_folds(list, "std", [](T x, const Shape& s) { (void)braid::std(x, s); });
  refuse_folds(list, "var_mean", [](T x, const Shape& s) { (void)var_mean(x, s); });
  for (const char* op : {"var", "std", "var_mean"})
    BadInputs(list, op).free("correction",
                             "every number is one; n and more give an infinity or NaN");
}

void add_logsumexps(Cases& list) {
  for (const Dims& d : kGroups) {
    OpCase& c = folded(
        list, "logsumexp", d, d.variant, [d](T x) { return logsumexp(x, d.dims, d.keepdim); },
        log_sum_exp,
        d.dims.empty()
            ? str("torch.logsumexp(x0, tuple(range(x0.dim()))", d.keepdim ? ", keepdim=True)" : ")")
            : str("torch.logsumexp(x0, ", in_torch(d), ")"));
    // exp: 8 roundings; the difference and the sum; log: 8 roundings; the last addition
    bound(c, d, [](Numbers1 v) {
      if (v.empty()) return 0.0;
      double largest = -kInf, range = 0;
      for (const double x : v) largest = std::max(largest, x);
      for (const double x : v) range = std::max(range, largest - x);
      const double y = log_sum_exp(v);
      return range + 10 + log2_ceil(count(v)) + 8 * std::fabs(y - largest) + std::fabs(y);
    });
  }
  refuse_folds(list, "logsumexp", [](T x, const Shape& s) { (void)logsumexp(x, s); });
}

void add_norms(Cases& list) {
  for (const double p : {2.0, 1.0, kInf, -kInf, 3.0, 0.5, 0.0})
    for (const Dims& d : kGroups) {
      if (p != 2 && d.dims.size() != 1) continue;
      const bool extreme = std::isinf(p);
      const std::string of = extreme ? (p > 0 ? "float('inf')" : "-float('inf')") : str(p);
      OpCase& c = folded(
          list, "norm", d, str(d.variant, ", p = ", p),
          [=](T x) { return norm(x, p, d.dims, d.keepdim); },
          [p](Numbers1 v) { return norm_of(v, p); },
          str("torch.linalg.vector_norm(x0, ", of, ", ", in_torch(d), ")"),
          extreme ? Kind::distinct : Kind::nonzero);
      c.kinks = extreme;
      // a norm of many elements overflows float16
      if (p == 0.5) c.dtypes = {DType::bfloat16, DType::float32, DType::float64};
      c.differentiable = p != 0;
      // the errors of each power, of the sum, and of the last power; pow is within 4 ULP
      bound(c, d, [=](Numbers1 v) {
        if (extreme || p == 0) return 0.0;
        return (10 + log2_ceil(count(v)) + 10) * std::max(1 / p, 1.0) * norm_of(v, p);
      });
    }
  refuse_folds(list, "norm", [](T x, const Shape& s) { (void)norm(x, 2, s); });
  BadInputs bad(list, "norm");
  bad.numbers("p", {kNan}, kArgument, "a number p, got nan",
              [](double p) { return norm(on_device::zeros({2}), p); });
  for (const Shape& shape : {Shape{0}, Shape{2, 0}, Shape{0, 3}})
    bad.refused(kShape, "amax: expected at least one element",
                [shape] { return norm(ones_of(shape), kInf); });
}

}  // namespace

void add_statistics_cases(Cases& list) {
  add_spreads(list);
  add_logsumexps(list);
  add_norms(list);
  parameters(list,
             "logsumexp(x dims keepdim) norm(x p dims keepdim) std(x dims correction keepdim) "
             "std(x unbiased) var(x dims correction keepdim) var(x unbiased) "
             "var_mean(x dims correction keepdim)");
}

}  // namespace braid::test
