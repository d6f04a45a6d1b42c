#include <braid/core/ops/pool.hpp>

#include "op_cases.hpp"
#include "reference/elementwise.hpp"
#include "reference/image.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;
using Kind = Input::Kind;
using reference::Rule;

/// f of x as [n, c, h, w], for [c, h, w], [n, c, l] and [c, l] too.
template <class F> std::vector<Array> as_images(Array x, int spatial, F f) {
  const bool alone = rank(x) == spatial + 1;
  if (alone) x.shape.insert(x.shape.begin(), 1);
  if (spatial == 1) x.shape.insert(x.shape.begin() + 2, 1);
  std::vector<Array> all = f(x);
  for (Array& y : all) {
    if (spatial == 1) y.shape.erase(y.shape.begin() + 2);
    if (alone) y.shape.erase(y.shape.begin());
  }
  return all;
}

const Rule kOne = reference::windows(1, 1, 1, 1, 0, 1, 0);  // the height of a sequence

struct Variant {
  const char* op;
  const char* name;
  Sizes x;
  Rule down, across;
  std::function<Tensor(T)> call;
  std::string torch;
};

void add(std::vector<OpCase>& list, const Variant& v, bool largest) {
  const std::string op = v.op;
  const int spatial =
      op.find("1d") != std::string::npos || (op == "interpolate" && v.x.size() == 3) ? 1 : 2;
  OpCase c;
  c.op = v.op;
  c.variant = v.name;
  c.inputs = {{v.x, largest ? Kind::distinct : Kind::value}};
  c.own_sizes = true;
  c.call = function_of(v.call);
  c.expected = [=](const std::vector<Array>& a) {
    return as_images(a[0], spatial, [&](const Array& x) {
      return std::vector<Array>{largest ? reference::largest(x, v.down, v.across)[0]
                                        : reference::weighted(x, v.down, v.across)};
    });
  };
  c.dtypes = floating_dtypes();
  c.kinks = largest;
  c.torch = "torch.nn.functional." + v.torch;
  if (!largest) {
    c.accuracy = Accuracy::bound;
    c.bound = [=](const std::vector<Array>& a) {
      // a rounding of each weight, product and sum
      return as_images(a[0], spatial, [&](const Array& x) {
        std::size_t most = 1;
        for (const reference::Seen& d : v.down)
          for (const reference::Seen& w : v.across)
            most = std::max(most, d.element.size() * w.element.size());
        const double terms = static_cast<double>(most) + 5;
        return std::vector<Array>{
            reference::map(reference::weighted(reference::abs(x), v.down, v.across),
                           [terms](double s) { return terms * s; })};
      });
    };
  }
  list.push_back(std::move(c));
}

/// The result and where it came from.
void add_with_indices(std::vector<OpCase>& list, const char* op, const Sizes& shape,
                      const Rule& down, const Rule& across,
                      const std::function<std::pair<Tensor, Tensor>(T)>& call,
                      const std::string& torch) {
  const int spatial = shape.size() == 3 ? 1 : 2;
  OpCase c;
  c.op = op;
  c.inputs = {{shape, Kind::distinct}};
  c.own_sizes = true;
  c.call = [call](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{call(in.at(0)).first};
  };
  c.expected = [=](const std::vector<Array>& a) {
    return as_images(a[0], spatial, [&](const Array& x) {
      return std::vector<Array>{reference::largest(x, down, across)[0]};
    });
  };
  c.dtypes = floating_dtypes();
  c.kinks = true;
  c.torch = "torch.nn.functional." + torch + "[0]";
  list.push_back(c);
  c.variant = "the indices";
  c.call = [call](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{call(in.at(0)).second};
  };
  c.expected = [=](const std::vector<Array>& a) {
    return as_images(a[0], spatial, [&](const Array& x) {
      return std::vector<Array>{reference::largest(x, down, across)[1]};
    });
  };
  c.result = [](DType) { return DType::int64; };
  c.differentiable = false;
  c.torch = "torch.nn.functional." + torch + "[1]";
  list.push_back(c);
}

Tensor ones_of(const Shape& shape, DType t = DType::float32) {
  return on_device::ones(shape, {.dtype = t});
}

