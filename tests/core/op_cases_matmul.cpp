#include <braid/core/ops/matmul.hpp>

#include "einstein_sum.hpp"
#include "op_case_makers.hpp"
#include "reference/matmul.hpp"

namespace braid::test {
namespace {

struct Operands {
  const char* variant;
  Sizes a, b;
};
const std::vector<Operands> kOperands{{"", {2, 3}, {3, 4}},
                                      {"vector by vector", {3}, {3}},
                                      {"vector by matrix", {3}, {3, 2}},
                                      {"matrix by vector", {2, 3}, {3}},
                                      {"one column", {3, 2}, {2, 1}},
                                      {"outer product", {3, 1}, {1, 4}},
                                      {"batch", {2, 2, 3}, {2, 3, 2}},
                                      {"batch by matrix", {2, 2, 3}, {3, 2}},
                                      {"matrix by batch", {2, 3}, {2, 3, 2}},
                                      {"broadcast batches", {2, 1, 2, 3}, {2, 3, 2}},
                                      {"three batch dims", {2, 3, 1, 2, 3}, {2, 1, 2, 3, 2}},
                                      {"batch by vector", {2, 2, 3}, {3}},
                                      {"vector by batch", {3}, {2, 3, 2}}};

struct Product {
  const char* op;
  Tensor (*call)(T, T);
  Sizes a, b;
  const char *by, *torch;
};
const Product kProducts[] = {
    {"mm", mm, Sizes{2, 3}, Sizes{3, 4}, "ij,jk->ik", "torch.mm(x0, x1)"},
    {"bmm", bmm, Sizes{2, 2, 3}, Sizes{2, 3, 2}, "bij,bjk->bik", "torch.bmm(x0, x1)"},
    {"mv", mv, Sizes{2, 3}, Sizes{3}, "ij,j->i", "torch.mv(x0, x1)"},
    {"dot", dot, Sizes{3}, Sizes{3}, "i,i->", "torch.dot(x0, x1)"},
};

/// Adds three bad inputs for each operand.
void refuse_operands(Cases& list, const Product& p) {
  for (const bool first : {true, false}) {
    const auto with = [=](T x) { return first ? p.call(x, made(p.b)) : p.call(made(p.a), x); };
    const Sizes fits = first ? p.a : p.b;
    Sizes larger = fits;
    larger[first || larger.size() == 1 ? larger.size() - 1 : larger.size() - 2] += 1;
    BadInputs(list, p.op, first ? "a" : "b")
        .shapes(with, {{2, 2, 2, 2}}, "t")
        .shapes(with, {larger}, "equal inner dimensions, got ")
        .types(with, fits, {DType::float64}, "one dtype, got ");
  }
}

void add_tensordot(Cases& list) {
  const auto over = [](I dims) {
    return function_of([dims](T a, T b) { return tensordot(a, b, dims); });
  };
  add_einstein_sum(list, "tensordot", "two dims", {{2, 3, 2}, {3, 2, 4}}, "iab,abj->ij",
                   "torch.tensordot(x0, x1, 2)", over(2));
  add_einstein_sum(list, "tensordot", "no dims", {{2}, {3, 2}}, "i,jk->ijk",
                   "torch.tensordot(x0, x1, 0)", over(0));
  add_einstein_sum(list, "tensordot", "pairs", {{2, 3, 4}, {4, 5, 2}}, "iaj,jbi->ab",
                   "torch.tensordot(x0, x1, ([0, 2], [2, 0]))",
                   function_of([](T a, T b) { return tensordot(a, b, {0, 2}, {-1, 0}); }));
  add_einstein_sum(list, "tensordot", "a size of 1", {{2, 1}, {3, 4}}, "ia,aj->ij",
                   "torch.tensordot(x0, x1, 1)", over(1))
      .dtypes = kWide;
  const auto dot = [](const Shape& a, const Shape& b, I dims, DType t = DType::float32,
                      DType u = DType::float32) {
    return [=] { (void)tensordot(made(a, t), made(b, u), dims); };
  };
  refuse(list, "tensordot",
         {{"a", kShape, R"(tensors of rank >= 2, got \[3\] and \[3, 2\])", dot({3}, {3, 2}, 2)},
          {"a", kShape, "equal sizes of dim 1 of a and dim 0 of b, got ", dot({2, 3}, {4, 5}, 1)},
          {"a", kType, "one dtype, got float64 and float32", dot({2}, {2}, 1, DType::float64)},
          {"b", kShape, "tensors of rank >= 2, got ", dot({3, 2}, {3}, 2)},
          {"b", kShape, "equal sizes of dim 1 of a and dim 0 of b",
           [] { return tensordot(made({2, 3}), made({2, 3}), {1}, {0}); }},
          {"b", kType, "floating point, int32 or int64, got bool",
           dot({2}, {2}, 1, DType::bool_, DType::bool_)},
          {"dims", kArgument, "dims >= 0, got -1", dot({2}, {2}, -1)},
          {"dims", kShape, "tensors of rank >= ", dot({2}, {2}, 2)},
          {"dims", kShape, "tensors of rank >= ", dot({2}, {2}, I{1} << 62)}});
  for (const bool first : {true, false}) {
    const auto over_these = [first](const Shape& dims) {
      const Shape fits{0, 1};
      (void)tensordot(made({2, 2}), made({2, 2}), first ? dims : fits, first ? fits : dims);
    };
    BadInputs(list, "tensordot")
        .lists(first ? "dims_a" : "dims_b", {Shape{0}, Shape{}}, kArgument,
               "as many dims of a as of b, got ", over_these)
        .lists(first ? "dims_a" : "dims_b", {Shape{0, -2}}, kArgument,
               str("each dim of ", first ? "a" : "b", " once, got -2 again"), over_these)
        .lists(first ? "dims_a" : "dims_b", {Shape{0, 2}, Shape{-3, 0}}, kIndex, "a dim in",
               over_these);
  }
}

}  // namespace

void add_matmul_cases(Cases& list) {
  for (const Operands& s : kOperands) {
    OpCase& c = push(list, "matmul", s.variant, "torch.matmul(x0, x1)", {{s.a}, {s.b}}, kSigned);
    c.call = function_of([](T a, T b) { return matmul(a, b); });
    c.expected = expecting(reference::matmul);
    bound_by_sizes(c, terms_and(2));
  }
  for (const bool left : {true, false}) {
    const auto f = [left](T x) { return left ? matmul(x, made({3, 2})) : matmul(made({2, 3}), x); };
    BadInputs bad(list, "matmul");
    bad.tensor(left ? "a" : "b", f, {3, 3})
        .types(f, {3, 3}, {DType::float64, DType::int32}, "one dtype, got ")
        .shapes(f, {{}}, "tensors of rank >= 1, got ");
    for (const Sizes& shape : {Sizes{2}, Sizes{2, 4}})
      bad.refused(kShape, "matmul: inner dimensions differ: expected b\\.shape\\[0\\] == ", [=] {
        return f(made(shape));
      });
  }
  for (const Product& p : kProducts) {
    add_einstein_sum(list, p.op, "", {p.a, p.b}, p.by, p.torch, function_of(p.call));
    refuse_operands(list, p);
  }
  refuse(list, "bmm", {{"a", kShape, "batches of one size, got", [] {
                          return bmm(made({2, 1, 1}), made({1, 1, 1}));
                        }}});
  OpCase& c = add_einstein_sum(list, "outer", "", {{2}, {3}}, "i,j->ij", "torch.outer(x0, x1)",
                               function_of(&outer));
  c.accuracy = Accuracy::exact;
  c.dtypes = kAll;
  for (const bool first : {true, false})
    BadInputs(list, "outer", first ? "a" : "b")
        .shapes([first](T x) { return first ? outer(x, made({2})) : outer(made({2}), x); },
                {{}, {1, 2}, {2, 2, 2}}, "two vectors, got ");
  add_tensordot(list);
  parameters(list, "tensordot(a b dims) tensordot(a b dims_a dims_b)");
}

}  // namespace braid::test
