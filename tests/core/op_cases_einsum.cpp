#include <braid/core/ops/einsum.hpp>
#include <braid/core/ops/linear.hpp>

#include "op_cases.hpp"
#include "op_errors.hpp"
#include "reference/einsum.hpp"
#include "reference/elementwise.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;
// of what is rounded more than once
const std::vector<DType> kWide{DType::int32, DType::int64, DType::float32, DType::float64};
const std::vector<DType> kProducts{DType::int32,    DType::int64,   DType::float16,
                                   DType::bfloat16, DType::float32, DType::float64};

Tensor made(const Shape& shape, DType t = DType::float32) {
  return on_device::ones(shape, {.dtype = t});
}

/// A product that is the Einstein sum `by`. Every rounding is of a partial sum: (terms + 2 a
/// product) of Σ |a| |b| ….
OpCase product_case(const std::string& op, const std::string& variant, std::vector<Input> inputs,
                    Function call, const std::string& by, const std::string& torch) {
  OpCase c;
  c.op = op;
  c.variant = variant;
  c.inputs = std::move(inputs);
  c.call = std::move(call);
  c.expected = [by](const std::vector<Array>& a) {
    return std::vector<Array>{reference::einsum(by, a)};
  };
  c.dtypes = kProducts;
  c.accuracy = Accuracy::bound;
  c.bound = [by](const std::vector<Array>& a) {
    std::vector<Array> sizes;
    double terms = 2;
    for (const Array& x : a) {
      sizes.push_back(reference::abs(x));
      terms += static_cast<double>(x.size() > 0 ? x.size() : 1);
    }
    return std::vector<Array>{
        reference::map(reference::einsum(by, sizes), [=](double s) { return terms * s; })};
  };
  c.torch = torch;
  return c;
}

