#include <braid/core/ops/softmax.hpp>

#include "softmax_bounds.hpp"

namespace braid::test {
namespace {

struct Softmax {
  const char* op;
  Tensor (*call)(T, I);
  Array (*expected)(A, I);
  Array (*bound)(A, I);
};
const Softmax kSoftmaxes[] = {
    {"softmax", softmax, reference::softmax, softmax_bound},
    {"log_softmax", log_softmax, reference::log_softmax, log_softmax_bound},
};

}  // namespace

void add_softmax_cases(Cases& list) {
  for (const Softmax& f : kSoftmaxes) {
    for (const Line& l : std::vector<Line>{{"last dim", {3, 4}, -1},
                                           {"first dim", {3, 4}, 0},
                                           {"middle dim", {2, 3, 2}, 1},
                                           {"vector", {5}, 0},
                                           {"one class", {3, 1}, 1}}) {
      const I dim = l.dim;
      OpCase& c = of_one(
          list, f.op, l.variant, str("torch.", f.op, "(x0, ", dim, ")"), {l.shape}, kFloats,
          [=](T x) { return f.call(x, dim); }, [=](A a) { return f.expected(a, dim); });
      c.accuracy = Accuracy::bound;
      c.bound = expecting([=](A a) { return f.bound(a, dim); });
    }
    const auto over_last = [f](T x) { return f.call(x, -1); };
    BadInputs(list, f.op)
        .tensor("x", over_last)
        .types(over_last, {3}, kWhole)
        .dims("dim", [f](I dim) { return f.call(made({2, 3}), dim); });
  }
  parameters(list, "log_softmax(x dim) softmax(x dim)");
}

}  // namespace braid::test
