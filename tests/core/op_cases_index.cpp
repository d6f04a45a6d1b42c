// Cases of slices and rows by index.
#include <braid/core/ops/index.hpp>

#include "op_case_makers.hpp"
#include "reference/index.hpp"

namespace braid::test {
namespace {

using Parts = std::vector<I>;

void add_selections(Cases& list) {
  for (const I dim : {0, 1, -1}) {
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

void add_index_errors(Cases& list) {
  const Types no_index{DType::bool_, DType::uint8, DType::int32, DType::float32, DType::float64};
  const auto select_of = [](T x) { return index_select(x, 0, indices({0, 1})); };
  const auto select_by = [](T index) { return awaited(index_select(made({4, 3}), 0, index)); };
  BadInputs(list, "index_select")
      .tensor("x", select_of, {4, 3})
      .shapes(select_of, {{}}, "one index for a scalar, got shape \\[2\\]")
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
  for (const DType t : {DType::uint8, DType::float32, DType::float64})
    BadInputs(list, "operator[]", "index")
        .refused(kType, str("index: expected an int64, int32 or bool index, got ", t),
                 [=] { return at(made({2}, t)); });
  BadInputs(list, "operator[]", "index")
      .refused(kIndex, "index: expected a mask of shape \\[4\\] for dim 0",
               [=] { return at(made({2}, DType::bool_)); });
  BadInputs(list, "operator[]")
      .tensor("index", at, {2}, DType::int64)
      .refused(kIndex, "index: expected indices in \\[-4, 4\\), got 4",
               [at] { return at(indices({0, 4})); })
      .refused(kIndex, "index: expected indices in \\[-4, 4\\), got -5",
               [at] { return at(indices({-5})); })
      .refused(kIndex, "select: expected an index in \\[-4, 3\\]", [] { return made({4, 3})[4]; });
}

}  // namespace

void add_index_cases(Cases& list) {
  add_selections(list);
  add_index_errors(list);
  parameters(list,
             "embedding(weight index padding_idx) index_select(x dim index) operator[](index)");
}

}  // namespace braid::test
