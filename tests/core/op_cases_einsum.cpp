#include <map>
#include <string>

#include <braid/core/ops/einsum.hpp>
#include <braid/core/ops/linear.hpp>

#include "op_case_makers.hpp"

namespace braid::test {
namespace {

/// Computes an Einstein sum by the definition: a loop over all values of all letters. The equation
/// must have no ellipsis and must name its result.
Array by_definition(const std::string& equation, Arrays operands) {
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  const std::string result = equation.substr(arrow + 2);
  std::map<char, I> size;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      I& n = size.try_emplace(terms[k][d], 1).first->second;
      if (n == 1) n = operands.at(k).shape.at(d);
    }
  std::string letters;
  Sizes all, shape;
  for (const auto& [letter, n] : size) letters += letter, all.push_back(n);
  for (const char c : result) shape.push_back(size.at(c));
  // For each letter, the stride of a term in an array of those sizes; 0 for a size of 1.
  const auto steps_of = [&](const std::string& term, const Sizes& sizes) {
    Sizes steps(letters.size(), 0);
    const Sizes strides = reference::row_major(sizes);
    for (std::size_t d = 0; d < term.size(); ++d)
      if (sizes.at(d) != 1) steps.at(letters.find(term[d])) += strides[d];
    return steps;
  };
  std::vector<Sizes> steps;
  for (std::size_t k = 0; k < terms.size(); ++k)
    steps.push_back(steps_of(terms[k], operands.at(k).shape));
  const Sizes out_steps = steps_of(result, shape);
  Array out(shape);
  reference::for_each(all, [&](const Sizes& value) {
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k)
      product *= operands[k][reference::offset(value, steps[k])];
    out[reference::offset(value, out_steps)] += product;
  });
  return out;
}

/// Adds a product that equals the Einstein sum `by`. Every rounding is of a partial sum: (terms + 2
/// per product) roundings of Σ |a| |b| ….
OpCase& add(Cases& list, const std::string& op, const std::string& variant,
            const std::vector<Sizes>& shapes, const std::string& by, const std::string& torch,
            Function call) {
  OpCase& c = push(list, op, variant, torch, {}, kSigned);
  for (const Sizes& s : shapes) c.inputs.push_back({s});
  c.call = std::move(call);
  c.expected = [by](Arrays a) { return std::vector<Array>{by_definition(by, a)}; };
  bound_by_sizes(c, [](Arrays a, A) {
    double terms = 2;
    for (A x : a) terms += static_cast<double>(x.size() > 0 ? x.size() : 1);
    return terms;
  });
  return c;
}

struct Sum {
  const char* equation;
  std::vector<Sizes> shapes;
  const char* plain;  // the equation without an ellipsis, with a result
};
const std::vector<Sum> kSums{{"ij,jk->ik", {{2, 3}, {3, 4}}, "ij,jk->ik"},
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
                             {"ij,jk->ik (empty)", {{2, 0}, {0, 3}}, "ij,jk->ik"}};

struct Wrong {
  const char *argument, *equation;
  std::vector<Shape> shapes;
  const char *type, *text;
};
const Wrong kWrong[] = {
    {"equation", "i1->i", Shapes{{2}}, kArgument,
     "letters, ',', '->', '...' or blanks, got '1' at position 1 of 'i1->i'"},
    {"equation", "i.j", Shapes{{2, 2}}, kArgument, "three dots, got '.' at position 1 of 'i.j'"},
    {"equation", "......", Shapes{{2}}, kArgument, "one ellipsis a term, got '.' at position 3"},
    {"equation", "i->ii", Shapes{{2}}, kArgument,
     "each letter once in the result, got 'i' at position 4"},
    {"equation", "i->j", Shapes{{2}}, kArgument,
     "letters of the operands in the result, got 'j' in 'i->j'"},
    {"equation", "i->i,i", Shapes{{2}}, kArgument, "letters, .*, got ',' at position 4"},
    {"equation", "i-", Shapes{{2}}, kArgument, "letters, .*, got '-' at position 1"},
    {"operands", "i,j", Shapes{{2}}, kArgument, "2 operands for 'i,j', got 1"},
    {"operands", "i", Shapes{}, kArgument, "at least one operand, got none"},
    {"operands", "ij,jk", Shapes{{2, 3}, {4, 5}}, kShape,
     "one size of 'j' in 'ij,jk', got 3 and 4"},
    {"operands", "ii", Shapes{{2, 3}}, kShape,
     "equal sizes of the dims 'i' of one operand, got 2 and 3"},
    {"operands", "ij", Shapes{{2}}, kShape,
     R"(an operand of rank 2 at place 0 of 'ij', got \[2\])"},
    {"operands", "i...j", Shapes{{2}}, kShape,
     R"(an operand of rank >= 2 at place 0 of 'i\.\.\.j', got \[2\])"},
    {"operands", "...i,...i->...", Shapes{{2, 3}, {4, 3}}, kShape,
     "one size of dim -1 of the ellipsis in .*, got 2 and 4"},
};

