// Cases of elements by index.
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/gather.hpp>
#include <braid/core/ops/reduce.hpp>

#include "op_case_makers.hpp"
#include "reference/gather.hpp"

namespace braid::test {
namespace {

/// Adds the bad inputs of any op f(x, dim, index). The result is awaited, because CUDA reports
/// invalid indices later. `below` is the largest negative index that is refused.
void refuse_index(Cases& list, const char* op, I below, const std::function<Tensor(T, I, T)>& f) {
  const auto with = [f](T index) { return awaited(f(ones_of({2, 3}), 1, index)); };
  const auto along = [f](I dim) { return f(ones_of({2, 3}), dim, indices({{0, 1}})); };
  BadInputs bad(list, op);
  bad.integers("dim", {2, -3, kMost}, kIndex, ".*got ", along).of("index");
  bad.types(with, {1, 2}, {DType::int32, DType::float32, DType::bool_}, "an int64 index, got ");
  for (const I wrong : {I{3}, below, kMost})
    bad.is(kIndex, str("indices in .0, 3., got ", wrong), [=] {
      return with(
          full({1, 2}, 0, {.device = here(), .dtype = DType::int64}).add_(Tensor(indices(wrong))));
    });
  bad.tensor("x", [f](T x) { return f(x, 1, indices({{0, 1}})); })
      .is(kShape, "an index of rank 1", [f] { return f(ones_of({3}), 0, indices({{0, 1}})); })
      .is(kIndex, "indices in .0, 0.",
          [f] { return awaited(f(ones_of({2, 0}), 1, indices({{0, 1}}))); });
}

struct Along {
  const char* variant;
  Sizes x, index;
  I dim, below = 4;
};
const std::vector<Along> kPlaces{{"last dim", {3, 4}, {3, 4}, 1},
                                 {"first dim", {4, 3}, {4, 3}, 0},
                                 {"middle dim", {2, 4, 2}, {2, 5, 2}, -2},
                                 {"smaller index", {3, 4}, {2, 3}, 1, 3},
                                 {"longer index", {3, 4}, {3, 6}, 1},
                                 {"vector", {4}, {5}, 0},
                                 {"rank 0", {}, {}, 0, 1}};

OpCase& indexed(Cases& list, const char* op, const Along& a, Function call,
                std::function<Array(Arrays)> expected, const std::string& torch) {
  OpCase& c = push(list, op, a.variant, torch, {{a.x}, {a.index, Kind::index, a.below, false}});
  c.call = std::move(call);
  c.expected = [r = std::move(expected)](Arrays v) { return std::vector<Array>{r(v)}; };
  return c;
}

void add_gathers(Cases& list) {
  for (const Along& a : kPlaces)
    indexed(
        list, "gather", a, function_of([d = a.dim](T x, T i) { return gather(x, d, i); }),
        [d = a.dim](Arrays v) { return reference::gather(v[0], d, v[1]); },
        str("torch.gather(x0, ", a.dim, ", x1)"));
  for (const Along& a : std::vector<Along>{{"both broadcast", {1, 4}, {3, 2}, 1},
                                           {"index broadcasts", {3, 4}, {1, 2}, -1},
                                           {"first dim", {4, 3}, {2, 1}, 0}})
    indexed(
        list, "take_along_dim", a,
        function_of([d = a.dim](T t, T i) { return take_along_dim(t, i, d); }),
        [d = a.dim](Arrays v) { return reference::take_along_dim(v[0], v[1], d); },
        str("torch.take_along_dim(x0, x1, ", a.dim, ")"));
  refuse_index(list, "gather", -1, gather);
  refuse_index(list, "take_along_dim", -4, [](T t, I d, T i) { return take_along_dim(t, i, d); });
  refuse(list, "gather",
         {{"index", kShape, "an index not larger than x .2, 3. except in dim 1",
           [] { return gather(ones_of({2, 3}), 1, indices({{0}, {1}, {2}})); }}});
}

void add_scatters(Cases& list) {
  for (const Along& a : kPlaces) {
    const I dim = a.dim;
    for (const bool add : {false, true}) {
      OpCase& c = indexed(
          list, add ? "scatter_add" : "scatter", a, function_of([=](T x, T i, T src) {
            return add ? scatter_add(x, dim, i, src) : scatter(x, dim, i, src);
          }),
          [=](Arrays v) { return reference::scatter(v[0], dim, v[1], v[2], add); },
          // PyTorch does not define which of several equal indices wins. With add, the result does
          // not depend on that.
          add ? str("torch.scatter_add(x0, ", dim, ", x1, x2)") : "");
      c.inputs.push_back({a.index});
      if (!add) continue;
      // Each sum is rounded to the dtype, and integers wrap around: see test_gather.cpp.
      c.accuracy = Accuracy::tolerance;
      c.dtypes = {DType::bool_, DType::int32, DType::int64, DType::float32, DType::float64};
    }
    indexed(
        list, "scatter", a, function_of([dim](T x, T i) { return scatter(x, dim, i, 1); }),
        [dim](Arrays v) {
          return reference::scatter(v[0], dim, v[1], Array(v[1].shape, 1.0), false);
        },
        str("torch.scatter(x0, ", dim, ", x1, 1)"))
        .variant = str("a number, ", a.variant);
  }
  for (const bool add : {false, true}) {
    const auto f = [add](T x, I d, T i, T src) {
      return add ? scatter_add(x, d, i, src) : scatter(x, d, i, src);
    };
    const auto from = [f](T src) { return f(ones_of({2, 3}), 1, indices({{0, 1}}), src); };
    const char* op = add ? "scatter_add" : "scatter";
    refuse_index(list, op, -1, [f](T x, I d, T i) { return f(x, d, i, ones_of(i.shape())); });
    BadInputs(list, op, "src")
        .shapes(from, {{1, 1}}, "an index not larger than src .1, 1.")
        .shapes(from, {{2}}, "src of rank 2")
        .types(from, {1, 2}, {DType::float64}, "one dtype");
  }
  for (const auto& [t, value] : std::vector<std::pair<DType, double>>{
           {DType::int64, kNan}, {DType::uint8, 300}, {DType::int32, 1e10}})
    refuse(list, "scatter",
           {{"value", kType,
             str("a number that ", t, " can hold, got ", value == 1e10 ? "" : str(value)),
             [t = t, v = value] { return scatter(ones_of({2, 3}, t), 1, indices({{0, 1}}), v); }}});
}

void add_index_add(Cases& list) {
  struct Slices {
    Sizes x, source;
    I dim, n;
    double alpha;
  };
  for (const Slices& s : std::vector<Slices>{{{4, 3}, {5, 3}, 0, 5, 1},
                                             {{3, 4}, {3, 5}, -1, 5, 2},
                                             {{2, 4, 3}, {2, 6, 3}, 1, 6, 1},
                                             {{4}, {5}, 0, 5, -3}}) {
    const I dim = s.dim;
    const double alpha = s.alpha;
    OpCase& c = indexed(
        list, "index_add", {"", s.x, {s.n}, dim},
        function_of([=](T x, T i, T source) { return index_add(x, dim, i, source, alpha); }),
        [=](Arrays v) { return reference::index_add(v[0], dim, v[1], v[2], alpha); },
        str("torch.index_add(x0, ", dim, ", x1, x2, alpha=", alpha, ")"));
    c.variant = str("dim ", dim, " of ", s.x.size(), ", alpha ", alpha);
    c.inputs.push_back({s.source});
    c.dtypes = kWide;
    c.accuracy = Accuracy::tolerance;
  }
  const auto x = [] { return ones_of({2, 3}); };
  const auto along = [x](I d) { return index_add(x(), d, indices({0, 1}), x()); };
  const auto by = [x](T i) { return awaited(index_add(x(), 0, i, x())); };
  const auto of = [x](T source) { return index_add(x(), 0, indices({0, 1}), source); };
  const auto scaled = [](double a) {
    return index_add(ones_of({2}, DType::int64), 0, indices({0}), ones_of({1}, DType::int64), a);
  };
  const auto to = [](T t) { return awaited(index_add(t, 0, indices({0}), ones_of({1}))); };
  BadInputs(list, "index_add")
      .integers("dim", {2, -3, kMost}, kIndex, ".*got ", along)
      .of("index")
      .is(kShape, "an index of rank 1, got .1, 2.", [by] { return by(indices({{0, 1}})); })
      .is(kIndex, "indices in .0, 2., got 2", [by] { return by(indices({0, 2})); })
      .types(by, {2}, {DType::int32}, "an int64 index")
      .of("source")
      .shapes(of, {{3, 3}}, "a source of shape .2, 3., got .3, 3.")
      .shapes(of, {{2}}, "a source of shape .2, 3., got .2.")
      .types(of, {2, 3}, {DType::float64}, "one dtype")
      .numbers("alpha", {0.5, kNan, 1e30}, kType, "a whole alpha for int64", scaled)
      .tensor("x", to)
      .types(to, {2}, {DType::bool_}, "one dtype, got bool and float32")
      .is(kIndex, "indices in .0, 0.",
          [] { return awaited(index_add(ones_of({0, 3}), 0, indices({0}), ones_of({1, 3}))); });
}

/// If each position receives one number, the sum is exact in every dtype.
void add_single_sums(Cases& list) {
  const auto backwards = [](T x) { return arange(x.size(1) - 1, -1, -1, {.device = x.device()}); };
  for (const bool scatters : {true, false}) {
    OpCase& c = push(list, scatters ? "scatter_add" : "index_add", "each place once",
                     str("torch.", scatters ? "scatter" : "index",
                         "_add(x0, 1, torch.arange(x0.shape[1] - 1, -1, -1)",
                         scatters ? ".expand(x0.shape)" : "", ", x1)"),
                     {{{3, 4}, Kind::positive}, {{3, 4}, Kind::positive}},
                     {DType::bool_, DType::uint8, DType::float16, DType::bfloat16});
    c.call = function_of([=](T x, T src) {
      return scatters ? scatter_add(x, 1, backwards(x).expand(x.shape()), src)
                      : index_add(x, 1, backwards(x), src);
    });
    c.expected = expecting([](A x, A src) {
      return reference::generate(x.shape, [&](const Sizes& i) {
        return reference::value(x, i) + reference::value(src, {i[0], x.shape[1] - 1 - i[1]});
      });
    });
  }
}

}  // namespace

void add_gather_cases(Cases& list) {
  add_gathers(list);
  add_scatters(list);
  add_index_add(list);
  add_single_sums(list);
  parameters(list,
             "gather(x dim index) index_add(x dim index source alpha) scatter(x dim index src) "
             "scatter(x dim index value) scatter_add(x dim index src) take_along_dim(x index dim)");
}

}  // namespace braid::test