/// What all of them refuse of x; `f` calls the op with usual options.
std::vector<BadInput> bad_images(const std::string& op, const std::function<void(T)>& f,
                                 int spatial) {
  const std::string sides = spatial == 2 ? "height, width\\]" : "length\\]";
  const auto with = [f](const Shape& s, DType t = DType::float32) {
    return [=] { f(ones_of(s, t)); };
  };
  const Shape empty = spatial == 2 ? Shape{1, 2, 0, 4} : Shape{1, 2, 0},
              whole = spatial == 2 ? Shape{1, 2, 4, 4} : Shape{1, 2, 4};
  return {
      {"x", with({4}), "ShapeError",
       op + ": expected x \\[n, channels, " + sides + " or \\[channels, " + sides +
           ", got \\[4\\]"},
      {"x", with({1, 1, 1, 4, 4}), "ShapeError", op + ": expected x .*, got \\[1, 1, 1, 4, 4\\]"},
      {"x", with(empty), "ShapeError", op + ": expected sides above 0, got x .*"},
      {"x", with(whole, DType::int32), "DTypeError",
       op + ": expected a floating point tensor, got int32"}};
}
void append(std::vector<BadInput>& to, std::vector<BadInput> from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Bad kernels, strides and paddings; `call` takes them.
std::vector<BadInput> bad_windows(
    const std::string& op,
    const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& call) {
  const auto with = [call](std::int64_t k, std::int64_t s, std::int64_t p) {
    return [=] { call(k, s, p); };
  };
  return {
      {"kernel", with(0, 1, 0), "ArgumentError", op + ": expected kernel >= 1, got 0"},
      {"kernel", with(-2, 1, 0), "ArgumentError", op + ": expected kernel >= 1, got -2"},
      {"kernel", with(5, 1, 0), "ShapeError",
       op +
           ": expected a window no larger than the padded image, got one that reaches over 5 of 4"},
      {"stride", with(2, 0, 0), "ArgumentError", op + ": expected stride >= 1, got 0"},
      {"stride", with(2, -1, 0), "ArgumentError", op + ": expected stride >= 1, got -1"},
      {"stride", with(2, std::int64_t{1} << 40, 0), "ArgumentError",
       op + ": expected stride >= 1, got 1099511627776"},
      {"padding", with(2, 1, -1), "ArgumentError", op + ": expected padding >= 0, got -1"},
      {"padding", with(2, 1, 2), "ArgumentError",
       op + ": expected padding of at most half the kernel 2, got 2"},
      {"padding", with(3, 1, 2), "ArgumentError",
       op + ": expected padding of at most half the kernel 3, got 2"}};
}
std::vector<BadInput> bad_sizes(const std::string& op,
                                const std::function<void(std::int64_t)>& call) {
  const auto with = [call](std::int64_t n) { return [=] { call(n); }; };
  return {{"size", with(0), "ArgumentError", op + ": expected size >= 1, got 0"},
          {"size", with(-1), "ArgumentError", op + ": expected size >= 1, got -1"},
          {"size", with(std::int64_t{1} << 40), "ArgumentError",
           op + ": expected size >= 1, got 1099511627776"}};
}

void add_errors(std::vector<OpCase>& list) {
  const auto record_of = [&](const std::string& op) -> OpCase& {
    return *std::find_if(list.begin(), list.end(), [&](const OpCase& c) { return c.op == op; });
  };
  const auto image = [] { return ones_of({1, 2, 4, 4}); };
  const auto line = [] { return ones_of({1, 2, 4}); };
  const auto dilations = [](const std::string& op, const std::function<void(std::int64_t)>& call) {
    const auto with = [call](std::int64_t d) { return [=] { call(d); }; };
    return std::vector<BadInput>{
        {"dilation", with(0), "ArgumentError", op + ": expected dilation >= 1, got 0"},
        {"dilation", with(-1), "ArgumentError", op + ": expected dilation >= 1, got -1"},
        {"dilation", with(4), "ShapeError",
         op + ": expected a window no larger than the padded image, got one .* 5 of 4"}};
  };
  const auto max2 = [&](const std::string& op, auto f) {
    std::vector<BadInput>& bad = record_of(op).errors;
    bad = bad_images(op, [f](T x) { (void)f(x, 2, MaxPool2dOptions{}); }, 2);
    append(bad, bad_windows(op, [=](std::int64_t k, std::int64_t s, std::int64_t p) {
             (void)f(image(), k, MaxPool2dOptions{.stride = Size2(s), .padding = p});
           }));
    append(bad, dilations(op, [=](std::int64_t d) {
             (void)f(image(), 2, MaxPool2dOptions{.dilation = d});
           }));
    bad.push_back(
        {"padding",
         [=] {
           (void)f(ones_of({1, 1, 1, 1}), 2,
                   MaxPool2dOptions{.stride = Size2(1), .padding = 1, .dilation = 2});
         },
         "ShapeError",
         op + ": expected windows that see an element each, got padding 1 and dilation 2 .*"});
  };
  max2("max_pool2d", [](T x, Size2 k, const MaxPool2dOptions& o) { return max_pool2d(x, k, o); });
  max2("max_pool2d_with_indices", [](T x, Size2 k, const MaxPool2dOptions& o) {
    return max_pool2d_with_indices(x, k, o).first;
  });
  const auto max1 = [&](const std::string& op, auto f) {
    std::vector<BadInput>& bad = record_of(op).errors;
    bad = bad_images(op, [f](T x) { (void)f(x, 2, MaxPool1dOptions{}); }, 1);
    append(bad, bad_windows(op, [=](std::int64_t k, std::int64_t s, std::int64_t p) {
             (void)f(line(), k, MaxPool1dOptions{.stride = s, .padding = p});
           }));
    append(bad, dilations(op, [=](std::int64_t d) {
             (void)f(line(), 2, MaxPool1dOptions{.dilation = d});
           }));
  };
  max1("max_pool1d",
       [](T x, std::int64_t k, const MaxPool1dOptions& o) { return max_pool1d(x, k, o); });
  max1("max_pool1d_with_indices", [](T x, std::int64_t k, const MaxPool1dOptions& o) {
    return max_pool1d_with_indices(x, k, o).first;
  });

  std::vector<BadInput>* bad = &record_of("avg_pool2d").errors;
  *bad = bad_images("avg_pool2d", [](T x) { (void)avg_pool2d(x, 2); }, 2);
  append(*bad, bad_windows("avg_pool2d", [=](std::int64_t k, std::int64_t s, std::int64_t p) {
    (void)avg_pool2d(image(), k, {.stride = Size2(s), .padding = p});
  }));
  for (const std::int64_t d : {0, -1, -7})
    bad->push_back({"divisor_override",
                    [=] { (void)avg_pool2d(image(), 2, {.divisor_override = d}); }, "ArgumentError",
                    str("avg_pool2d: expected divisor_override >= 1, got ", d)});
  bad = &record_of("avg_pool1d").errors;
  *bad = bad_images("avg_pool1d", [](T x) { (void)avg_pool1d(x, 2); }, 1);
  append(*bad, bad_windows("avg_pool1d", [=](std::int64_t k, std::int64_t s, std::int64_t p) {
    (void)avg_pool1d(line(), k, {.stride = s, .padding = p});
  }));
  bad = &record_of("adaptive_avg_pool2d").errors;
  *bad = bad_images("adaptive_avg_pool2d", [](T x) { (void)adaptive_avg_pool2d(x, 2); }, 2);
  append(*bad, bad_sizes("adaptive_avg_pool2d",
                         [=](std::int64_t n) { (void)adaptive_avg_pool2d(image(), {1, n}); }));
  bad = &record_of("adaptive_avg_pool1d").errors;
  *bad = bad_images("adaptive_avg_pool1d", [](T x) { (void)adaptive_avg_pool1d(x, 2); }, 1);
  append(*bad, bad_sizes("adaptive_avg_pool1d",
                         [=](std::int64_t n) { (void)adaptive_avg_pool1d(line(), n); }));
  bad = &record_of("adaptive_max_pool2d").errors;
  *bad = bad_images("adaptive_max_pool2d", [](T x) { (void)adaptive_max_pool2d(x, 2); }, 2);
  append(*bad, bad_sizes("adaptive_max_pool2d",
                         [=](std::int64_t n) { (void)adaptive_max_pool2d(image(), {n, 1}); }));
  bad = &record_of("interpolate").errors;
  const auto resize = [=](const InterpolateOptions& o) {
    return [=] { (void)interpolate(image(), o); };
  };
  const auto resize_line = [=](const InterpolateOptions& o) {
    return [=] { (void)interpolate(line(), o); };
  };
  *bad = bad_sizes("interpolate",
                   [=](std::int64_t n) { (void)interpolate(image(), {.size = Size2(1, n)}); });
  append(*bad,
         {{"x", [] { (void)interpolate(ones_of({4}), {.size = Size2(2)}); }, "ShapeError",
           "interpolate: expected x .*, got \\[4\\]"},
          {"x", [] { (void)interpolate(ones_of({1, 1, 0, 4}), {.size = Size2(2)}); }, "ShapeError",
           "interpolate: expected sides above 0, got x .*"},
          {"x", [] { (void)interpolate(ones_of({1, 1, 4, 4}, DType::int64), {.size = Size2(2)}); },
           "DTypeError", "interpolate: expected a floating point .* int64"},
          {"size", resize({}), "ArgumentError",
           "interpolate: expected size or scale_factor, got both or neither"},
          {"scale_factor", resize({.size = Size2(2), .scale_factor = 2.0}), "ArgumentError",
           "interpolate: expected size or scale_factor, got both or neither"},
          {"scale_factor", resize({.scale_factor = 0.0}), "ArgumentError",
           "interpolate: expected scale_factor > 0, got 0"},
          {"scale_factor", resize({.scale_factor = -1.0}), "ArgumentError",
           "interpolate: expected scale_factor > 0, got -1"},
          {"scale_factor", resize({.scale_factor = 0.2}), "ShapeError",
           "interpolate: expected a result with sides above 0, got scale_factor 0.2 for x .*"},
          {"mode", resize({.size = Size2(2), .mode = Interpolation::linear}), "ShapeError",
           "interpolate: expected x .* got \\[1, 2, 4, 4\\]"},
          {"mode", resize_line({.size = Size2(2), .mode = Interpolation::bilinear}), "ShapeError",
           "interpolate: expected x .* got \\[1, 2, 4\\]"},
          {"mode", [] { (void)interpolate(ones_of({4, 4}), {.size = Size2(2)}); }, "ShapeError",
           "interpolate: expected x .*, got \\[4, 4\\]"},
          {"align_corners", resize({.size = Size2(2), .align_corners = true}), "ArgumentError",
           "interpolate: expected align_corners with .*, got nearest"},
          {"align_corners", resize({.scale_factor = 2.0, .align_corners = true}), "ArgumentError",
           "interpolate: expected align_corners with .*, got nearest"},
          {"align_corners", resize_line({.size = Size2(2), .align_corners = true}), "ArgumentError",
           "interpolate: expected align_corners with .*, got nearest"}});
}

}  // namespace