void add_einsum(Cases& list) {
  for (const Sum& s : kSums) {
    const std::string name = s.equation, equation = name.substr(0, name.find(" ("));
    std::string torch = "torch.einsum('" + equation + "'";
    for (std::size_t i = 0; i < s.shapes.size(); ++i) torch += ", x" + std::to_string(i);
    OpCase& c = add(list, "einsum", name, s.shapes, s.plain, torch + ")",
                    [equation](Tensors t) { return std::vector<Tensor>{einsum(equation, t)}; });
    // These results are rounded more than once.
    if (s.shapes.size() > 2 || name.find("(sizes") != name.npos || name == "ij,kl->")
      c.dtypes = kWide;
    // A single element of one operand is copied without rounding.
    if (s.shapes.size() == 1 && std::string(s.plain).back() != '>')
      c.accuracy = Accuracy::exact, c.dtypes = kAll;
  }
  for (const Wrong& w : kWrong)
    refuse(list, "einsum", {{w.argument, w.type, w.text, [w] {
                               std::vector<Tensor> operands;
                               for (const Shape& shape : w.shapes) operands.push_back(made(shape));
                               return einsum(w.equation, operands);
                             }}});
  refuse(list, "einsum", {{"operands", kType, "one dtype, got float32 and float64", [] {
                             return einsum("i,i", made({2}), made({2}, DType::float64));
                           }}});
}

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
  add(list, "tensordot", "two dims", {{2, 3, 2}, {3, 2, 4}}, "iab,abj->ij",
      "torch.tensordot(x0, x1, 2)", over(2));
  add(list, "tensordot", "no dims", {{2}, {3, 2}}, "i,jk->ijk", "torch.tensordot(x0, x1, 0)",
      over(0));
  add(list, "tensordot", "pairs", {{2, 3, 4}, {4, 5, 2}}, "iaj,jbi->ab",
      "torch.tensordot(x0, x1, ([0, 2], [2, 0]))",
      function_of([](T a, T b) { return tensordot(a, b, {0, 2}, {-1, 0}); }));
  add(list, "tensordot", "a size of 1", {{2, 1}, {3, 4}}, "ia,aj->ij", "torch.tensordot(x0, x1, 1)",
      over(1))
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

void add_einsum_cases(Cases& list) {
  add_einsum(list);
  for (const Product& p : kProducts) {
    add(list, p.op, "", {p.a, p.b}, p.by, p.torch, function_of(p.call));
    refuse_operands(list, p);
  }
  refuse(list, "bmm", {{"a", kShape, "batches of one size, got", [] {
                          return bmm(made({2, 1, 1}), made({1, 1, 1}));
                        }}});
  OpCase& c =
      add(list, "outer", "", {{2}, {3}}, "i,j->ij", "torch.outer(x0, x1)", function_of(&outer));
  c.accuracy = Accuracy::exact;
  c.dtypes = kAll;
  for (const bool first : {true, false})
    BadInputs(list, "outer", first ? "a" : "b")
        .shapes([first](T x) { return first ? outer(x, made({2})) : outer(made({2}), x); },
                {{}, {1, 2}, {2, 2, 2}}, "two vectors, got ");
  add_tensordot(list);
}

}  // namespace braid::test
