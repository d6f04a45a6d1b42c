#include <braid/core/ops/dropout.hpp>

#include "dropout_factors.hpp"
#include "op_case_makers.hpp"

namespace braid::test {

using reference::at, reference::rank;

void add_dropout_cases(Cases& list) {
  struct Dropout {
    const char *op, *variant;
    Sizes x;
    double p;
    int spatial;  // dims of a channel
  };
  const Dropout dropouts[] = {
      {"dropout", "matrix", {3, 5}, 0.5, 0},         {"dropout", "vector", {5}, 0.25, 0},
      {"dropout", "three dims", {2, 3, 4}, 0.75, 0}, {"dropout", "all", {3, 4}, 1, 0},
      {"dropout1d", "batch", {2, 4, 3}, 0.5, 1},     {"dropout2d", "batch", {2, 4, 3, 2}, 0.5, 2}};
  for (const Dropout& s : dropouts) {
    const auto call = [spatial = s.spatial](T x, double p) {
      return spatial == 0   ? dropout(x, p, true)
             : spatial == 1 ? dropout1d(x, p, true)
                            : dropout2d(x, p, true);
    };
    OpCase& c = push(list, s.op, s.variant, "", {{s.x}}, kFloats, Accuracy::tolerance);
    c.call = function_of([=](T x) {
      if (!x.defined()) return call(x, s.p);
      return as_one_forward(x, [&] { return call(x, s.p); });
    });
    c.expected = expecting([=](A x) {
      Array y = x;
      I channel = 1;
      for (int d = rank(x) - s.spatial; d < rank(x); ++d) channel *= at(x.shape, d);
      const I first = x.size() > 0 ? kFirstRow * (x.size() / channel / at(x.shape, 0)) : 0;
      const auto factor = factors(first, s.p);
      for (I i = 0; i < x.size(); ++i) y[i] = x[i] * factor(i / channel);
      return y;
    });
    if (s.spatial == 0 && s.variant[0] != 'm') continue;
    BadInputs bad(list, s.op);
    bad.numbers("p", {-0.5, 1.5, kNan}, kArgument, "0 <= p <= 1, got ",
                [=](double p) { return call(ones_of({2, 4, 3}), p); });
    const auto half = [=](T x) { return call(x, 0.5); };
    bad.of("x").types(half, {2, 4, 3}, {DType::int64, DType::uint8, DType::bool_});
    if (s.spatial > 0) bad.shapes(half, {{3}}, "x of rank");
  }
  parameters(list, "dropout(x p training) dropout1d(x p training) dropout2d(x p training)");
}

}  // namespace braid::test
