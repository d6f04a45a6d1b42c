#include <braid/core/ops/conv.hpp>

#include "op_cases.hpp"
#include "reference/elementwise.hpp"
#include "reference/image.hpp"
#include "support/on_device.hpp"

namespace braid::test {
namespace {

using T = const Tensor&;
using reference::ConvRule;

const Array kNone(Sizes{0});

/// [n, c, l] as [n, c, 1, l], [c, h, w] as [1, c, h, w]: f gets what it is defined for, and its
/// result loses those dims again.
template <class F> Array as_images(Array x, Array w, int spatial, F f) {
  const bool alone = rank(x) == spatial + 1;
  if (alone) x.shape.insert(x.shape.begin(), 1);
  if (spatial == 1) {
    x.shape.insert(x.shape.begin() + 2, 1);
    w.shape.insert(w.shape.begin() + 2, 1);
  }
  Array y = f(x, w);
  if (spatial == 1) y.shape.erase(y.shape.begin() + 2);
  if (alone) y.shape.erase(y.shape.begin());
  return y;
}

/// One op with one set of options: `call` takes x, weight and a bias that may be undefined, `torch`
/// what stands behind the bias.
struct Variant {
  const char* op;
  const char* name;
  Sizes x, weight;
  ConvRule rule;
  std::function<Tensor(T, T, T)> call;
  std::string torch;
};

void add(std::vector<OpCase>& list, const Variant& v, bool bias) {
  const int spatial = static_cast<int>(v.weight.size()) - 2;
  const bool transposed = std::string(v.op).find("transpose") != std::string::npos;
  const std::int64_t outs = transposed ? v.weight[1] * v.rule.groups : v.weight[0];
  const auto reference = [=](const Array& x, const Array& w, const Array& b) {
    return as_images(x, w, spatial, [&](const Array& i, const Array& k) {
      return transposed ? reference::conv_transposed(i, k, b, v.rule)
                        : reference::conv(i, k, b, v.rule);
    });
  };
  OpCase c;
  c.op = v.op;
  c.variant = str(v.name, bias ? "" : v.name[0] == 0 ? "no bias" : ", no bias");
  c.inputs = {{v.x}, {v.weight}};
  if (bias) {
    c.inputs.push_back({{outs}});
    c.inputs.back().optional = true;
  }
  c.call = bias ? function_of([call = v.call](T x, T w, T b) { return call(x, w, b); })
                : function_of([call = v.call](T x, T w) { return call(x, w, Tensor()); });
  c.expected = [=](const std::vector<Array>& a) {
    return std::vector<Array>{reference(a[0], a[1], bias ? a[2] : kNone)};
  };
  c.dtypes = floating_dtypes();
  c.accuracy = Accuracy::bound;
  c.own_sizes = true;  // the rule says the result's
  c.bound = [=](const std::vector<Array>& a) {
    const double terms = static_cast<double>(a[1].size()) + 3;
    const Array sizes =
        reference(reference::abs(a[0]), reference::abs(a[1]), bias ? reference::abs(a[2]) : kNone);
    return std::vector<Array>{reference::map(sizes, [terms](double s) { return terms * s; })};
  };
  c.torch = str("torch.nn.functional.", v.op, "(x0, x1, ", bias ? "x2" : "None", v.torch, ")");
  list.push_back(std::move(c));
}

ConvRule rule(Sizes out, Sizes stride = {1, 1}, Sizes pad = {0, 0}, Sizes dilation = {1, 1},
              std::int64_t groups = 1) {
  return {std::move(stride), std::move(pad), std::move(dilation), std::move(out), groups};
}

Tensor ones_of(const Shape& shape, DType t = DType::float32) {
  return on_device::ones(shape, {.dtype = t});
}

/// What both conv2d and its transposed twin refuse; `call` takes x, weight, bias, stride, padding,
/// dilation, groups.
std::vector<BadInput> refused(
    const std::string& op,
    const std::function<void(T, T, T, Size2, Size2, Size2, std::int64_t)>& call) {
  const auto with = [call](const Shape& x, const Shape& w, DType t = DType::float32,
                           const Shape& b = {2}) {
    return [=] { call(ones_of(x, t), ones_of(w), ones_of(b), 1, 0, 1, 1); };
  };
  const auto options = [call](Size2 s, Size2 p, Size2 d, std::int64_t g) {
    return [=] { call(ones_of({1, 2, 4, 4}), ones_of({2, 2, 3, 3}), {}, s, p, d, g); };
  };
  return {
      {"x", with({4, 4}, {2, 2, 3, 3}), "ShapeError",
       op + ": expected x \\[n, channels, height, width\\] or \\[channels, height, width\\], got "
            "\\[4, 4\\]"},
      {"x", with({1, 3, 4, 4}, {2, 2, 3, 3}), "ShapeError",
       op + ": expected x with 2 channels for weight \\[2, 2, 3, 3\\].*, got 3"},
      {"x", with({1, 2, 4, 4}, {2, 2, 3, 3}, DType::int64), "DTypeError",
       op + ": expected a floating point tensor, got int64"},
      {"x", with({1, 2, 0, 4}, {2, 2, 3, 3}), "ShapeError",
       op + ": expected sides above 0, got x \\[1, 2, 0, 4\\]"},
      {"weight", with({1, 2, 4, 4}, {2, 2, 3}), "ShapeError",
       op + ": expected weight \\[channels, channels, height, width\\], got \\[2, 2, 3\\]"},
      {"weight", with({1, 2, 4, 4}, {2, 2, 0, 3}), "ShapeError",
       op + ": expected a weight with elements, got \\[2, 2, 0, 3\\]"},
      {"weight", with({1, 2, 4, 4}, {2, 2, 3, 3}, DType::float64), "DTypeError",
       op + ": expected one dtype, got float64 and float32"},
      {"bias", with({1, 2, 4, 4}, {2, 2, 3, 3}, DType::float32, {3}), "ShapeError",
       op + ": expected bias \\[2\\] for weight \\[2, 2, 3, 3\\], got \\[3\\]"},
      {"bias", with({1, 2, 4, 4}, {2, 2, 3, 3}, DType::float32, {1, 2}), "ShapeError",
       op + ": expected bias \\[2\\] for weight .*, got \\[1, 2\\]"},
      {"bias",
       [call] {
         call(ones_of({1, 2, 4, 4}), ones_of({2, 2, 3, 3}), ones_of({2}, DType::float64), 1, 0, 1,
              1);
       },
       "DTypeError", op + ": expected one dtype, got float32 and float64"},
      {"stride", options(0, 0, 1, 1), "ArgumentError", op + ": expected stride >= 1, got 0"},
      {"stride", options({1, -2}, 0, 1, 1), "ArgumentError", op + ": expected stride >= 1, got -2"},
      {"stride", options(std::int64_t{1} << 40, 0, 1, 1), "ArgumentError",
       op + ": expected stride >= 1, got 1099511627776"},
      {"padding", options(1, -1, 1, 1), "ArgumentError", op + ": expected padding >= 0, got -1"},
      {"padding", options(1, {0, -3}, 1, 1), "ArgumentError",
       op + ": expected padding >= 0, got -3"},
      {"padding", options(1, std::int64_t{1} << 40, 1, 1), "ArgumentError",
       op + ": expected padding >= 0, got 1099511627776"},
      {"dilation", options(1, 0, 0, 1), "ArgumentError", op + ": expected dilation >= 1, got 0"},
      {"dilation", options(1, 0, {2, -1}, 1), "ArgumentError",
       op + ": expected dilation >= 1, got -1"},
      {"dilation", options(1, 0, std::int64_t{1} << 40, 1), "ArgumentError",
       op + ": expected dilation >= 1, got 1099511627776"},
      {"groups", options(1, 0, 1, 0), "ArgumentError", op + ": expected groups >= 1, got 0"},
      {"groups", options(1, 0, 1, -1), "ArgumentError", op + ": expected groups >= 1, got -1"},
      {"groups", options(1, 0, 1, 3), "ShapeError",
       op + ": expected groups to divide the 2 (out|in)put channels, got groups 3"},
  };
}

}  // namespace

void add_conv_cases(std::vector<OpCase>& list) {
  const auto conv2 = [](const Conv2dOptions& o) {
    return [o](T x, T w, T b) { return conv2d(x, w, b, o); };
  };
  const auto conv1 = [](const Conv1dOptions& o) {
    return [o](T x, T w, T b) { return conv1d(x, w, b, o); };
  };
  const auto back2 = [](const ConvTranspose2dOptions& o) {
    return [o](T x, T w, T b) { return conv_transpose2d(x, w, b, o); };
  };
  const auto back1 = [](const ConvTranspose1dOptions& o) {
    return [o](T x, T w, T b) { return conv_transpose1d(x, w, b, o); };
  };
  const std::vector<Variant> variants{
      {"conv2d", "", {2, 2, 3, 4}, {2, 2, 2, 3}, rule({2, 2}), conv2({}), ""},
      {"conv2d", "one image", {2, 3, 3}, {1, 2, 2, 2}, rule({2, 2}), conv2({}), ""},
      {"conv2d",
       "stride and padding",
       {1, 1, 4, 3},
       {2, 1, 3, 2},
       rule({3, 2}, {2, 2}, {2, 1}),
       conv2({.stride = 2, .padding = {2, 1}}),
       ", 2, (2, 1)"},
      {"conv2d",
       "dilation",
       {1, 2, 4, 3},
       {1, 2, 2, 2},
       rule({2, 2}, {1, 1}, {0, 0}, {2, 1}),
       conv2({.dilation = {2, 1}}),
       ", 1, 0, (2, 1)"},
      {"conv2d",
       "groups",
       {1, 4, 2, 3},
       {2, 2, 2, 2},
       rule({1, 2}, {1, 1}, {0, 0}, {1, 1}, 2),
       conv2({.groups = 2}),
       ", 1, 0, 1, 2"},
      {"conv2d",
       "depthwise",
       {1, 2, 3, 2},
       {4, 1, 2, 2},
       rule({4, 3}, {1, 1}, {1, 1}, {1, 1}, 2),
       conv2({.padding = 1, .groups = 2}),
       ", 1, 1, 1, 2"},
      {"conv2d", "1x1", {2, 3, 2, 2}, {2, 3, 1, 1}, rule({2, 2}), conv2({}), ""},
      {"conv2d",
       "1x1, groups, stride",
       {1, 2, 3, 3},
       {2, 1, 1, 1},
       rule({2, 2}, {2, 2}, {0, 0}, {1, 1}, 2),
       conv2({.stride = 2, .groups = 2}),
       ", 2, 0, 1, 2"},
      {"conv2d",
       "same",
       {1, 1, 3, 3},
       {1, 1, 2, 4},
       rule({3, 3}, {1, 1}, {0, 1}),
       conv2({.padding = "same"}),
       ", 1, 'same'"},
      {"conv2d",
       "valid",
       {1, 1, 3, 3},
       {1, 1, 3, 1},
       rule({1, 3}),
       conv2({.padding = "valid"}),
       ", 1, 'valid'"},
      {"conv2d", "one element", {1, 1, 1, 1}, {1, 1, 1, 1}, rule({1, 1}), conv2({}), ""},
      {"conv2d",
       "padding beyond the kernel",
       {1, 1, 1, 2},
       {1, 1, 1, 1},
       rule({3, 4}, {1, 1}, {1, 1}),
       conv2({.padding = 1}),
       ", 1, 1"},
      {"conv2d", "empty batch", {0, 2, 3, 4}, {2, 2, 2, 3}, rule({2, 2}), conv2({}), ""},
      {"conv1d", "", {2, 2, 4}, {3, 2, 2}, rule({1, 3}), conv1({}), ""},
      {"conv1d", "one sequence", {2, 4}, {1, 2, 3}, rule({1, 2}), conv1({}), ""},
      {"conv1d",
       "stride, padding, dilation, groups",
       {1, 2, 5},
       {2, 1, 2},
       rule({1, 3}, {1, 2}, {0, 1}, {1, 2}, 2),
       conv1({.stride = 2, .padding = 1, .dilation = 2, .groups = 2}),
       ", 2, 1, 2, 2"},
      {"conv1d",
       "same",
       {1, 1, 4},
       {1, 1, 2},
       rule({1, 4}),
       conv1({.padding = "same"}),
       ", 1, 'same'"},
      {"conv1d", "empty batch", {0, 2, 4}, {3, 2, 2}, rule({1, 3}), conv1({}), ""},
      {"conv_transpose2d", "", {2, 2, 2, 3}, {2, 2, 2, 2}, rule({3, 4}), back2({}), ""},
      {"conv_transpose2d", "one image", {2, 2, 2}, {2, 1, 2, 2}, rule({3, 3}), back2({}), ""},
      {"conv_transpose2d",
       "stride, padding, output padding",
       {1, 1, 2, 2},
       {1, 2, 3, 2},
       rule({4, 3}, {2, 2}, {1, 1}),
       back2({.stride = 2, .padding = 1, .output_padding = {1, 1}}),
       ", 2, 1, 1"},
      {"conv_transpose2d",
       "groups, dilation",
       {1, 4, 2, 1},
       {4, 1, 2, 2},
       rule({3, 3}, {1, 1}, {0, 0}, {1, 2}, 2),
       back2({.groups = 2, .dilation = {1, 2}}),
       ", 1, 0, 0, 2, (1, 2)"},
      {"conv_transpose2d",
       "output padding below the dilation",
       {1, 1, 2, 2},
       {1, 1, 2, 1},
       rule({5, 3}, {1, 1}, {0, 0}, {2, 2}),
       back2({.output_padding = 1, .dilation = 2}),
       ", 1, 0, 1, 1, 2"},
      {"conv_transpose2d", "empty batch", {0, 2, 2, 3}, {2, 2, 2, 2}, rule({3, 4}), back2({}), ""},
      {"conv_transpose1d", "", {2, 2, 3}, {2, 2, 2}, rule({1, 4}), back1({}), ""},
      {"conv_transpose1d", "empty batch", {0, 2, 3}, {2, 2, 2}, rule({1, 4}), back1({}), ""},
      {"conv_transpose1d",
       "stride, padding, output padding, groups",
       {1, 2, 3},
       {2, 1, 3},
       rule({1, 6}, {1, 2}, {0, 1}, {1, 1}, 2),
       back1({.stride = 2, .padding = 1, .output_padding = 1, .groups = 2}),
       ", 2, 1, 1, 2"},
  };
  for (const Variant& v : variants) {
    add(list, v, true);
    if (v.name[0] == 0) add(list, v, false);
  }
  // Every parameter of the four ops, in one record of each.
  const auto record_of = [&](const std::string& op) -> OpCase& {
    return *std::find_if(list.begin(), list.end(), [&](const OpCase& c) { return c.op == op; });
  };
  std::vector<BadInput> bad =
      refused("conv2d", [](T x, T w, T b, Size2 s, Size2 p, Size2 d, std::int64_t g) {
        ConvPadding padding = 0;
        padding.size = p;
        (void)conv2d(x, w, b, {.stride = s, .padding = padding, .dilation = d, .groups = g});
      });
  const auto of_image = [](const Conv2dOptions& o, const Shape& w = {2, 2, 3, 3}) {
    return [=] { (void)conv2d(ones_of({1, 2, 4, 4}), ones_of(w), {}, o); };
  };
  bad.push_back(
      {"padding",
       [] { (void)conv2d(ones_of({1, 2, 4, 4}), ones_of({2, 2, 3, 3}), {}, {.padding = "full"}); },
       "ArgumentError", "padding: expected \"same\" or \"valid\", got \"full\""});
  bad.push_back({"padding", of_image({.stride = {1, 2}, .padding = "same"}), "ArgumentError",
                 "conv2d: expected stride 1 with padding \"same\", got 1, 2"});
  bad.push_back({"weight", of_image({}, {2, 2, 5, 3}), "ShapeError",
                 "conv2d: expected a kernel no larger than the padded image, got a kernel that "
                 "reaches over 5 of 4"});
  record_of("conv2d").errors = bad;
  bad = refused("conv_transpose2d", [](T x, T w, T b, Size2 s, Size2 p, Size2 d, std::int64_t g) {
    (void)conv_transpose2d(x, w, b, {.stride = s, .padding = p, .groups = g, .dilation = d});
  });
  const auto of_back = [](const ConvTranspose2dOptions& o) {
    return [=] { (void)conv_transpose2d(ones_of({1, 2, 4, 4}), ones_of({2, 2, 3, 3}), {}, o); };
  };
  bad.push_back(
      {"output_padding", of_back({.output_padding = 1}), "ArgumentError",
       "conv_transpose2d: expected output_padding smaller than stride or dilation, got 1"});
  bad.push_back({"output_padding", of_back({.output_padding = {0, -1}}), "ArgumentError",
                 "conv_transpose2d: expected output_padding >= 0, got -1"});
  bad.push_back(
      {"output_padding", of_back({.stride = 2, .output_padding = {1, 2}}), "ArgumentError",
       "conv_transpose2d: expected output_padding smaller than stride or dilation, got 2"});
  bad.push_back(
      {"padding", of_back({.padding = 3}), "ShapeError",
       "conv_transpose2d: expected a result with sides above 0, got 0 for x \\[1, 2, 4, 4\\]"});
  record_of("conv_transpose2d").errors = bad;
  const auto of_line = [](Tensor (*call)(T, T, T), const Shape& bias, DType t = DType::float32) {
    return [=] { (void)call(ones_of({1, 2, 4}), ones_of({2, 2, 3}), ones_of(bias, t)); };
  };
  Tensor (*const conv1d_with)(T, T, T) = [](T x, T w, T b) { return conv1d(x, w, b); };
  Tensor (*const back1d_with)(T, T, T) = [](T x, T w, T b) { return conv_transpose1d(x, w, b); };
  // The sequences' options are those of the width; what is their own is said in their words.
  const auto line = [](const Shape& x, const Shape& w, const Conv1dOptions& o = {}) {
    return [=] { (void)conv1d(ones_of(x), ones_of(w), {}, o); };
  };
  record_of("conv1d").errors = {
      {"x", line({4}, {2, 2, 3}), "ShapeError",
       "conv1d: expected x \\[n, channels, length\\] or \\[channels, length\\], got \\[4\\]"},
      {"x", line({1, 3, 4}, {2, 2, 3}), "ShapeError",
       "conv1d: expected x with 2 channels for weight .*, got 3"},
      {"x", line({1, 2, 0}, {2, 2, 3}), "ShapeError", "conv1d: expected sides above 0, got x .*"},
      {"weight", line({1, 2, 4}, {2, 2}), "ShapeError",
       "conv1d: expected weight \\[channels, channels, length\\], got \\[2, 2\\]"},
      {"weight", line({1, 2, 4}, {2, 0, 3}), "ShapeError",
       "conv1d: expected a weight with elements, got \\[2, 0, 3\\]"},
      {"weight", line({1, 2, 4}, {2, 2, 5}), "ShapeError",
       "conv1d: expected a kernel no larger than the padded image, got .* 5 of 4"},
      {"bias", of_line(conv1d_with, {3}), "ShapeError",
       "conv1d: expected bias \\[2\\] for weight .*, got \\[3\\]"},
      {"bias", of_line(conv1d_with, {1, 2}), "ShapeError",
       "conv1d: expected bias \\[2\\] for weight .*, got \\[1, 2\\]"},
      {"bias", of_line(conv1d_with, {2}, DType::float64), "DTypeError",
       "conv1d: expected one dtype, got float32 and float64"},
      {"stride", line({1, 2, 4}, {2, 2, 3}, {.stride = 0}), "ArgumentError",
       "conv1d: expected stride >= 1, got 0"},
      {"stride", line({1, 2, 4}, {2, 2, 3}, {.stride = -1}), "ArgumentError",
       "conv1d: expected stride >= 1, got -1"},
      {"stride", line({1, 2, 4}, {2, 2, 3}, {.stride = 2, .padding = "same"}), "ArgumentError",
       "conv1d: expected stride 1 with padding \"same\".*"},
      {"padding", line({1, 2, 4}, {2, 2, 3}, {.padding = -1}), "ArgumentError",
       "conv1d: expected padding >= 0, got -1"},
      {"padding",
       [] { (void)conv1d(ones_of({1, 2, 4}), ones_of({2, 2, 3}), {}, {.padding = "none"}); },
       "ArgumentError", "padding: expected \"same\" or \"valid\", got \"none\""},
      {"padding", line({1, 2, 4}, {2, 2, 3}, {.padding = std::int64_t{1} << 40}), "ArgumentError",
       "conv1d: expected padding >= 0, got 1099511627776"},
      {"dilation", line({1, 2, 4}, {2, 2, 3}, {.dilation = 0}), "ArgumentError",
       "conv1d: expected dilation >= 1, got 0"},
      {"dilation", line({1, 2, 4}, {2, 2, 3}, {.dilation = -4}), "ArgumentError",
       "conv1d: expected dilation >= 1, got -4"},
      {"dilation", line({1, 2, 4}, {2, 2, 3}, {.dilation = 2}), "ShapeError",
       "conv1d: expected a kernel no larger than the padded image, got .* 5 of 4"},
      {"groups", line({1, 2, 4}, {2, 2, 3}, {.groups = 0}), "ArgumentError",
       "conv1d: expected groups >= 1, got 0"},
      {"groups", line({1, 2, 4}, {2, 2, 3}, {.groups = 3}), "ShapeError",
       "conv1d: expected groups to divide the 2 output channels, got groups 3"},
      {"groups", line({1, 2, 4}, {2, 2, 3}, {.groups = 2}), "ShapeError",
       "conv1d: expected x with 4 channels for weight .* and groups 2, got 2"},
  };
  const auto wide = [](const Shape& x, const Shape& w, const ConvTranspose1dOptions& o = {}) {
    return [=] { (void)conv_transpose1d(ones_of(x), ones_of(w), {}, o); };
  };
  record_of("conv_transpose1d").errors = {
      {"x", wide({4}, {2, 2, 3}), "ShapeError",
       "conv_transpose1d: expected x \\[n, channels, length\\] or \\[channels, length\\], got "
       "\\[4\\]"},
      {"x", wide({1, 3, 4}, {2, 2, 3}), "ShapeError",
       "conv_transpose1d: expected x with 2 channels for weight .*, got 3"},
      {"x", wide({1, 2, 0}, {2, 2, 3}), "ShapeError",
       "conv_transpose1d: expected sides above 0, got x .*"},
      {"weight", wide({1, 2, 4}, {2, 2}), "ShapeError",
       "conv_transpose1d: expected weight \\[channels, channels, length\\], got \\[2, 2\\]"},
      {"weight", wide({1, 2, 4}, {2, 0, 3}), "ShapeError",
       "conv_transpose1d: expected a weight with elements, got \\[2, 0, 3\\]"},
      {"weight", wide({1, 2, 4}, {3, 2, 3}), "ShapeError",
       "conv_transpose1d: expected x with 3 channels for weight .*, got 2"},
      {"bias", of_line(back1d_with, {3}), "ShapeError",
       "conv_transpose1d: expected bias \\[2\\] for weight .*, got \\[3\\]"},
      {"bias", of_line(back1d_with, {}), "ShapeError",
       "conv_transpose1d: expected bias \\[2\\] for weight .*, got \\[\\]"},
      {"bias", of_line(back1d_with, {2}, DType::float16), "DTypeError",
       "conv_transpose1d: expected one dtype, got float32 and float16"},
      {"stride", wide({1, 2, 4}, {2, 2, 3}, {.stride = 0}), "ArgumentError",
       "conv_transpose1d: expected stride >= 1, got 0"},
      {"stride", wide({1, 2, 4}, {2, 2, 3}, {.stride = -1}), "ArgumentError",
       "conv_transpose1d: expected stride >= 1, got -1"},
      {"stride", wide({1, 2, 4}, {2, 2, 3}, {.stride = std::int64_t{1} << 30}), "ShapeError",
       "conv_transpose1d: expected a result with sides above 0.*"},
      {"padding", wide({1, 2, 4}, {2, 2, 3}, {.padding = -1}), "ArgumentError",
       "conv_transpose1d: expected padding >= 0, got -1"},
      {"padding", wide({1, 2, 4}, {2, 2, 3}, {.padding = 3}), "ShapeError",
       "conv_transpose1d: expected a result with sides above 0, got 0 .*"},
      {"padding", wide({1, 2, 4}, {2, 2, 3}, {.padding = std::int64_t{1} << 40}), "ArgumentError",
       "conv_transpose1d: expected padding >= 0, got 1099511627776"},
      {"output_padding", wide({1, 2, 4}, {2, 2, 3}, {.output_padding = 1}), "ArgumentError",
       "conv_transpose1d: expected output_padding smaller.*, got 1"},
      {"output_padding", wide({1, 2, 4}, {2, 2, 3}, {.output_padding = -1}), "ArgumentError",
       "conv_transpose1d: expected output_padding >= 0, got -1"},
      {"output_padding", wide({1, 2, 4}, {2, 2, 3}, {.stride = 2, .output_padding = 2}),
       "ArgumentError", "conv_transpose1d: expected output_padding smaller.*"},
      {"dilation", wide({1, 2, 4}, {2, 2, 3}, {.dilation = 0}), "ArgumentError",
       "conv_transpose1d: expected dilation >= 1, got 0"},
      {"dilation", wide({1, 2, 4}, {2, 2, 3}, {.dilation = -4}), "ArgumentError",
       "conv_transpose1d: expected dilation >= 1, got -4"},
      {"dilation", wide({1, 2, 4}, {2, 2, 3}, {.dilation = std::int64_t{1} << 40}), "ArgumentError",
       "conv_transpose1d: expected dilation >= 1, got .*"},
      {"groups", wide({1, 2, 4}, {2, 2, 3}, {.groups = 0}), "ArgumentError",
       "conv_transpose1d: expected groups >= 1, got 0"},
      {"groups", wide({1, 2, 4}, {2, 2, 3}, {.groups = -2}), "ArgumentError",
       "conv_transpose1d: expected groups >= 1, got -2"},
      {"groups", wide({1, 2, 4}, {2, 2, 3}, {.groups = 3}), "ShapeError",
       "conv_transpose1d: expected groups to divide the 2 input channels, got groups 3"},
  };
}

}  // namespace braid::test
