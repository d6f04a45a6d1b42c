// Cases of diagonals and triangles of matrices.
#include <braid/core/ops/diagonal.hpp>

#include "op_case_makers.hpp"
#include "reference/rearrange.hpp"

namespace braid::test {
namespace {

const Arrangement kOfMatrix{"diag",
                            "of a matrix",
                            "torch.diag(x0, 1)",
                            Sizes{3, 4},
                            [](T x) { return diag(x, 1); },
                            [](A a) { return reference::diagonal(a, 1, 0, 1); }};

}  // namespace

void add_diagonal_cases(Cases& list) {
  add_arrangement(list, kOfMatrix);
  const std::vector<Shape> low{Shape{}, Shape{3}, Shape{0}};
  for (const bool lower : {true, false}) {
    const char* op = lower ? "tril" : "triu";
    const auto triangle = [lower](T x, I k) { return lower ? tril(x, k) : triu(x, k); };
    for (const auto& [shape, k] : std::vector<std::pair<Sizes, I>>{
             {{3, 4}, 0}, {{4, 3}, 1}, {{2, 3, 3}, -1}, {{3, 3}, 100}, {{3, 3}, -100}})
      of_one(
          list, op, str(Shape(shape), ", diagonal ", k), str("torch.", op, "(x0, ", k, ")"),
          {shape}, kAll, [=, k = k](T x) { return triangle(x, k); },
          [lower, k = k](A a) { return reference::triangle(a, k, lower); });
    refuse_undefined(list, op, [=](T x) { triangle(x, 0); });
    BadInputs(list, op)
        .lists("x", low, kShape, "at least two dims",
               [=](const Shape& s) { triangle(zeros_of(s), 0); })
        .free("diagonal", "one beyond the matrix leaves all of it, or nothing");
  }
  struct Diagonal {
    Sizes shape;
    I offset, a, b;
  };
  for (const Diagonal& d : std::vector<Diagonal>{{{3, 4}, 0, 0, 1},
                                                 {{3, 4}, 1, 0, 1},
                                                 {{4, 3}, -2, 0, 1},
                                                 {{2, 3, 4}, 0, -1, 0},
                                                 {{3, 3}, 50, 0, 1},
                                                 {{3, 3}, -50, 1, 0}})
    of_one(
        list, "diagonal", str(Shape(d.shape), ", offset ", d.offset, " of dims ", d.a, ", ", d.b),
        str("torch.diagonal(x0, ", d.offset, ", ", d.a, ", ", d.b, ")"), {d.shape}, kAll,
        [d](T x) { return diagonal(x, d.offset, d.a, d.b); },
        [d](A a) { return reference::diagonal(a, d.offset, d.a, d.b); });
  refuse_dim(list, "diagonal", "a", [](T x, I dim) { (void)diagonal(x, 0, dim, 1); });
  refuse_dim(list, "diagonal", "b", [](T x, I dim) { (void)diagonal(x, 0, 0, dim); });
  BadInputs(list, "diagonal", "b")
      .is(kShape, "two different dims", [] { return diagonal(zeros_of({2, 3}), 0, 0, -2); })
      .lists("x", low, kShape, "at least two dims",
             [](const Shape& s) { (void)diagonal(zeros_of(s)); })
      .free("offset", "one beyond the matrix is an empty diagonal");
  for (const I at : {0, 1, -2})
    of_one(
        list, "diag", str("of a vector, ", at), str("torch.diag(x0, ", at, ")"), {{3}}, kAll,
        [at](T x) { return diag(x, at); }, [at](A a) { return reference::diag(a, at); });
  BadInputs bad(list, "diag");
  bad.lists("x", {Shape{}, Shape{1, 2, 3}, Shape{1, 1, 1, 1}}, kShape, "a vector or a matrix",
            [](const Shape& s) { (void)diag(zeros_of(s)); });
  for (const I far : {kMost, kLeast, I{1} << 62, -(I{1} << 62)})
    bad.of("offset").refused(kShape, "expected", [far] { return diag(zeros_of({3}), far); });
  parameters(list, "diag(x offset) diagonal(x offset a b) tril(x diagonal) triu(x diagonal)");
}

}  // namespace braid::test
