#include <braid/core/ops/join.hpp>

#include "op_case_makers.hpp"
#include "reference/index.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

using Parts = std::vector<I>;

void add_joins(Cases& list) {
  struct Cat {
    I dim;
    std::vector<Sizes> shapes;
  };
  for (const Cat& k : std::vector<Cat>{{0, {{2, 3}, {1, 3}, {3, 3}}},
                                       {1, {{2, 1}, {2, 3}}},
                                       {-1, {{2, 2, 2}, {2, 2, 1}}},
                                       {1, {{2, 1, 2}, {2, 2, 2}}},
                                       {0, {{3}}},
                                       {0, {{0, 2}, {2, 2}, {0, 2}}}}) {
    std::vector<Input> inputs;
    for (const Sizes& s : k.shapes) inputs.push_back({s});
    OpCase& c = push(list, "cat",
                     str("dim ", k.dim, " of ", inputs.size(), ", the first ", Shape(k.shapes[0])),
                     str("torch.cat(x, ", k.dim, ")"), inputs);
    c.call = function_of([dim = k.dim](Tensors t) { return cat(t, dim); });
    c.expected = [dim = k.dim](Arrays a) { return std::vector<Array>{reference::cat(a, dim)}; };
  }
  for (const I dim : {0, 1, 2, -1, -3}) {
    OpCase& c = push(list, "stack", str("dim ", dim), str("torch.stack(x, ", dim, ")"),
                     {{{2, 3}}, {{2, 3}}});
    c.call = function_of([dim](Tensors t) { return stack(t, dim); });
    c.expected = [dim](Arrays a) { return std::vector<Array>{reference::stack(a, dim)}; };
  }
  OpCase& c = push(list, "stack", "numbers", "torch.stack(x)", {{{}}, {{}}, {{}}});
  c.call = function_of([](T x, T y, T z) { return stack({x, y, z}); });
  c.expected = [](Arrays a) { return std::vector<Array>{reference::stack(a, 0)}; };
  for (const I dim : {0, 1, -1}) {
    OpCase& s = push(list, "split", str("dim ", dim), str("torch.split(x0, [1, 0, 3], ", dim, ")"),
                     {{{4, 4}}});
    s.call = function_of([dim](T x) { return split(x, Parts{1, 0, 3}, dim); });
    s.expected = [dim](Arrays a) {
      return std::vector<Array>{reference::slice(a[0], dim, 0, 1),
                                reference::slice(a[0], dim, 1, 1),
                                reference::slice(a[0], dim, 1, 4)};
    };
    OpCase& i =
        push(list, "index_select", str("dim ", dim), str("torch.index_select(x0, ", dim, ", x1)"),
             {{{3, 3, 2}}, {{5}, Kind::index, 2, false}});
    i.call = function_of([dim](T x, T index) { return index_select(x, dim, index); });
    i.expected = expecting([dim](A x, A index) {
      return reference::index_select(x, dim, Parts(index.data.begin(), index.data.end()));
    });
  }
  for (const Sizes& shape : std::vector<Sizes>{{4}, {2, 3}, {}}) {
    const std::string variant = str("index of rank ", shape.size());
    OpCase& e = push(list, "embedding", variant, "F.embedding(x1, x0)",
                     {{{3, 2}}, {shape, Kind::index, 3, false}});
    e.call = function_of([](T w, T i) { return embedding(w, i); });
    e.expected = expecting(reference::embedding);
    OpCase& i = push(list, "operator[]", variant, "x0[x1]", {{{3, 2, 2}}, {shape, Kind::index, 3}});
    i.call = function_of([](T w, T index) { return w[index]; });
    i.expected = expecting(reference::embedding);
  }
}

