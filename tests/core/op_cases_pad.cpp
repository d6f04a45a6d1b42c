#include <braid/core/ops/pad.hpp>

#include "op_case_makers.hpp"
#include "reference/rearrange.hpp"

namespace braid::test {
namespace {

I padded(PadMode mode, I i, I n) {
  if (mode == PadMode::constant) return -1;
  if (n == 0) throw std::logic_error("reference::pad");
  if (mode == PadMode::reflect) return i < 0 ? -i : 2 * n - 2 - i;
  if (mode == PadMode::replicate) return i < 0 ? 0 : n - 1;
  return (i + n) % n;
}

}  // namespace

void add_pad_cases(Cases& list) {
  struct Pad {
    Sizes shape, sizes;
    PadMode mode;
    const char* name;
  };
  // The last three modes pad dims of 6 and 7, which the tests do not resize, so that the padding
  // always fits.
  for (const Pad& p : std::vector<Pad>{{{2, 3}, {1, 2}, PadMode::constant, "constant"},
                                       {{2, 3}, {0, 1, 2, 0}, PadMode::constant, "constant"},
                                       {{6, 7}, {-1, 2, 1, -2}, PadMode::constant, "constant"},
                                       {{2, 3}, {}, PadMode::constant, "constant"},
                                       {{2, 3, 7}, {2, 1}, PadMode::reflect, "reflect"},
                                       {{2, 6, 7}, {2, 1, 0, 2}, PadMode::reflect, "reflect"},
                                       {{2, 3, 7}, {2, 9}, PadMode::replicate, "replicate"},
                                       {{2, 6, 7}, {2, 1, 0, 2}, PadMode::replicate, "replicate"},
                                       {{2, 3, 7}, {2, 7}, PadMode::circular, "circular"},
                                       {{2, 6, 7}, {2, 1, 0, 2}, PadMode::circular, "circular"}}) {
    const std::string words = str(Shape(p.sizes));
    of_one(
        list, "pad", str(p.name, " ", words),
        p.mode == PadMode::constant ? str("F.pad(x0, ", words, ", value=1)")
                                    : str("F.pad(x0, ", words, ", mode='", p.name, "')"),
        {p.shape}, kAll, [p](T x) { return pad(x, p.sizes, p.mode, 1); },
        [p](A a) {
          return reference::pad(a, p.sizes, 1,
                                [mode = p.mode](I i, I n) { return padded(mode, i, n); });
        });
  }
  const auto with = [](PadMode mode, I size) {
    return [=] { (void)pad(zeros_of({2, 3}), {size, 0}, mode); };
  };
  const auto value = [](DType t, double v) {
    return [=] { (void)pad(zeros_of({2}).to(t), {1, 1}, PadMode::constant, v); };
  };
  refuse_undefined(list, "pad", [](T x) { (void)pad(x, {}); });
  BadInputs(list, "pad")
      .lists("sizes",
             {Shape{1}, Shape{1, 1, 1, 1, 1, 1}, Shape{-2, -2}, Shape{kMost, 1}, Shape{kLeast, 0}},
             kShape, "", [](const Shape& s) { (void)pad(zeros_of({2, 3}), s); });
  refuse(list, "pad",
         {{"mode", kShape, "sizes ", with(PadMode::reflect, 3)},
          {"mode", kShape, "sizes ", with(PadMode::circular, 4)},
          {"mode", kShape, "sizes ", with(PadMode::replicate, -1)},
          {"mode", kShape, "sizes ", with(PadMode::replicate, kMost)},
          {"value", kType, "a number that ", value(DType::uint8, 300)},
          {"value", kType, "a number that ", value(DType::int64, kNan)},
          {"value", kType, "a number that ", value(DType::int32, 1e10)},
          {"x", kShape, "two numbers for each of at most 0 dims",
           [] { (void)pad(zeros_of({}), {1, 1}); }},
          {"x", kShape, "sizes from 0 to 0",
           [] { (void)pad(zeros_of({0}), {1, 1}, PadMode::replicate); }}});
  parameters(list, "pad(x sizes mode value)");
}

}  // namespace braid::test
