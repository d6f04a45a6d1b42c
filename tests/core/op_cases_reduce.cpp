#include <braid/core/ops/reduce.hpp>
#include <braid/core/ops/softmax.hpp>

#include "op_case_makers.hpp"
#include "reference/reduce.hpp"
#include "reference/softmax.hpp"

namespace braid::test {
namespace {

const std::vector<Dims> kDims{{"all", {2, 3, 2}, {}, false},
                              {"all, keepdim", {2, 3}, {}, true},
                              {"last dim", {3, 4}, {-1}, false},
                              {"first dim", {3, 4}, {0}, false},
                              {"middle dim", {2, 3, 2}, {1}, false},
                              {"two dims", {2, 3, 2}, {0, 2}, false},
                              {"dims out of order", {2, 3, 2}, {2, 1}, true},
                              {"last dim, keepdim", {2, 3}, {1}, true},
                              {"rank 0", {}, {}, false},
                              {"dim of size 1", {3, 1}, {1}, false},
                              {"all dims by name", {2, 2}, {0, 1}, false}};

/// Returns how many elements of `a` each element of `results` combines.
double terms_of(A a, A results) {
  return static_cast<double>(a.size()) / static_cast<double>(std::max<I>(results.size(), 1));
}

/// Sums and extrema. amax and amin share the gradient among equal elements, as Braid's ops do;
/// PyTorch's max and min with a dim give it to one of them.
struct Reduction1 {
  const char *op, *torch;
  Tensor (*call)(T, const Shape&, bool);
  Array (*expected)(A, const Sizes&, bool);
  int roundings;  // for the bound of a sum; 0: an element is selected
};
const Reduction1 kReductions[] = {{"sum", "sum", sum, reference::sum, 2},
                                  {"mean", "mean", mean, reference::mean, 3},
                                  {"max", "amax", max, reference::max, 0},
                                  {"min", "amin", min, reference::min, 0}};

void add_sums(Cases& list) {
  for (const Reduction1& f : kReductions) {
    const bool is_mean = f.roundings == 3, chooses = f.roundings == 0;
    for (const Dims& d : kDims) {
      OpCase& c = of_one(
          list, f.op, d.variant,
          str("torch.", f.torch, "(x0, dim=", tuple(d.dims), d.keepdim ? ", keepdim=True)" : ")"),
          {d.shape, chooses ? Kind::distinct : Kind::value}, is_mean ? kFloats : kAll,
          [=](T x) { return f.call(x, d.dims, d.keepdim); },
          [=](A a) { return f.expected(a, d.dims, d.keepdim); });
      c.kinks = chooses;
      if (chooses) {
        c.differs = {{"nan.*gradient",
                      "a NaN is what was chosen, so it gets the gradient; PyTorch makes it NaN for "
                      "all elements"}};
        continue;
      }
      if (!is_mean) c.result = widened;
      bound_by_sizes(
          c, [n = f.roundings](Arrays a, A sums) { return log2_ceil(terms_of(a[0], sums)) + n; });
    }
    const auto over_first = [f](T x) { return f.call(x, {0}, false); };
    const auto over = [f](const Shape& dims) { return f.call(made({2, 3}), dims, false); };
    BadInputs bad(list, f.op);
    bad.tensor("x", over_first).no_room(over_first, {chooses ? 1 : 0});
    if (f.roundings == 2) bad.too_large(over_first, {0});
    if (is_mean) bad.types(over_first, {3}, kWhole);
    if (chooses)
      bad.shapes([f](T x) { return f.call(x, {}, false); }, {{0}, {2, 0}},
                 "at least one element to choose from, got shape ");
    bad.lists("dims", {Shape{2}, Shape{-3}, Shape{0, 2}}, kIndex, "a dim in \\[-2, 1\\], got ",
              over)
        .lists("dims", {Shape{0, 0}, Shape{1, -1}}, kShape, "each dim once, got ", over);
  }
}

/// The members call the same functions.
const Arrangement kMembers[] = {
    {"sum", "member", "x0.sum()", Sizes{2, 3}, [](T x) { return x.sum(); },
     [](A a) { return reference::sum(a); }},
    {"sum", "member with dims", "x0.sum(0, True)", Sizes{2, 3},
     [](T x) { return x.sum({0}, true); }, [](A a) { return reference::sum(a, {0}, true); }},
    {"mean", "member", "x0.mean()", Sizes{2, 3}, [](T x) { return x.mean(); },
     [](A a) { return reference::mean(a); }},
    {"mean", "member with dims", "x0.mean(-1)", Sizes{2, 3}, [](T x) { return x.mean({-1}); },
     [](A a) { return reference::mean(a, {-1}); }},
    {"max", "member", "x0.max()", Sizes{2, 3}, [](T x) { return x.max(); },
     [](A a) { return reference::max(a); }},
};

void add_arg(Cases& list) {
  const auto add = [&](bool largest, const char* variant, const Sizes& shape, I dim, bool keep,
                       std::function<Tensor(T)> call, const std::string& torch) {
    OpCase& c =
        of_one(list, largest ? "argmax" : "argmin", variant, torch, {shape}, kAll, std::move(call),
               [=](A a) {
                 return largest ? reference::argmax(a, dim, keep) : reference::argmin(a, dim, keep);
               });
    c.differs = {{"^bool: refused", "false < true here; PyTorch has no order of bool"}};
    c.differentiable = false;
    c.result = as_int64;
  };
  for (const bool largest : {true, false}) {
    const char* op = largest ? "argmax" : "argmin";
    const auto choose = [largest](T x, I dim, bool keep) {
      return largest ? argmax(x, dim, keep) : argmin(x, dim, keep);
    };
    for (const Dims& d : std::vector<Dims>{{"last dim", {3, 4}, {-1}, false},
                                           {"first dim", {3, 4}, {0}, false},
                                           {"middle dim, keepdim", {2, 3, 2}, {1}, true},
                                           {"vector", {5}, {0}, false}}) {
      const I dim = d.dims[0];
      add(
          largest, d.variant, d.shape, dim, d.keepdim,
          [=](T x) { return choose(x, dim, d.keepdim); },
          str("torch.", op, "(x0, ", dim, d.keepdim ? ", keepdim=True)" : ")"));
    }
    BadInputs(list, op)
        .tensor("x", [=](T x) { return choose(x, -1, false); })
        .shapes([=](T x) { return choose(x, -1, false); }, {{0}, {2, 0}},
                "at least one element to choose from, got shape ")
        .no_room([=](T x) { return choose(x, 0, false); }, {1})
        .dims("dim", [=](I dim) { return choose(made({2, 3}), dim, false); });
  }
  add(true, "member", {2, 3}, 1, false, [](T x) { return x.argmax(1); }, "x0.argmax(1)");
  list.back().dtypes = kFloats;
  list.back().differs.clear();
}

/// The error of softmax in roundings, from those of its steps: the rounding of x - max, exp within
/// 4 ULP (8 roundings), the bound of the sum, the division.
Array range_of(A x, I dim) {
  return reference::zip(reference::max(x, {dim}, true), reference::min(x, {dim}, true),
                        std::minus<>());
}
Array softmax_bound(A x, I dim) {
  const Array range = range_of(x, dim);
  const double terms = terms_of(x, range);
  return reference::zip(reference::softmax(x, dim), range, [=](double v, double d) {
    return v * (2 * (d + 8) + log2_ceil(terms) + 4);
  });
}
/// The error of x - (max + log Σ): the same sum, log within 4 ULP, two subtractions.
Array log_softmax_bound(A x, I dim) {
  const Array y = reference::log_softmax(x, dim), range = range_of(x, dim);
  const double terms = terms_of(x, range);
  const Array of_lse = reference::zip(
      range, reference::max(y, {dim}, true),
      [=](double d, double largest) { return d + 10 + log2_ceil(terms) - 9 * largest; });
  return reference::zip(reference::zip(reference::abs(x), reference::abs(y),
                                       [](double a, double b) { return 2 * a + 2 * b; }),
                        of_lse, std::plus<>());
}
/// The error of the sum over the rows of -log softmax at the label, times scale.
Array cross_entropy_bound(A x, A labels, bool take_mean) {
  const I rows = reference::at(x.shape, 0), classes = reference::at(x.shape, 1);
  const Array y = reference::log_softmax(x, 1), bound = log_softmax_bound(x, 1);
  double errors = 0, sizes = 0;
  for (I i = 0; i < rows; ++i) {
    errors += bound[i * classes + static_cast<I>(labels[i])];
    sizes += std::fabs(y[i * classes + static_cast<I>(labels[i])]);
  }
  const double n = static_cast<double>(rows);
  return Array(Sizes{}, (errors + (log2_ceil(n) + 4) * sizes) / (take_mean ? n : 1));
}

struct Softmax {
  const char* op;
  Tensor (*call)(T, I);
  Array (*expected)(A, I);
  Array (*bound)(A, I);
};
const Softmax kSoftmaxes[] = {
    {"softmax", softmax, reference::softmax, softmax_bound},
    {"log_softmax", log_softmax, reference::log_softmax, log_softmax_bound},
};

void add_softmaxes(Cases& list) {
  struct Line {
    const char* variant;
    Sizes shape;
    I dim;
  };
  for (const Softmax& f : kSoftmaxes) {
    for (const Line& l : std::vector<Line>{{"last dim", {3, 4}, -1},
                                           {"first dim", {3, 4}, 0},
                                           {"middle dim", {2, 3, 2}, 1},
                                           {"vector", {5}, 0},
                                           {"one class", {3, 1}, 1}}) {
      const I dim = l.dim;
      OpCase& c = of_one(
          list, f.op, l.variant, str("torch.", f.op, "(x0, ", dim, ")"), {l.shape}, kFloats,
          [=](T x) { return f.call(x, dim); }, [=](A a) { return f.expected(a, dim); });
      c.accuracy = Accuracy::bound;
      c.bound = expecting([=](A a) { return f.bound(a, dim); });
    }
    const auto over_last = [f](T x) { return f.call(x, -1); };
    BadInputs(list, f.op)
        .tensor("x", over_last)
        .types(over_last, {3}, kWhole)
        .shapes(over_last, {{}}, "rank >= 1, got rank 0")
        .dims("dim", [f](I dim) { return f.call(made({2, 3}), dim); });
  }
}

void add_losses(Cases& list) {
  for (const bool take_mean : {true, false}) {
    const Reduction r = take_mean ? Reduction::mean : Reduction::sum;
    const std::string name = take_mean ? "mean" : "sum", words = ", reduction='" + name + "')";
    OpCase& c = push(list, "cross_entropy", name, "F.cross_entropy(x0, x1" + words,
                     {{{4, 3}}, {{4}, Kind::index, 3, false}}, kFloats, Accuracy::bound);
    c.call = function_of([r](T x, T y) { return cross_entropy(x, y, r); });
    c.expected = expecting([=](A x, A y) { return reference::cross_entropy(x, y, take_mean); });
    c.bound = expecting([=](A x, A y) { return cross_entropy_bound(x, y, take_mean); });
    OpCase& m = push(list, "mse_loss", name, "F.mse_loss(x0, x1" + words, {{{2, 3}}, {{2, 3}}},
                     kFloats, Accuracy::bound);
    m.call = function_of([r](T x, T y) { return mse_loss(x, y, r); });
    m.expected = expecting([=](A x, A y) { return reference::mse_loss(x, y, take_mean); });
    // each term: the rounding of the difference counts twice in the product
    m.bound = expecting([=](A x, A y) {
      return times(reference::mse_loss(x, y, take_mean),
                   log2_ceil(static_cast<double>(x.size())) + 6);
    });
  }
  for (const bool left : {true, false}) {
    const auto f = [left](T x) {
      return left ? mse_loss(x, made({2, 3})) : mse_loss(made({2, 3}), x);
    };
    BadInputs bad(list, "mse_loss");
    bad.tensor(left ? "a" : "b", f, {2, 3});
    bad.shapes(f, {{3}, {3, 2}}, "equal shapes, got ")
        .types(f, {2, 3}, {DType::float64}, "one dtype, got ");
    if (left) bad.types(f, {2, 3}, {DType::int64});
  }
  BadInputs(list, "mse_loss").free("reduction", "an enumeration");
}

}  // namespace

void add_reduction_cases(Cases& list) {
  add_sums(list);
  for (const Arrangement& m : kMembers) {
    OpCase& c = add_arrangement(list, m, kFloats);
    c.kinks = c.op == "max";
    if (c.kinks) c.inputs[0].kind = Kind::distinct;
    else c.accuracy = Accuracy::tolerance;
  }
  add_arg(list);
  add_softmaxes(list);
  add_losses(list);
}

}  // namespace braid::test
