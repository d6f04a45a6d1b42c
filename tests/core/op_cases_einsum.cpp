#include <string>

#include <braid/core/ops/einsum.hpp>

#include "einstein_sum.hpp"
#include "op_case_makers.hpp"

namespace braid::test {
namespace {

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
    OpCase& c = add_einstein_sum(
        list, "einsum", name, s.shapes, s.plain, torch + ")",
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

}  // namespace

void add_einsum_cases(Cases& list) {
  add_einsum(list);
  parameters(list, "einsum(equation operands)");
}

}  // namespace braid::test
