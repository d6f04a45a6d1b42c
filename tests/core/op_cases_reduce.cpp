#include <algorithm>

#include <braid/core/ops/reduce.hpp>

#include "folds.hpp"
#include "op_case_makers.hpp"
#include "reference/reduce.hpp"

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

/// Sums and extrema.
struct Reduction1 {
  const char *op, *torch;
  Tensor (*call)(T, const IntList&, bool);
  Array (*expected)(A, const Sizes&, bool);
  int roundings;  // for the bound of a sum; 0: an element is selected
};
const Reduction1 kReductions[] = {{"sum", "sum", sum, reference::sum, 2},
                                  {"mean", "mean", mean, reference::mean, 3},
                                  {"amax", "amax", amax, reference::max, 0},
                                  {"amin", "amin", amin, reference::min, 0}};

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
    {"max", "", "torch.max(x0)", Sizes{2, 3}, [](T x) { return max(x); },
     [](A a) { return reference::max(a); }},
    {"min", "", "torch.min(x0)", Sizes{2, 3}, [](T x) { return min(x); },
     [](A a) { return reference::min(a); }},
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

struct Truth {
  const char *op, *torch;
  Tensor (*call)(T, const IntList&, bool);
  double (*fold)(Numbers1);
  DType (*result)(DType);
};
double count_nonzero_of(Numbers1 v) {
  return static_cast<double>(std::count_if(v.begin(), v.end(), [](double x) { return x != 0; }));
}
const Truth kTruths[] = {
    {"any", "torch.any", any, [](Numbers1 v) { return count_nonzero_of(v) > 0 ? 1.0 : 0.0; },
     boolean},
    {"all", "torch.all", all,
     [](Numbers1 v) { return count_nonzero_of(v) == count(v) ? 1.0 : 0.0; }, boolean},
    {"count_nonzero", "torch.sum", count_nonzero, count_nonzero_of, as_int64},
};

void add_truths(Cases& list) {
  for (const Truth& f : kTruths) {
    for (const Dims& d : kGroups) {
      OpCase& c = folded(
          list, f.op, d, d.variant, [=](T x) { return f.call(x, d.dims, d.keepdim); }, f.fold,
          str(f.torch, "(x0 != 0, ", in_torch(d), ")"));
      c.dtypes = kAll;
      c.differentiable = false;
      c.result = f.result;
    }
    refuse_folds(list, f.op, [f](T x, const Shape& s) { (void)f.call(x, s, false); }, false);
  }
  for (const bool largest : {true, false}) {
    const char* op = largest ? "argmax" : "argmin";
    const auto choose = [=](T x) { return largest ? argmax(x) : argmin(x); };
    OpCase& c = folded(
        list, op, {"", {2, 3, 2}, {}, false}, "over all", choose,
        [=](Numbers1 v) {
          return static_cast<double>(largest ? reference::first_largest(v)
                                             : reference::first_smallest(v));
        },
        str("torch.", op, "(x0)"));
    c.dtypes = kNumbers;
    c.differentiable = false;
    c.result = as_int64;
    BadInputs(list, op).tensor("x", choose).shapes(choose, {{0}, {2, 0}}, "at least one element");
  }
}

}  // namespace

void add_reduce_cases(Cases& list) {
  add_sums(list);
  for (const Arrangement& m : kMembers) {
    OpCase& c = add_arrangement(list, m, kFloats);
    c.kinks = c.op == "max" || c.op == "min";
    if (c.kinks) c.inputs[0].kind = Kind::distinct;
    else c.accuracy = Accuracy::tolerance;
  }
  add_arg(list);
  add_truths(list);
  parameters(list,
             "all(x dims keepdim) any(x dims keepdim) argmax(x dim keepdim) argmax(x) "
             "argmax(dim keepdim) argmin(x dim keepdim) argmin(x) count_nonzero(x dims keepdim) "
             "amax(x dims keepdim) amin(x dims keepdim) max(x) max() mean() mean(x dims keepdim) "
             "mean(dims keepdim) "
             "min(x) sum(x dims keepdim) sum() sum(dims keepdim)");
}

}  // namespace braid::test