void add_einsum(std::vector<OpCase>& list) {
  struct Sum {
    const char* equation;
    std::vector<Sizes> shapes;
    const char* plain;  // without an ellipsis, with a result
  };
  for (const Sum& s :
       std::vector<Sum>{{"ij,jk->ik", {{2, 3}, {3, 4}}, "ij,jk->ik"},
                        {"ij,jk", {{2, 3}, {3, 4}}, "ij,jk->ik"},
                        {"ab , cb -> ca", {{2, 3}, {4, 3}}, "ab,cb->ca"},
                        {"bij,bjk->bik", {{2, 2, 3}, {2, 3, 2}}, "bij,bjk->bik"},
                        {"bhqd,bhkd->bhqk", {{2, 1, 2, 3}, {2, 1, 3, 3}}, "bhqd,bhkd->bhqk"},
                        {"i,i", {{3}, {3}}, "i,i->"},
                        {"i,j->ij", {{2}, {3}}, "i,j->ij"},
                        {"i,i->i", {{3}, {3}}, "i,i->i"},
                        {"ii", {{3, 3}}, "ii->"},
                        {"ii->i", {{3, 3}}, "ii->i"},
                        {"iji->ji", {{2, 3, 2}}, "iji->ji"},
                        {"ij->ji", {{2, 3}}, "ij->ji"},
                        {"ba", {{2, 3}}, "ba->ab"},
                        {"ij->", {{2, 3}}, "ij->"},
                        {"aB", {{2, 3}}, "aB->Ba"},
                        {"ij,i->j", {{2, 3}, {2}}, "ij,i->j"},
                        {"ij,kl->", {{2, 3}, {4, 2}}, "ij,kl->"},
                        {"ii,ij->j", {{2, 2}, {2, 3}}, "ii,ij->j"},
                        {"ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 3}}, "ij,jk,kl->il"},
                        {"bn,anm,bm->ba", {{2, 3}, {4, 3, 2}, {2, 2}}, "bn,anm,bm->ba"},
                        {"...ij,...jk->...ik", {{2, 1, 2, 3}, {4, 3, 2}}, "abij,bjk->abik"},
                        {"i...,...", {{2, 3}, {3}}, "ia,a->ai"},
                        {"...,...", {{2, 3}, {3}}, "ab,b->ab"},
                        {"ij,jk->ik (sizes of 1)", {{2, 3}, {1, 4}}, "ij,jk->ik"},
                        {"ij,ij->i (sizes of 1)", {{2, 1}, {1, 3}}, "ij,ij->i"},
                        {",i->i", {{}, {3}}, ",i->i"},
                        {"ij,jk->ik (empty)", {{2, 0}, {0, 3}}, "ij,jk->ik"}}) {
    const std::string name = s.equation, equation = name.substr(0, name.find(" ("));
    std::vector<Input> inputs;
    std::string torch = "torch.einsum('" + equation + "'";
    for (std::size_t i = 0; i < s.shapes.size(); ++i) {
      inputs.push_back({s.shapes[i]});
      torch += ", x" + std::to_string(i);
    }
    list.push_back(product_case(
        "einsum", name, inputs,
        [equation](const std::vector<Tensor>& t) {
          return std::vector<Tensor>{einsum(equation, t)};
        },
        s.plain, torch + ")"));
    const bool once =
        s.shapes.size() < 3 && name.find("(sizes") == std::string::npos && name != "ij,kl->";
    if (!once) list.back().dtypes = kWide;
    // One term of one operand's elements alone is that element.
    if (s.shapes.size() == 1 && std::string(s.plain).back() != '>')
      list.back().accuracy = Accuracy::exact, list.back().dtypes = all_dtypes();
  }
  const auto bad = [](const char* argument, const char* equation, std::vector<Shape> shapes,
                      const char* type, const char* text) {
    return BadInput{argument,
                    [=] {
                      std::vector<Tensor> operands;
                      for (const Shape& shape : shapes) operands.push_back(made(shape));
                      (void)einsum(equation, operands);
                    },
                    type, text};
  };
  list[list.size() - 27].errors = {
      bad("equation", "i1->i", {{2}}, "ArgumentError",
          "einsum: expected letters, ',', '->', '...' or blanks, got '1' at position 1 of 'i1->i'"),
      bad("equation", "i.j", {{2, 2}}, "ArgumentError",
          "einsum: expected three dots, got '.' at position 1 of 'i.j'"),
      bad("equation", "......", {{2}}, "ArgumentError",
          "einsum: expected one ellipsis a term, got '.' at position 3"),
      bad("equation", "i->ii", {{2}}, "ArgumentError",
          "einsum: expected each letter once in the result, got 'i' at position 4"),
      bad("equation", "i->j", {{2}}, "ArgumentError",
          "einsum: expected letters of the operands in the result, got 'j' in 'i->j'"),
      bad("equation", "i->i,i", {{2}}, "ArgumentError",
          "einsum: expected letters, .*, got ',' at position 4"),
      bad("equation", "i-", {{2}}, "ArgumentError",
          "einsum: expected letters, .*, got '-' at position 1"),
      bad("operands", "i,j", {{2}}, "ArgumentError",
          "einsum: expected 2 operands for 'i,j', got 1"),
      bad("operands", "i", {}, "ArgumentError", "einsum: expected at least one operand, got none"),
      bad("operands", "ij,jk", {{2, 3}, {4, 5}}, "ShapeError",
          "einsum: expected one size of 'j' in 'ij,jk', got 3 and 4"),
      bad("operands", "ii", {{2, 3}}, "ShapeError",
          "einsum: expected equal sizes of the dims 'i' of one operand, got 2 and 3"),
      bad("operands", "ij", {{2}}, "ShapeError",
          R"(einsum: expected an operand of rank 2 at place 0 of 'ij', got \[2\])"),
      bad("operands", "i...j", {{2}}, "ShapeError",
          R"(einsum: expected an operand of rank >= 2 at place 0 of 'i\.\.\.j', got \[2\])"),
      bad("operands", "...i,...i->...", {{2, 3}, {4, 3}}, "ShapeError",
          "einsum: expected one size of dim -1 of the ellipsis in .*, got 2 and 4"),
      {"operands", [] { (void)einsum("i,i", made({2}), made({2}, DType::float64)); }, "DTypeError",
       "einsum: expected one dtype, got float32 and float64"}};
}

/// Both operands in three wrong ways.
std::vector<BadInput> errors_of(const char* op, Tensor (*f)(T, T), const Shape& a, const Shape& b,
                                const char* inner) {
  std::vector<BadInput> list;
  for (const bool first : {true, false}) {
    const auto call = [=](const Shape& shape, DType t) {
      return [=] { (void)(first ? f(made(shape, t), made(b)) : f(made(a), made(shape, t))); };
    };
    const char* argument = first ? "a" : "b";
    Shape larger = first ? a : b;
    larger[first ? larger.rank() - 1 : (larger.rank() > 1 ? larger.rank() - 2 : 0)] += 1;
    list.push_back(
        {argument, call({2, 2, 2, 2}, DType::float32), "ShapeError", str(op, ": expected t")});
    list.push_back({argument, call(larger, DType::float32), "ShapeError", str(op, ": ", inner)});
    list.push_back({argument, call(first ? a : b, DType::float64), "DTypeError",
                    str(op, ": expected one dtype, got ")});
  }
  return list;
}

}  // namespace

