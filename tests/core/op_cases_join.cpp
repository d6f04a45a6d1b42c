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

}  // namespace

void add_join_cases(Cases& list) {
  add_joins(list);
  add_join_errors(list);
  parameters(list, "cat(tensors dim) stack(tensors dim)");
}

}  // namespace braid::test
