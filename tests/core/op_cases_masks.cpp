#include <braid/core/ops/masks.hpp>
#include <braid/core/ops/reduce.hpp>

#include "op_case_makers.hpp"
#include "reference/gather.hpp"

namespace braid::test {

void add_masks_cases(Cases& list) {
  struct Masked {
    const char* variant;
    Sizes x, mask;
  };
  for (const Masked& m : std::vector<Masked>{{"", {3, 4}, {3, 4}},
                                             {"mask broadcasts", {3, 4}, {4}},
                                             {"x broadcasts", {4}, {3, 1}},
                                             {"rank 0", {}, {}}}) {
    OpCase& c = push(list, "masked_select", m.variant, "torch.masked_select(x0, x1)",
                     {{m.x}, {m.mask, Kind::boolean}});
    c.call = function_of(masked_select);
    c.expected = expecting(reference::masked_select);
  }
  const auto by = [](T mask) { return masked_select(ones_of({2}), mask); };
  const auto of = [](T x) { return masked_select(x, ones_of({2}, DType::bool_)); };
  BadInputs(list, "masked_select", "mask")
      .types(by, {2}, {DType::uint8, DType::int64, DType::float32}, "a bool mask, got ")
      .tensor("x", of)
      .shapes(of, {{3}, {2, 3}}, "");
  for (const Sizes& shape : std::vector<Sizes>{{3, 4}, {5}, {2, 3, 2}, {}}) {
    OpCase& c = push(list, "nonzero", str("rank ", shape.size()), "torch.nonzero(x0)", {{shape}});
    c.call = function_of([](T x) { return nonzero(x); });
    c.expected = expecting(reference::nonzero);
    c.differentiable = false;
    c.result = as_int64;
  }
  BadInputs(list, "nonzero").free("x", "every defined tensor has an answer").tensor("x", [](T x) {
    return nonzero(x);
  });
  for (const bool inferred : {false, true}) {
    OpCase& c = push(list, "one_hot", inferred ? "as many classes as there are" : "",
                     inferred ? "F.one_hot(torch.argmax(x0, 1))"
                              : "F.one_hot(torch.argmax(x0, 1), x0.shape[1] + 1)",
                     {{{3, 4}, Kind::distinct}});
    c.call = function_of(
        [inferred](T x) { return one_hot(argmax(x, 1), inferred ? -1 : x.size(1) + 1); });
    c.expected = expecting([inferred](A a) {
      return reference::one_hot(reference::argmax(a, 1),
                                inferred ? -1 : reference::at(a.shape, 1) + 1);
    });
    c.differentiable = false;
    c.result = as_int64;
  }
  const auto hot = [](T index) { return awaited(one_hot(index, 3)); };
  refuse(
      list, "one_hot",
      {{"index", kIndex, "indices in .0, 3., got 3", [hot] { return hot(indices({0, 3})); }},
       {"index", kIndex, "indices in .0, 3., got -1", [hot] { return hot(indices({0, -1})); }},
       {"index", kType, "an int64 index, got float32", [hot] { return hot(ones_of({2})); }},
       {"classes", kArgument, "classes >= 0.*got -2", [] { return one_hot(indices({0, 1}), -2); }},
       {"classes", kIndex, "indices in .0, 0.",
        [] { return awaited(one_hot(indices({0, 1}), 0)); }},
       {"classes", kArgument, "a number of classes.*got -1",
        [] { return one_hot(ones_of({0}, DType::int64), -1); }}});
  parameters(list, "masked_select(x mask) one_hot(index classes)");
}

}  // namespace braid::test