void add_einsum_cases(std::vector<OpCase>& list) {
  add_einsum(list);
  const auto two = [](Tensor (*f)(T, T)) { return function_of([f](T a, T b) { return f(a, b); }); };
  list.push_back(
      product_case("mm", "", {{{2, 3}}, {{3, 4}}}, two(&mm), "ij,jk->ik", "torch.mm(x0, x1)"));
  list.back().errors =
      errors_of("mm", &mm, {2, 3}, {3, 4}, "expected equal inner dimensions, got ");
  list.push_back(product_case("bmm", "", {{{2, 2, 3}}, {{2, 3, 2}}}, two(&bmm), "bij,bjk->bik",
                              "torch.bmm(x0, x1)"));
  list.back().errors =
      errors_of("bmm", &bmm, {2, 2, 3}, {2, 3, 2}, "expected equal inner dimensions, got ");
  list.back().errors.push_back({"a", [] { (void)bmm(made({2, 1, 1}), made({1, 1, 1})); },
                                "ShapeError", "bmm: expected batches of one size, got"});
  list.push_back(
      product_case("mv", "", {{{2, 3}}, {{3}}}, two(&mv), "ij,j->i", "torch.mv(x0, x1)"));
  list.back().errors = errors_of("mv", &mv, {2, 3}, {3}, "expected equal inner dimensions, got ");
  list.push_back(product_case("dot", "", {{{3}}, {{3}}}, two(&dot), "i,i->", "torch.dot(x0, x1)"));
  list.back().errors = errors_of("dot", &dot, {3}, {3}, "expected equal inner dimensions, got ");
  list.push_back(
      product_case("outer", "", {{{2}}, {{3}}}, two(&outer), "i,j->ij", "torch.outer(x0, x1)"));
  list.back().accuracy = Accuracy::exact;
  list.back().dtypes = all_dtypes();
  for (const char* argument : {"a", "b"})
    for (const Shape& shape : {Shape{}, Shape{1, 2}, Shape{2, 2, 2}})
      list.back().errors.push_back({argument,
                                    [argument, shape] {
                                      (void)(*argument == 'a' ? outer(made(shape), made({2}))
                                                              : outer(made({2}), made(shape)));
                                    },
                                    "ShapeError", "outer: expected two vectors, got "});
  const auto over = [](std::int64_t dims) {
    return function_of([dims](T a, T b) { return tensordot(a, b, dims); });
  };
  const auto pairs = [](const Shape& of_a, const Shape& of_b) {
    return function_of([=](T a, T b) { return tensordot(a, b, of_a, of_b); });
  };
  list.push_back(product_case("tensordot", "two dims", {{{2, 3, 2}}, {{3, 2, 4}}}, over(2),
                              "iab,abj->ij", "torch.tensordot(x0, x1, 2)"));
  list.back().errors = {
      {"a", [] { (void)tensordot(made({3}), made({3, 2})); }, "ShapeError",
       R"(tensordot: expected tensors of rank >= 2, got \[3\] and \[3, 2\])"},
      {"a", [] { (void)tensordot(made({2, 3}), made({4, 5}), 1); }, "ShapeError",
       "tensordot: expected equal sizes of dim 1 of a and dim 0 of b, got "},
      {"a", [] { (void)tensordot(made({2}, DType::float64), made({2}), 1); }, "DTypeError",
       "tensordot: expected one dtype, got float64 and float32"},
      {"b", [] { (void)tensordot(made({3, 2}), made({3})); }, "ShapeError",
       "tensordot: expected tensors of rank >= 2, got "},
      {"b", [] { (void)tensordot(made({2, 3}), made({2, 3}), {1}, {0}); }, "ShapeError",
       "tensordot: expected equal sizes of dim 1 of a and dim 0 of b"},
      {"b", [] { (void)tensordot(made({2}, DType::bool_), made({2}, DType::bool_), 1); },
       "DTypeError", "tensordot: expected floating point, int32 or int64, got bool"},
      {"dims", [] { (void)tensordot(made({2}), made({2}), -1); }, "ArgumentError",
       "tensordot: expected dims >= 0, got -1"}};
  BadInputs(list, "tensordot")
      .of("dims")
      .values<std::int64_t>([](std::int64_t n) { (void)tensordot(made({2}), made({2}), n); },
                            {2, std::int64_t{1} << 62}, "ShapeError",
                            "expected tensors of rank >= ");
  for (const bool first : {true, false}) {
    const auto over_these = [first](const Shape& dims) {
      const Shape fits{0, 1};
      (void)tensordot(made({2, 2}), made({2, 2}), first ? dims : fits, first ? fits : dims);
    };
    BadInputs(list, "tensordot")
        .of(first ? "dims_a" : "dims_b")
        .values<Shape>(over_these, {{0}, {}}, "ArgumentError",
                       "expected as many dims of a as of b, got ")
        .values<Shape>(over_these, {{0, -2}}, "ArgumentError",
                       str("expected each dim of ", first ? "a" : "b", " once, got -2 again"))
        .values<Shape>(over_these, {{0, 2}, {-3, 0}}, "IndexError", "expected a dim in");
  }
  list.push_back(product_case("tensordot", "no dims", {{{2}}, {{3, 2}}}, over(0), "i,jk->ijk",
                              "torch.tensordot(x0, x1, 0)"));
  list.push_back(product_case("tensordot", "pairs", {{{2, 3, 4}}, {{4, 5, 2}}},
                              pairs({0, 2}, {-1, 0}), "iaj,jbi->ab",
                              "torch.tensordot(x0, x1, ([0, 2], [2, 0]))"));
  list.push_back(product_case("tensordot", "a size of 1", {{{2, 1}}, {{3, 4}}}, over(1),
                              "ia,aj->ij", "torch.tensordot(x0, x1, 1)"));
  list.back().dtypes = kWide;
}

}  // namespace braid::test