void add_join_errors(Cases& list) {
  for (const bool cats : {true, false}) {
    const char* op = cats ? "cat" : "stack";
    const auto join = [cats](const std::vector<Tensor>& t, I dim) {
      return cats ? cat(t, dim) : stack(t, dim);
    };
    const auto with = [join](T x) { return join({made({2, 3}), x}, 0); };
    BadInputs(list, op)
        .tensor("tensors", with, {2, 3})
        .shapes(with, {{2, 4}, {3}, {1, 2, 3}},
                cats ? "sizes equal to \\[2, 3\\] except in dim 0, got "
                     : "tensors of one shape, got \\[2, 3\\] and ")
        .is(kArgument, "at least one tensor, got none", [join] { return join({}, 0); })
        .dims(
            "dim", [join](I dim) { return join({made({2, 3}), made({2, 3})}, dim); }, cats ? 2 : 3);
  }
  BadInputs(list, "cat", "tensors").is(kShape, "tensors with dimensions, got a scalar", [] {
    return cat({made({})});
  });
  const auto halves = [](T x) { return split(x, Parts{1, 2}, 0); };
  const auto parts = [](const Shape& s) {
    return split(made({2, 3}), Parts(s.begin(), s.end()), 1);
  };
  BadInputs(list, "split")
      .tensor("x", halves)
      .shapes(halves, {{}}, "a tensor with dimensions, got a scalar")
      .shapes(halves, {{4}, {2, 3}}, "sizes that sum to ")
      .lists("sizes", {Shape{1, 1}, Shape{}, Shape{2, 2}}, kShape,
             "sizes that sum to 3 \\(dim 1 of \\[2, 3\\]\\), got ", parts)
      .lists("sizes", {Shape{4, -1}, Shape{kMost, 1}}, kShape, "sizes >= 0, got ", parts)
      .dims("dim", [](I dim) { return split(made({2, 3}), Parts{1, 2}, dim); });
}

void add_index_errors(Cases& list) {
  const Types no_index{DType::bool_, DType::uint8, DType::int32, DType::float32, DType::float64};
  const auto select_of = [](T x) { return index_select(x, 0, indices({0, 1})); };
  const auto select_by = [](T index) { return awaited(index_select(made({4, 3}), 0, index)); };
  BadInputs(list, "index_select")
      .tensor("x", select_of, {4, 3})
      .shapes(select_of, {{}}, "a tensor with dimensions, got a scalar")
      .dims("dim", [](I dim) { return index_select(made({4, 3}), dim, indices({0, 1})); })
      .tensor("index", select_by, {2}, DType::int64)
      .types(select_by, {2}, no_index, "an int64 index, got ")
      .shapes(select_by, {{}, {2, 2}}, "an index of rank 1, got ", kShape, DType::int64)
      .is(kIndex, "indices in \\[-4, 4\\), got 4", [=] { return select_by(indices({0, 4})); })
      .is(kIndex, "indices in \\[-4, 4\\), got -5", [=] { return select_by(indices({-5})); });
  const auto rows_of = [](T weight) { return embedding(weight, indices({0, 1})); };
  const auto rows_by = [](T index) { return awaited(embedding(made({4, 3}), index)); };
  const auto padded = [](I i) { return embedding(made({4, 3}), indices({0, 1}), i); };
  BadInputs(list, "embedding")
      .tensor("weight", rows_of, {4, 3})
      .shapes(rows_of, {{}, {4}, {4, 3, 2}}, "weight \\[rows, width\\], got ")
      .tensor("index", rows_by, {2}, DType::int64)
      .types(rows_by, {2}, no_index, "an int64 index, got ")
      .is(kIndex, "indices in \\[0, 4\\), got 4", [=] { return rows_by(indices({0, 4})); })
      .is(kIndex, "indices in \\[0, 4\\), got -1", [=] { return rows_by(indices({-1})); })
      .integers("padding_idx", {4, -5, I{1} << 62}, kIndex, "padding_idx in \\[-4, 4\\), got ",
                padded);
  const auto at = [](T index) { return awaited(made({4, 3})[index]); };
  for (const DType t : no_index)
    BadInputs(list, "operator[]", "index")
        .refused(kType, str("index: expected an int64 index, got ", t),
                 [=] { return at(made({2}, t)); });
  BadInputs(list, "operator[]")
      .tensor("index", at, {2}, DType::int64)
      .refused(kIndex, "index: expected indices in \\[-4, 4\\), got 4",
               [at] { return at(indices({0, 4})); })
      .refused(kIndex, "index: expected indices in \\[-4, 4\\), got -5",
               [at] { return at(indices({-5})); })
      .refused(kIndex, "select: expected an index in \\[-4, 3\\]", [] { return made({4, 3})[4]; });
}

}  // namespace

void add_join_cases(Cases& list) {
  add_joins(list);
  add_join_errors(list);
  add_index_errors(list);
}

}  // namespace braid::test
