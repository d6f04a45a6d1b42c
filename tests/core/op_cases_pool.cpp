#include <algorithm>

#include <braid/core/ops/pool.hpp>

#include "op_case_makers.hpp"
#include "reference/image.hpp"

namespace braid::test {
namespace {

using reference::adaptive, reference::linear_between, reference::nearest, reference::Rule,
    reference::windows;
using Options = InterpolateOptions;
constexpr auto kLine = Interpolation::linear, kArea = Interpolation::bilinear;

const Rule kOne = windows(1, 1, 1, 1, 0, 1, 0);  // the height of a sequence

struct Variant {
  const char *op, *name;
  Sizes x;
  Rule down, across;
  Tensor (*call)(T);
  const char* torch;
};
const Variant kLargest[] = {
    {"max_pool2d", "", Sizes{1, 2, 4, 5}, windows(4, 2, 2, 2, 0, 1, 0),
     windows(5, 2, 2, 2, 0, 1, 0), [](T x) { return max_pool2d(x, 2); }, "max_pool2d(x0, 2)"},
    {"max_pool2d", "overlapping, padded", Sizes{2, 1, 3, 3}, windows(3, 3, 3, 1, 1, 1, 0),
     windows(3, 2, 2, 2, 1, 1, 0),
     [](T x) { return max_pool2d(x, {3, 2}, {.stride = Size2(1, 2), .padding = 1}); },
     "max_pool2d(x0, (3, 2), (1, 2), 1)"},
    {"max_pool2d", "dilation, one image", Sizes{2, 3, 4}, windows(3, 1, 2, 2, 0, 2, 0),
     windows(4, 1, 2, 2, 0, 2, 0), [](T x) { return max_pool2d(x, 2, {.dilation = 2}); },
     "max_pool2d(x0, 2, dilation=2)"},
    {"max_pool2d", "ceil", Sizes{1, 1, 3, 5}, windows(3, 2, 2, 2, 0, 1, 0),
     windows(5, 3, 2, 2, 0, 1, 0), [](T x) { return max_pool2d(x, 2, {.ceil_mode = true}); },
     "max_pool2d(x0, 2, ceil_mode=True)"},
    {"max_pool2d", "one element", Sizes{1, 1, 1, 1}, kOne, kOne,
     [](T x) { return max_pool2d(x, 1); }, "max_pool2d(x0, 1)"},
    {"max_pool1d", "", Sizes{2, 2, 5}, kOne, windows(5, 2, 2, 2, 0, 1, 0),
     [](T x) { return max_pool1d(x, 2); }, "max_pool1d(x0, 2)"},
    {"max_pool1d", "one sequence, every option", Sizes{2, 6}, kOne, windows(6, 6, 2, 1, 1, 2, 0),
     [](T x) {
       return max_pool1d(x, 2, {.stride = 1, .padding = 1, .dilation = 2, .ceil_mode = true});
     },
     "max_pool1d(x0, 2, 1, 1, 2, True)"},
    {"adaptive_max_pool2d", "", Sizes{1, 2, 4, 5}, adaptive(4, 2), adaptive(5, 3),
     [](T x) { return adaptive_max_pool2d(x, {2, 3}); }, "adaptive_max_pool2d(x0, (2, 3))"},
    {"adaptive_max_pool2d", "one image, more than there are", Sizes{2, 2, 3}, adaptive(2, 3),
     adaptive(3, 1), [](T x) { return adaptive_max_pool2d(x, {3, 1}); },
     "adaptive_max_pool2d(x0, (3, 1))"},
};
const Variant kMeans[] = {
    {"avg_pool2d", "", Sizes{1, 2, 4, 5}, windows(4, 2, 2, 2, 0, 1, -1),
     windows(5, 2, 2, 2, 0, 1, -1), [](T x) { return avg_pool2d(x, 2); }, "avg_pool2d(x0, 2)"},
    {"avg_pool2d", "overlapping, padded", Sizes{1, 2, 3, 3}, windows(3, 3, 3, 1, 1, 1, -1),
     windows(3, 2, 2, 2, 1, 1, -1),
     [](T x) { return avg_pool2d(x, {3, 2}, {.stride = Size2(1, 2), .padding = 1}); },
     "avg_pool2d(x0, (3, 2), (1, 2), 1)"},
    {"avg_pool2d", "ceil, without the padding, one image", Sizes{2, 4, 3},
     windows(4, 3, 3, 2, 1, 1, 0), windows(3, 2, 3, 2, 1, 1, 0),
     [](T x) {
       return avg_pool2d(
           x, 3, {.stride = Size2(2), .padding = 1, .ceil_mode = true, .count_include_pad = false});
     },
     "avg_pool2d(x0, 3, 2, 1, True, False)"},
    {"avg_pool2d", "ceil, with the padding", Sizes{1, 1, 4, 4}, windows(4, 3, 3, 2, 1, 1, -1),
     windows(4, 3, 3, 2, 1, 1, -1),
     [](T x) { return avg_pool2d(x, 3, {.stride = Size2(2), .padding = 1, .ceil_mode = true}); },
     "avg_pool2d(x0, 3, 2, 1, True)"},
    {"avg_pool2d", "divisor", Sizes{1, 1, 4, 2}, windows(4, 2, 2, 2, 0, 1, 3),
     windows(2, 1, 2, 2, 0, 1, 1), [](T x) { return avg_pool2d(x, 2, {.divisor_override = 3}); },
     "avg_pool2d(x0, 2, divisor_override=3)"},
    {"avg_pool2d", "gaps between windows", Sizes{1, 1, 5, 4}, windows(5, 2, 1, 3, 0, 1, -1),
     windows(4, 2, 1, 3, 0, 1, -1), [](T x) { return avg_pool2d(x, 1, {.stride = Size2(3)}); },
     "avg_pool2d(x0, 1, 3)"},
    {"avg_pool1d", "", Sizes{2, 2, 5}, kOne, windows(5, 2, 2, 2, 0, 1, -1),
     [](T x) { return avg_pool1d(x, 2); }, "avg_pool1d(x0, 2)"},
    {"avg_pool1d", "one sequence, every option", Sizes{2, 6}, kOne, windows(6, 4, 3, 2, 1, 1, 0),
     [](T x) {
       return avg_pool1d(
           x, 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
     },
     "avg_pool1d(x0, 3, 2, 1, True, False)"},
    {"adaptive_avg_pool2d", "", Sizes{1, 2, 4, 5}, adaptive(4, 2), adaptive(5, 3),
     [](T x) { return adaptive_avg_pool2d(x, {2, 3}); }, "adaptive_avg_pool2d(x0, (2, 3))"},
    {"adaptive_avg_pool2d", "to one, one image", Sizes{2, 3, 2}, adaptive(3, 1), adaptive(2, 1),
     [](T x) { return adaptive_avg_pool2d(x, 1); }, "adaptive_avg_pool2d(x0, 1)"},
    {"adaptive_avg_pool2d", "more than there are", Sizes{1, 1, 2, 3}, adaptive(2, 3),
     adaptive(3, 4), [](T x) { return adaptive_avg_pool2d(x, {3, 4}); },
     "adaptive_avg_pool2d(x0, (3, 4))"},
    {"adaptive_avg_pool1d", "", Sizes{2, 2, 5}, kOne, adaptive(5, 3),
     [](T x) { return adaptive_avg_pool1d(x, 3); }, "adaptive_avg_pool1d(x0, 3)"},
    {"interpolate", "nearest to a size", Sizes{1, 2, 2, 3}, nearest(2, 5, 2.0 / 5),
     nearest(3, 2, 3.0 / 2), [](T x) { return interpolate(x, {.size = Size2(5, 2)}); },
     "interpolate(x0, size=(5, 2))"},
    {"interpolate", "nearest by factors", Sizes{1, 1, 2, 4}, nearest(2, 5, 1 / 2.5),
     nearest(4, 2, 2), [](T x) { return interpolate(x, {.scale_factor = Factor2(2.5, 0.5)}); },
     "interpolate(x0, scale_factor=(2.5, 0.5))"},
    {"interpolate", "nearest of a sequence", Sizes{2, 1, 3}, kOne, nearest(3, 6, 0.5),
     [](T x) { return interpolate(x, {.scale_factor = 2.0}); }, "interpolate(x0, scale_factor=2)"},
    {"interpolate", "bilinear to a size", Sizes{1, 2, 2, 3}, linear_between(2, 4, 0.5, false),
     linear_between(3, 2, 1.5, false),
     [](T x) { return interpolate(x, {.size = Size2(4, 2), .mode = kArea}); },
     "interpolate(x0, size=(4, 2), mode='bilinear')"},
    {"interpolate", "bilinear by a factor", Sizes{1, 1, 2, 3}, linear_between(2, 3, 1 / 1.7, false),
     linear_between(3, 5, 1 / 1.7, false),
     [](T x) { return interpolate(x, {.scale_factor = 1.7, .mode = kArea}); },
     "interpolate(x0, scale_factor=1.7, mode='bilinear')"},
    {"interpolate", "bilinear, corners", Sizes{1, 1, 3, 3}, linear_between(3, 5, 0, true),
     linear_between(3, 1, 0, true),
     [](T x) {
       return interpolate(x, {.size = Size2(5, 1), .mode = kArea, .align_corners = true});
     },
     "interpolate(x0, size=(5, 1), mode='bilinear', align_corners=True)"},
    {"interpolate", "bilinear, from one element", Sizes{1, 2, 1, 1},
     linear_between(1, 2, 0.5, false), linear_between(1, 3, 1.0 / 3, false),
     [](T x) { return interpolate(x, {.size = Size2(2, 3), .mode = kArea}); },
     "interpolate(x0, size=(2, 3), mode='bilinear')"},
    {"interpolate", "linear", Sizes{2, 1, 3}, kOne, linear_between(3, 5, 0.6, false),
     [](T x) { return interpolate(x, {.size = Size2(5), .mode = kLine}); },
     "interpolate(x0, size=5, mode='linear')"},
    {"interpolate", "linear, corners", Sizes{1, 2, 4}, kOne, linear_between(4, 3, 0, true),
     [](T x) { return interpolate(x, {.size = Size2(3), .mode = kLine, .align_corners = true}); },
     "interpolate(x0, size=3, mode='linear', align_corners=True)"},
};

/// Applies f to x as [n, c, h, w]. x may also be [c, h, w], [n, c, l] or [c, l].
Array as_image(Array x, int spatial, const std::function<Array(A)>& f) {
  const bool alone = reference::rank(x) == spatial + 1;
  if (alone) x.shape.insert(x.shape.begin(), 1);
  if (spatial == 1) x.shape.insert(x.shape.begin() + 2, 1);
  Array y = f(x);
  if (spatial == 1) y.shape.erase(y.shape.begin() + 2);
  if (alone) y.shape.erase(y.shape.begin());
  return y;
}

/// which: 0 for the largest element, 1 for its index, -1 for a weighted mean.
void add(Cases& list, const Variant& v, int which, Function call, const std::string& torch) {
  const std::string op = v.op;
  const int spatial = op.find("1d") != op.npos || (op == "interpolate" && v.x.size() == 3) ? 1 : 2;
  const bool largest = which >= 0;
  OpCase& c = push(list, op, v.name, "torch.nn.functional." + torch,
                   {{v.x, largest ? Kind::distinct : Kind::value}}, kFloats);
  c.own_sizes = true;
  c.kinks = which >= 0;
  c.call = std::move(call);
  c.expected = expecting([=](A a) {
    return as_image(a, spatial, [&](A x) {
      return which >= 0 ? reference::largest(x, v.down, v.across)[static_cast<std::size_t>(which)]
                        : reference::weighted(x, v.down, v.across);
    });
  });
  if (largest) return;
  // one rounding of each weight, product and sum
  std::size_t most = 1;
  for (const reference::Seen& d : v.down)
    for (const reference::Seen& w : v.across)
      most = std::max(most, d.element.size() * w.element.size());
  bound_by_sizes(c, [most](Arrays, A) { return static_cast<double>(most) + 5; });
}

void add_with_indices(Cases& list, const Variant& like, std::pair<Tensor, Tensor> (*call)(T)) {
  for (const int which : {0, 1}) {
    Variant v = like;
    if (which == 1) v.name = "the indices";
    add(list, v, which, function_of([=](T x) {
          const std::pair<Tensor, Tensor> y = call(x);
          return which == 0 ? y.first : y.second;
        }),
        str(v.torch, "[", which, "]"));
  }
  list.back().result = as_int64;
  list.back().differentiable = false;
}

/// A pooling op and the options that it has.
struct Pooling {
  const char* op;
  int spatial;
  Tensor (*call)(T x, I kernel, I stride, I padding, I dilation);
  bool dilates;
};
const Pooling kPoolings[] = {
    {"max_pool2d", 2,
     [](T x, I k, I s, I p, I d) {
       return max_pool2d(x, k, {.stride = Size2(s), .padding = p, .dilation = d});
     },
     true},
    {"max_pool2d_with_indices", 2,
     [](T x, I k, I s, I p, I d) {
       return max_pool2d_with_indices(x, k, {.stride = Size2(s), .padding = p, .dilation = d})
           .first;
     },
     true},
    {"max_pool1d", 1,
     [](T x, I k, I s, I p, I d) {
       return max_pool1d(x, k, {.stride = s, .padding = p, .dilation = d});
     },
     true},
    {"max_pool1d_with_indices", 1,
     [](T x, I k, I s, I p, I d) {
       return max_pool1d_with_indices(x, k, {.stride = s, .padding = p, .dilation = d}).first;
     },
     true},
    {"avg_pool2d", 2,
     [](T x, I k, I s, I p, I) { return avg_pool2d(x, k, {.stride = Size2(s), .padding = p}); },
     false},
    {"avg_pool1d", 1,
     [](T x, I k, I s, I p, I) { return avg_pool1d(x, k, {.stride = s, .padding = p}); }, false},
};
struct Resizing {
  const char* op;
  int spatial;
  Tensor (*call)(T x, I size);
};
const Resizing kResizings[] = {
    {"adaptive_avg_pool2d", 2, [](T x, I n) { return adaptive_avg_pool2d(x, {1, n}); }},
    {"adaptive_avg_pool1d", 1, [](T x, I n) { return adaptive_avg_pool1d(x, n); }},
    {"adaptive_max_pool2d", 2, [](T x, I n) { return adaptive_max_pool2d(x, {n, 1}); }},
    {"interpolate", 2, [](T x, I n) { return interpolate(x, {.size = Size2(1, n)}); }},
};

Tensor images() { return ones_of({1, 2, 4, 4}); }
Tensor lines() { return ones_of({1, 2, 4}); }

/// Adds the bad x that all of them reject.
void refuse_images(Cases& list, const std::string& op, int spatial, const BadInputs::OfTensor& f) {
  const std::string sides = spatial == 2 ? "height, width\\]" : "length\\]";
  const std::string either = "x \\[n, channels, " + sides + " or \\[channels, " + sides;
  const Shape empty = spatial == 2 ? Shape{1, 2, 0, 4} : Shape{1, 2, 0},
              whole = spatial == 2 ? Shape{1, 2, 4, 4} : Shape{1, 2, 4};
  refuse(list, op,
         {{"x", kShape, (op == "interpolate" ? "x .*" : either) + ", got \\[4\\]",
           [=] { f(ones_of({4})); }},
          {"x", kShape, "x .*, got \\[1, 1, 1, 4, 4\\]", [=] { f(ones_of({1, 1, 1, 4, 4})); }},
          {"x", kShape, "sides above 0, got x .*", [=] { f(ones_of(empty)); }},
          {"x", kType, "a floating point tensor, got int32",
           [=] { f(ones_of(whole, DType::int32)); }}});
}

void refuse_windows(Cases& list, const Pooling& p) {
  refuse_images(list, p.op, p.spatial, [f = p.call](T x) { f(x, 2, 2, 0, 1); });
  const struct {
    const char *argument, *type, *text;
    I kernel, stride, padding, dilation = 1;
  } rows[] = {
      {"kernel", kArgument, "kernel >= 1, got 0", 0, 1, 0},
      {"kernel", kArgument, "kernel >= 1, got -2", -2, 1, 0},
      {"kernel", kShape,
       "a window no larger than the padded image, got one that reaches over 5 of 4", 5, 1, 0},
      {"stride", kArgument, "stride >= 1, got 0", 2, 0, 0},
      {"stride", kArgument, "stride >= 1, got -1", 2, -1, 0},
      {"stride", kArgument, "stride below 2\\^31, got 1099511627776", 2, I{1} << 40, 0},
      {"padding", kArgument, "padding >= 0, got -1", 2, 1, -1},
      {"padding", kArgument, "padding of at most half the kernel 2, got 2", 2, 1, 2},
      {"padding", kArgument, "padding of at most half the kernel 3, got 2", 3, 1, 2},
      {"dilation", kArgument, "dilation >= 1, got 0", 2, 2, 0, 0},
      {"dilation", kArgument, "dilation >= 1, got -1", 2, 2, 0, -1},
      {"dilation", kShape, "a window no larger than the padded image, got one .* 5 of 4", 2, 2, 0,
       4},
  };
  for (const auto& r : rows)
    if (p.dilates || r.argument[0] != 'd')
      refuse(list, p.op, {{r.argument, r.type, r.text, [=, f = p.call, s = p.spatial] {
                             f(s == 2 ? images() : lines(), r.kernel, r.stride, r.padding,
                               r.dilation);
                           }}});
  if (p.dilates && p.spatial == 2)
    refuse(list, p.op,
           {{"padding", kShape, "windows that see an element each, got padding 1 and dilation 2 .*",
             [f = p.call] { f(ones_of({1, 1, 1, 1}), 2, 1, 1, 2); }}});
}

void refuse_interpolations(Cases& list) {
  const char* const either = "size or scale_factor, got both or neither";
  const char* const corners = "align_corners with .*, got nearest";
  const struct {
    const char *argument, *type, *text;
    Tensor (*x)();
    Options options;
  } rows[] = {
      {"size", kArgument, either, images, Options{}},
      {"scale_factor", kArgument, either, images, Options{.size = Size2(2), .scale_factor = 2.0}},
      {"scale_factor", kArgument, "scale_factor > 0, got 0", images, Options{.scale_factor = 0.0}},
      {"scale_factor", kArgument, "scale_factor > 0, got -1", images,
       Options{.scale_factor = -1.0}},
      {"scale_factor", kShape, "a result with sides above 0, got scale_factor 0.2 for x .*", images,
       Options{.scale_factor = 0.2}},
      {"mode", kShape, "x .* got \\[1, 2, 4, 4\\]", images,
       Options{.size = Size2(2), .mode = kLine}},
      {"mode", kShape, "x .* got \\[1, 2, 4\\]", lines, Options{.size = Size2(2), .mode = kArea}},
      {"mode", kShape, "x .*, got \\[4, 4\\]", [] { return ones_of({4, 4}); },
       Options{.size = Size2(2)}},
      {"align_corners", kArgument, corners, images,
       Options{.size = Size2(2), .align_corners = true}},
      {"align_corners", kArgument, corners, images,
       Options{.scale_factor = 2.0, .align_corners = true}},
      {"align_corners", kArgument, corners, lines,
       Options{.size = Size2(2), .align_corners = true}},
      {"recompute_scale_factor", kArgument,
       "recompute_scale_factor with scale_factor alone, got a size", images,
       Options{.size = Size2(2), .recompute_scale_factor = true}},
      {"recompute_scale_factor", kArgument, "recompute_scale_factor with scale_factor alone",
       images, Options{.size = Size2(3), .mode = kArea, .recompute_scale_factor = true}},
      {"recompute_scale_factor", kArgument, "recompute_scale_factor with scale_factor alone", lines,
       Options{.size = Size2(1, 5), .recompute_scale_factor = true}},
  };
  for (const auto& r : rows)
    refuse(
        list, "interpolate",
        {{r.argument, r.type, r.text, [x = r.x, o = r.options] { return interpolate(x(), o); }}});
}

}  // namespace

void add_pool_cases(Cases& list) {
  for (const Variant& v : kLargest) add(list, v, 0, function_of(v.call), v.torch);
  for (const Variant& v : kMeans) add(list, v, -1, function_of(v.call), v.torch);
  add_with_indices(
      list,
      {"max_pool2d_with_indices", "", Sizes{1, 2, 4, 3}, windows(4, 4, 3, 1, 1, 1, 0),
       windows(3, 3, 3, 1, 1, 1, 0), nullptr, "max_pool2d(x0, 3, 1, 1, return_indices=True)"},
      [](T x) { return max_pool2d_with_indices(x, 3, {.stride = Size2(1), .padding = 1}); });
  add_with_indices(
      list,
      {"max_pool1d_with_indices", "", Sizes{2, 1, 5}, kOne, windows(5, 2, 2, 2, 0, 1, 0), nullptr,
       "max_pool1d(x0, 2, return_indices=True)"},
      [](T x) { return max_pool1d_with_indices(x, 2); });
  for (const Pooling& p : kPoolings) refuse_windows(list, p);
  for (const Resizing& r : kResizings) {
    refuse_images(list, r.op, r.spatial, [f = r.call](T x) { f(x, 2); });
    const auto sized = [f = r.call, s = r.spatial](I n) {
      return f(s == 2 ? images() : lines(), n);
    };
    BadInputs(list, r.op)
        .integers("size", {0, -1}, kArgument, "size >= 1, got ", sized)
        .integers("size", {I{1} << 40}, kArgument, "size below 2\\^31, got ", sized);
  }
  const auto divided = [](I d) { return avg_pool2d(images(), 2, {.divisor_override = d}); };
  BadInputs(list, "avg_pool2d")
      .integers("divisor_override", {0, -1, -7}, kArgument, "divisor_override >= 1, got ", divided);
  refuse_interpolations(list);
  parameters(list,
             "adaptive_avg_pool1d(x size) adaptive_avg_pool2d(x size) adaptive_max_pool2d(x size) "
             "avg_pool1d(x kernel options) avg_pool2d(x kernel options) interpolate(x options) "
             "max_pool1d(x kernel options) max_pool1d_with_indices(x kernel options) "
             "max_pool2d(x kernel options) max_pool2d_with_indices(x kernel options)");
}

}  // namespace braid::test