void add_pool_cases(std::vector<OpCase>& list) {
  using reference::adaptive, reference::linear_between, reference::nearest, reference::windows;
  const auto max2 = [](Size2 k, const MaxPool2dOptions& o = {}) {
    return [=](T x) { return max_pool2d(x, k, o); };
  };
  const auto avg2 = [](Size2 k, const AvgPool2dOptions& o = {}) {
    return [=](T x) { return avg_pool2d(x, k, o); };
  };
  const auto resize = [](const InterpolateOptions& o) {
    return [=](T x) { return interpolate(x, o); };
  };
  const auto by_line = Interpolation::linear, by_area = Interpolation::bilinear;
  const std::vector<Variant> largest{
      {"max_pool2d",
       "",
       {1, 2, 4, 5},
       windows(4, 2, 2, 2, 0, 1, 0),
       windows(5, 2, 2, 2, 0, 1, 0),
       max2(2),
       "max_pool2d(x0, 2)"},
      {"max_pool2d",
       "overlapping, padded",
       {2, 1, 3, 3},
       windows(3, 3, 3, 1, 1, 1, 0),
       windows(3, 2, 2, 2, 1, 1, 0),
       max2({3, 2}, {.stride = Size2(1, 2), .padding = 1}),
       "max_pool2d(x0, (3, 2), (1, 2), 1)"},
      {"max_pool2d",
       "dilation, one image",
       {2, 3, 4},
       windows(3, 1, 2, 2, 0, 2, 0),
       windows(4, 1, 2, 2, 0, 2, 0),
       max2(2, {.dilation = 2}),
       "max_pool2d(x0, 2, dilation=2)"},
      {"max_pool2d",
       "ceil",
       {1, 1, 3, 5},
       windows(3, 2, 2, 2, 0, 1, 0),
       windows(5, 3, 2, 2, 0, 1, 0),
       max2(2, {.ceil_mode = true}),
       "max_pool2d(x0, 2, ceil_mode=True)"},
      {"max_pool2d", "one element", {1, 1, 1, 1}, kOne, kOne, max2(1), "max_pool2d(x0, 1)"},
      {"max_pool1d",
       "",
       {2, 2, 5},
       kOne,
       windows(5, 2, 2, 2, 0, 1, 0),
       [](T x) { return max_pool1d(x, 2); },
       "max_pool1d(x0, 2)"},
      {"max_pool1d",
       "one sequence, every option",
       {2, 6},
       kOne,
       windows(6, 6, 2, 1, 1, 2, 0),
       [](T x) {
         return max_pool1d(x, 2, {.stride = 1, .padding = 1, .dilation = 2, .ceil_mode = true});
       },
       "max_pool1d(x0, 2, 1, 1, 2, True)"},
      {"adaptive_max_pool2d",
       "",
       {1, 2, 4, 5},
       adaptive(4, 2),
       adaptive(5, 3),
       [](T x) { return adaptive_max_pool2d(x, {2, 3}); },
       "adaptive_max_pool2d(x0, (2, 3))"},
      {"adaptive_max_pool2d",
       "one image, more than there are",
       {2, 2, 3},
       adaptive(2, 3),
       adaptive(3, 1),
       [](T x) { return adaptive_max_pool2d(x, {3, 1}); },
       "adaptive_max_pool2d(x0, (3, 1))"},
  };
  for (const Variant& v : largest) add(list, v, true);
  add_with_indices(
      list, "max_pool2d_with_indices", {1, 2, 4, 3}, windows(4, 4, 3, 1, 1, 1, 0),
      windows(3, 3, 3, 1, 1, 1, 0),
      [](T x) { return max_pool2d_with_indices(x, 3, {.stride = Size2(1), .padding = 1}); },
      "max_pool2d(x0, 3, 1, 1, return_indices=True)");
  add_with_indices(
      list, "max_pool1d_with_indices", {2, 1, 5}, kOne, windows(5, 2, 2, 2, 0, 1, 0),
      [](T x) { return max_pool1d_with_indices(x, 2); }, "max_pool1d(x0, 2, return_indices=True)");
  const std::vector<Variant> means{
      {"avg_pool2d",
       "",
       {1, 2, 4, 5},
       windows(4, 2, 2, 2, 0, 1, -1),
       windows(5, 2, 2, 2, 0, 1, -1),
       avg2(2),
       "avg_pool2d(x0, 2)"},
      {"avg_pool2d",
       "overlapping, padded",
       {1, 2, 3, 3},
       windows(3, 3, 3, 1, 1, 1, -1),
       windows(3, 2, 2, 2, 1, 1, -1),
       avg2({3, 2}, {.stride = Size2(1, 2), .padding = 1}),
       "avg_pool2d(x0, (3, 2), (1, 2), 1)"},
      {"avg_pool2d",
       "ceil, without the padding, one image",
       {2, 4, 3},
       windows(4, 3, 3, 2, 1, 1, 0),
       windows(3, 2, 3, 2, 1, 1, 0),
       avg2(3, {.stride = Size2(2), .padding = 1, .ceil_mode = true, .count_include_pad = false}),
       "avg_pool2d(x0, 3, 2, 1, True, False)"},
      {"avg_pool2d",
       "ceil, with the padding",
       {1, 1, 4, 4},
       windows(4, 3, 3, 2, 1, 1, -1),
       windows(4, 3, 3, 2, 1, 1, -1),
       avg2(3, {.stride = Size2(2), .padding = 1, .ceil_mode = true}),
       "avg_pool2d(x0, 3, 2, 1, True)"},
      {"avg_pool2d",
       "divisor",
       {1, 1, 4, 2},
       windows(4, 2, 2, 2, 0, 1, 3),
       windows(2, 1, 2, 2, 0, 1, 1),
       avg2(2, {.divisor_override = 3}),
       "avg_pool2d(x0, 2, divisor_override=3)"},
      {"avg_pool2d",
       "gaps between windows",
       {1, 1, 5, 4},
       windows(5, 2, 1, 3, 0, 1, -1),
       windows(4, 2, 1, 3, 0, 1, -1),
       avg2(1, {.stride = Size2(3)}),
       "avg_pool2d(x0, 1, 3)"},
      {"avg_pool1d",
       "",
       {2, 2, 5},
       kOne,
       windows(5, 2, 2, 2, 0, 1, -1),
       [](T x) { return avg_pool1d(x, 2); },
       "avg_pool1d(x0, 2)"},
      {"avg_pool1d",
       "one sequence, every option",
       {2, 6},
       kOne,
       windows(6, 4, 3, 2, 1, 1, 0),
       [](T x) {
         return avg_pool1d(
             x, 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
       },
       "avg_pool1d(x0, 3, 2, 1, True, False)"},
      {"adaptive_avg_pool2d",
       "",
       {1, 2, 4, 5},
       adaptive(4, 2),
       adaptive(5, 3),
       [](T x) { return adaptive_avg_pool2d(x, {2, 3}); },
       "adaptive_avg_pool2d(x0, (2, 3))"},
      {"adaptive_avg_pool2d",
       "to one, one image",
       {2, 3, 2},
       adaptive(3, 1),
       adaptive(2, 1),
       [](T x) { return adaptive_avg_pool2d(x, 1); },
       "adaptive_avg_pool2d(x0, 1)"},
      {"adaptive_avg_pool2d",
       "more than there are",
       {1, 1, 2, 3},
       adaptive(2, 3),
       adaptive(3, 4),
       [](T x) { return adaptive_avg_pool2d(x, {3, 4}); },
       "adaptive_avg_pool2d(x0, (3, 4))"},
      {"adaptive_avg_pool1d",
       "",
       {2, 2, 5},
       kOne,
       adaptive(5, 3),
       [](T x) { return adaptive_avg_pool1d(x, 3); },
       "adaptive_avg_pool1d(x0, 3)"},
      {"interpolate",
       "nearest to a size",
       {1, 2, 2, 3},
       nearest(2, 5, 2.0 / 5),
       nearest(3, 2, 3.0 / 2),
       resize({.size = Size2(5, 2)}),
       "interpolate(x0, size=(5, 2))"},
      {"interpolate",
       "nearest by factors",
       {1, 1, 2, 4},
       nearest(2, 5, 1 / 2.5),
       nearest(4, 2, 2),
       resize({.scale_factor = Factor2(2.5, 0.5)}),
       "interpolate(x0, scale_factor=(2.5, 0.5))"},
      {"interpolate",
       "nearest of a sequence",
       {2, 1, 3},
       kOne,
       nearest(3, 6, 0.5),
       resize({.scale_factor = 2.0}),
       "interpolate(x0, scale_factor=2)"},
      {"interpolate",
       "bilinear to a size",
       {1, 2, 2, 3},
       linear_between(2, 4, 0.5, false),
       linear_between(3, 2, 1.5, false),
       resize({.size = Size2(4, 2), .mode = by_area}),
       "interpolate(x0, size=(4, 2), mode='bilinear')"},
      {"interpolate",
       "bilinear by a factor",
       {1, 1, 2, 3},
       linear_between(2, 3, 1 / 1.7, false),
       linear_between(3, 5, 1 / 1.7, false),
       resize({.scale_factor = 1.7, .mode = by_area}),
       "interpolate(x0, scale_factor=1.7, mode='bilinear')"},
      {"interpolate",
       "bilinear, corners",
       {1, 1, 3, 3},
       linear_between(3, 5, 0, true),
       linear_between(3, 1, 0, true),
       resize({.size = Size2(5, 1), .mode = by_area, .align_corners = true}),
       "interpolate(x0, size=(5, 1), mode='bilinear', align_corners=True)"},
      {"interpolate",
       "bilinear, from one element",
       {1, 2, 1, 1},
       linear_between(1, 2, 0.5, false),
       linear_between(1, 3, 1.0 / 3, false),
       resize({.size = Size2(2, 3), .mode = by_area}),
       "interpolate(x0, size=(2, 3), mode='bilinear')"},
      {"interpolate",
       "linear",
       {2, 1, 3},
       kOne,
       linear_between(3, 5, 0.6, false),
       resize({.size = Size2(5), .mode = by_line}),
       "interpolate(x0, size=5, mode='linear')"},
      {"interpolate",
       "linear, corners",
       {1, 2, 4},
       kOne,
       linear_between(4, 3, 0, true),
       resize({.size = Size2(3), .mode = by_line, .align_corners = true}),
       "interpolate(x0, size=3, mode='linear', align_corners=True)"},
  };
  for (const Variant& v : means) add(list, v, false);
  add_errors(list);
}

}  // namespace braid::test
