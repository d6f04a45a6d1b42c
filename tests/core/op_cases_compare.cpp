// Cases of comparisons and logic.
#include <braid/core/ops/elementwise.hpp>

#include "op_case_makers.hpp"

namespace braid::test {
namespace {

// Values on a coarse grid (integers, or the same tensor twice) would often be equal. Comparisons of
// equal values have a separate test.
const Function2 kComparisons[] = {
    {"eq", eq, [](double a, double b) { return a == b ? 1.0 : 0.0; }, kAll},
    {"ne", ne, [](double a, double b) { return a != b ? 1.0 : 0.0; }, kAll},
    {"lt", lt, [](double a, double b) { return a < b ? 1.0 : 0.0; }, kAll},
    {"le", le, [](double a, double b) { return a <= b ? 1.0 : 0.0; }, kAll},
    {"gt", gt, [](double a, double b) { return a > b ? 1.0 : 0.0; }, kAll},
    {"ge", ge, [](double a, double b) { return a >= b ? 1.0 : 0.0; }, kAll},
};

const Unary kWithNumbers[] = {
    {"eq", "with a number", "torch.eq(x0, 1)", [](T a) { return eq(a, 1); },
     [](double x) { return x == 1 ? 1.0 : 0.0; }},
    {"gt", "with a number", "torch.gt(x0, 0)", [](T a) { return gt(a, 0); },
     [](double x) { return x > 0 ? 1.0 : 0.0; }},
    {"lt", "with a number", "torch.lt(x0, 1)", [](T a) { return lt(a, 1); },
     [](double x) { return x < 1 ? 1.0 : 0.0; }},
    {"ne", "with a number", "torch.ne(x0, 1)", [](T a) { return ne(a, 1); },
     [](double a) { return a != 1 ? 1.0 : 0.0; }},
    {"le", "with a number", "torch.le(x0, 1)", [](T a) { return le(a, 1); },
     [](double a) { return a <= 1 ? 1.0 : 0.0; }},
    {"ge", "with a number", "torch.ge(x0, 1)", [](T a) { return ge(a, 1); },
     [](double a) { return a >= 1 ? 1.0 : 0.0; }},
    {"eq", "number first", "1 == x0", [](T a) { return eq(1, a); },
     [](double a) { return 1 == a ? 1.0 : 0.0; }},
    {"ne", "number first", "1 != x0", [](T a) { return ne(1, a); },
     [](double a) { return 1 != a ? 1.0 : 0.0; }},
    {"lt", "number first", "1 < x0", [](T a) { return lt(1, a); },
     [](double a) { return 1 < a ? 1.0 : 0.0; }},
    {"le", "number first", "1 <= x0", [](T a) { return le(1, a); },
     [](double a) { return 1 <= a ? 1.0 : 0.0; }},
    {"gt", "number first", "1 > x0", [](T a) { return gt(1, a); },
     [](double a) { return 1 > a ? 1.0 : 0.0; }},
    {"ge", "number first", "1 >= x0", [](T a) { return ge(1, a); },
     [](double a) { return 1 >= a ? 1.0 : 0.0; }},
};

const Binary kLogic[] = {
    {"logical_and", "torch.logical_and(x0, x1)", logical_and,
     [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, kAll},
    {"logical_or", "torch.logical_or(x0, x1)", logical_or,
     [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, kAll},
    {"logical_xor", "torch.logical_xor(x0, x1)", logical_xor,
     [](double a, double b) { return (a != 0) != (b != 0) ? 1.0 : 0.0; }, kAll},
};

}  // namespace

void add_compare_cases(Cases& list) {
  for (const Function2& f : kComparisons) add_binary(list, f, boolean, false);
  for (const Unary& f : kWithNumbers) add_unary(list, f, kAll, Accuracy::exact, boolean, false);
  for (const Binary& f : kLogic) add_binary(list, f, false);
}

}  // namespace braid::test
