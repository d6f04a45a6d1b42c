// Cases of copies with the elements in another order, or repeated.
#include <braid/core/ops/rearrange.hpp>

#include "op_case_makers.hpp"
#include "reference/rearrange.hpp"
#include "reference/views.hpp"

namespace braid::test {
namespace {

const Arrangement kCopies[] = {
    {"flip", "rank 0", "torch.flip(x0, [])", Sizes{}, [](T x) { return flip(x, {}); },
     [](A a) { return a; }},
    {"repeat_interleave", "flattened", "torch.repeat_interleave(x0, 2)", Sizes{2, 3},
     [](T x) { return repeat_interleave(x, 2); },
     [](A a) { return reference::repeat_interleave(reference::reshape(a, {a.size()}), 2, 0); }},
};

}  // namespace

void add_rearrange_cases(Cases& list) {
  for (const Arrangement& f : kCopies) add_arrangement(list, f);
  for (const Sizes& dims : std::vector<Sizes>{{0}, {-1}, {0, 2}, {0, 1, 2}, {}}) {
    const std::string words = str(Shape(dims));
    of_one(
        list, "flip", "dims " + words, "torch.flip(x0, " + words + ")", {{2, 3, 4}}, kAll,
        [dims](T x) { return flip(x, dims); }, [dims](A a) { return reference::flip(a, dims); });
  }
  refuse_dims(list, "flip", "dims", [](T x, I d) { (void)flip(x, {d}); });
  struct Roll {
    Sizes shifts, dims;
  };
  for (const Roll& r : std::vector<Roll>{{{1}, {0}}, {{-5}, {-1}}, {{2, 7}, {1, 0}}, {{4}, {}}}) {
    const std::string shifts = str(Shape(r.shifts)), dims = str(Shape(r.dims));
    of_one(
        list, "roll", str("shifts ", shifts, ", dims ", dims),
        r.dims.empty() ? str("torch.roll(x0, ", r.shifts[0], ")")
                       : str("torch.roll(x0, ", shifts, ", ", dims, ")"),
        {{3, 4}}, kAll, [r](T x) { return roll(x, r.shifts, r.dims); },
        [r](A a) { return reference::roll(a, r.shifts, r.dims); });
  }
  refuse_dims(list, "roll", "dims", [](T x, I d) { (void)roll(x, {1}, {d}); });
  for (const Sizes& n : std::vector<Sizes>{{2, 3}, {1, 1}, {2, 1, 2}, {0, 2}, {1, 2, 1, 2}}) {
    const std::string words = str(Shape(n));
    of_one(
        list, "repeat", "times " + words, "x0.repeat(" + words + ")", {{2, 3}}, kAll,
        [n](T x) { return repeat(x, n); }, [n](A a) { return reference::repeat(a, n); });
  }
  for (const auto& [times, dim] : std::vector<std::pair<I, I>>{{2, 0}, {3, -1}, {0, 1}, {1, 0}})
    of_one(
        list, "repeat_interleave", str(times, " times, dim ", dim),
        str("torch.repeat_interleave(x0, ", times, ", ", dim, ")"), {{2, 3}}, kAll,
        [n = times, d = dim](T x) { return repeat_interleave(x, n, d); },
        [n = times, d = dim](A a) { return reference::repeat_interleave(a, n, d); });
  refuse_dims(list, "repeat_interleave", "dim", [](T x, I d) { (void)repeat_interleave(x, 2, d); });
  BadInputs(list, "repeat_interleave")
      .integers("times", {-1, -7, kLeast}, kArgument, "times >= 0, got ",
                [](I n) { (void)repeat_interleave(zeros_of({2}), n, 0); });
  BadInputs(list, "roll")
      .lists("shifts", {Shape{1, 2}, Shape{}, Shape{1, 2, 3}}, kShape, "a shift for each dim",
             [](const Shape& s) { (void)roll(zeros_of({2, 3}), s, {0}); });
  refuse(list, "flip",
         {{"dims", kShape, "each dim once", [] { return flip(zeros_of({2, 3}), {0, -2}); }}});
  const auto repeated = [](const Shape& x, const Shape& times) {
    return [=] { (void)repeat(zeros_of(x), times); };
  };
  refuse_undefined(list, "repeat", [](T x) { (void)repeat(x, {2}); });
  refuse(list, "repeat",
         {{"times", kShape, "at least 2 numbers", repeated({2, 3}, {2})},
          {"times", kArgument, "numbers >= 0", repeated({2, 3}, {2, -1})},
          {"times", kShape, "at most", repeated({2, 3}, {kMost, 2})},
          {"x", kShape, "at least 3 numbers", repeated({2, 3, 4}, {2, 2})},
          {"x", kShape, "at least 1 numbers", repeated({2}, {})}});
  parameters(list,
             "flip(x dims) repeat(x times) repeat_interleave(x times dim) roll(x shifts dims)");
}

}  // namespace braid::test
