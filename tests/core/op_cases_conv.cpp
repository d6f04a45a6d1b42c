#include <optional>

#include <braid/core/ops/conv.hpp>

#include "op_case_makers.hpp"
#include "reference/image.hpp"

namespace braid::test {
namespace {

/// The options of all four ops. The 1d ops use the widths.
struct Options {
  Size2 stride = 1, padding = 0, dilation = 1, output_padding = 0;
  I groups = 1;
  const char* word = nullptr;  ///< "same" or "valid", instead of `padding`
};

Tensor call(const std::string& op, T x, T w, T b, const Options& o) {
  if (op == "conv_transpose2d")
    return conv_transpose2d(x, w, b,
                            {.stride = o.stride,
                             .padding = o.padding,
                             .output_padding = o.output_padding,
                             .groups = o.groups,
                             .dilation = o.dilation});
  if (op == "conv_transpose1d")
    return conv_transpose1d(x, w, b,
                            {.stride = o.stride.width,
                             .padding = o.padding.width,
                             .output_padding = o.output_padding.width,
                             .groups = o.groups,
                             .dilation = o.dilation.width});
  const ConvPadding padding =
      o.word != nullptr ? ConvPadding(o.word) : ConvPadding(o.padding.height, o.padding.width);
  if (op == "conv1d") return conv1d(x, w, b, {o.stride.width, padding, o.dilation.width, o.groups});
  return conv2d(x, w, b, {o.stride, padding, o.dilation, o.groups});
}

struct Variant {
  const char *op, *name;
  Sizes x, weight, out;  // out: height and width
  Options options;
  const char* torch = "";  // PyTorch's arguments after the bias
};
const Variant kVariants[] = {
    {"conv2d", "", Sizes{2, 2, 3, 4}, Sizes{2, 2, 2, 3}, Sizes{2, 2}, {}},
    {"conv2d", "one image", Sizes{2, 3, 3}, Sizes{1, 2, 2, 2}, Sizes{2, 2}, {}},
    {"conv2d", "stride and padding", Sizes{1, 1, 4, 3}, Sizes{2, 1, 3, 2}, Sizes{3, 2},
     Options{.stride = 2, .padding = {2, 1}}, ", 2, (2, 1)"},
    {"conv2d", "dilation", Sizes{1, 2, 4, 3}, Sizes{1, 2, 2, 2}, Sizes{2, 2},
     Options{.dilation = {2, 1}}, ", 1, 0, (2, 1)"},
    {"conv2d", "groups", Sizes{1, 4, 2, 3}, Sizes{2, 2, 2, 2}, Sizes{1, 2}, Options{.groups = 2},
     ", 1, 0, 1, 2"},
    {"conv2d", "depthwise", Sizes{1, 2, 3, 2}, Sizes{4, 1, 2, 2}, Sizes{4, 3},
     Options{.padding = 1, .groups = 2}, ", 1, 1, 1, 2"},
    {"conv2d", "1x1", Sizes{2, 3, 2, 2}, Sizes{2, 3, 1, 1}, Sizes{2, 2}, {}},
    {"conv2d", "1x1, groups, stride", Sizes{1, 2, 3, 3}, Sizes{2, 1, 1, 1}, Sizes{2, 2},
     Options{.stride = 2, .groups = 2}, ", 2, 0, 1, 2"},
    {"conv2d", "same", Sizes{1, 1, 3, 3}, Sizes{1, 1, 2, 4}, Sizes{3, 3},
     Options{.padding = {0, 1}, .word = "same"}, ", 1, 'same'"},
    {"conv2d", "valid", Sizes{1, 1, 3, 3}, Sizes{1, 1, 3, 1}, Sizes{1, 3}, Options{.word = "valid"},
     ", 1, 'valid'"},
    {"conv2d", "one element", Sizes{1, 1, 1, 1}, Sizes{1, 1, 1, 1}, Sizes{1, 1}, {}},
    {"conv2d", "padding beyond the kernel", Sizes{1, 1, 1, 2}, Sizes{1, 1, 1, 1}, Sizes{3, 4},
     Options{.padding = 1}, ", 1, 1"},
    {"conv2d", "empty batch", Sizes{0, 2, 3, 4}, Sizes{2, 2, 2, 3}, Sizes{2, 2}, {}},
    {"conv1d", "", Sizes{2, 2, 4}, Sizes{3, 2, 2}, Sizes{1, 3}, {}},
    {"conv1d", "one sequence", Sizes{2, 4}, Sizes{1, 2, 3}, Sizes{1, 2}, {}},
    {"conv1d", "stride, padding, dilation, groups", Sizes{1, 2, 5}, Sizes{2, 1, 2}, Sizes{1, 3},
     Options{.stride = 2, .padding = 1, .dilation = 2, .groups = 2}, ", 2, 1, 2, 2"},
    {"conv1d", "same", Sizes{1, 1, 4}, Sizes{1, 1, 2}, Sizes{1, 4}, Options{.word = "same"},
     ", 1, 'same'"},
    {"conv1d", "empty batch", Sizes{0, 2, 4}, Sizes{3, 2, 2}, Sizes{1, 3}, {}},
    {"conv_transpose2d", "", Sizes{2, 2, 2, 3}, Sizes{2, 2, 2, 2}, Sizes{3, 4}, {}},
    {"conv_transpose2d", "one image", Sizes{2, 2, 2}, Sizes{2, 1, 2, 2}, Sizes{3, 3}, {}},
    {"conv_transpose2d", "stride, padding, output padding", Sizes{1, 1, 2, 2}, Sizes{1, 2, 3, 2},
     Sizes{4, 3}, Options{.stride = 2, .padding = 1, .output_padding = 1}, ", 2, 1, 1"},
    {"conv_transpose2d", "groups, dilation", Sizes{1, 4, 2, 1}, Sizes{4, 1, 2, 2}, Sizes{3, 3},
     Options{.dilation = {1, 2}, .groups = 2}, ", 1, 0, 0, 2, (1, 2)"},
    {"conv_transpose2d", "output padding below the dilation", Sizes{1, 1, 2, 2}, Sizes{1, 1, 2, 1},
     Sizes{5, 3}, Options{.dilation = 2, .output_padding = 1}, ", 1, 0, 1, 1, 2"},
    {"conv_transpose2d", "empty batch", Sizes{0, 2, 2, 3}, Sizes{2, 2, 2, 2}, Sizes{3, 4}, {}},
    {"conv_transpose1d", "", Sizes{2, 2, 3}, Sizes{2, 2, 2}, Sizes{1, 4}, {}},
    {"conv_transpose1d", "empty batch", Sizes{0, 2, 3}, Sizes{2, 2, 2}, Sizes{1, 4}, {}},
    {"conv_transpose1d", "stride, padding, output padding, groups", Sizes{1, 2, 3}, Sizes{2, 1, 3},
     Sizes{1, 6}, Options{.stride = 2, .padding = 1, .output_padding = 1, .groups = 2},
     ", 2, 1, 1, 2"},
};

/// Computes the result by the definition, which takes images: [n, c, l] becomes [n, c, 1, l], [c,
/// h, w] becomes [1, c, h, w], and the result loses those dims again.
Array expected(const Variant& v, Array x, Array w, A b) {
  const int spatial = reference::rank(w) - 2;
  const bool alone = reference::rank(x) == spatial + 1;
  const Options& o = v.options;
  reference::ConvRule rule{{o.stride.height, o.stride.width},
                           {o.padding.height, o.padding.width},
                           {o.dilation.height, o.dilation.width},
                           v.out,
                           o.groups};
  if (alone) x.shape.insert(x.shape.begin(), 1);
  if (spatial == 1) {
    x.shape.insert(x.shape.begin() + 2, 1);
    w.shape.insert(w.shape.begin() + 2, 1);
    rule.stride[0] = rule.dilation[0] = 1, rule.pad[0] = 0;
  }
  Array y = std::string(v.op).find("transpose") != std::string::npos
                ? reference::conv_transposed(x, w, b, rule)
                : reference::conv(x, w, b, rule);
  if (spatial == 1) y.shape.erase(y.shape.begin() + 2);
  if (alone) y.shape.erase(y.shape.begin());
  return y;
}

void add(Cases& list, const Variant& v, bool bias) {
  const Array none(Sizes{0});
  const bool transposed = std::string(v.op).find("transpose") != std::string::npos;
  OpCase& c =
      push(list, v.op,
           str(v.name, bias             ? ""
                       : v.name[0] == 0 ? "no bias"
                                        : ", no bias"),
           str("torch.nn.functional.", v.op, "(x0, x1, ", bias ? "x2" : "None", v.torch, ")"),
           {{v.x}, {v.weight}}, kFloats);
  if (bias) {
    c.inputs.push_back({{transposed ? v.weight[1] * v.options.groups : v.weight[0]}});
    c.inputs.back().optional = true;
  }
  c.call = [=, o = v.options](Tensors t) {
    return std::vector<Tensor>{call(v.op, t[0], t[1], bias ? t[2] : Tensor(), o)};
  };
  c.expected = [=](Arrays a) {
    return std::vector<Array>{expected(v, a[0], a[1], bias ? a[2] : none)};
  };
  c.own_sizes = true;  // the variant gives the size of the result
  bound_by_sizes(c, [](Arrays a, A) { return static_cast<double>(a[1].size()) + 3; });
}

/// The arguments of a call with images. For sequences the last dim is removed.
struct Given {
  Sizes x{1, 2, 4, 4}, weight{2, 2, 3, 3};
  std::optional<Sizes> bias{};
  Options options{};
  DType x_type = DType::float32, weight_type = x_type, bias_type = x_type;
};
struct Wrong {
  const char *argument, *type;
  std::string text;
  Given given;
};

void add_errors(Cases& list, const std::string& op) {
  const bool images = op.back() != '1' && op[op.size() - 2] == '2';
  const bool transposed = op.find("transpose") != std::string::npos;
  const std::string sides = images ? "height, width\\]" : "length\\]", x_is = "x \\[n, channels, ";
  constexpr I far = I{1} << 40;
  // only shapes of images have the last size
  const auto shape = [&](const char* sizes, const char* last) {
    return str("\\[", sizes, images ? str(", ", last) : "", "\\]");
  };
  std::vector<Wrong> rows{
      {"x", kShape, x_is + sides + " or \\[channels, " + sides + ", got " + shape("4", "4"),
       Given{.x = {4, 4}}},
      {"x", kShape,
       str("x with 2 channels for weight ", images ? "\\[2, 2, 3, 3\\]" : "", ".*, got 3"),
       Given{.x = {1, 3, 4, 4}}},
      {"x", kType, "a floating point tensor, got int64", Given{.x_type = DType::int64}},
      {"x", kShape, "sides above 0, got x " + shape("1, 2, (1, )?0", "4"),
       Given{.x = {1, 2, 0, 4}}},
      {"weight", kShape, "weight \\[channels, channels, " + sides + ", got " + shape("2, 2", "3"),
       Given{.weight = {2, 2, 3}}},
      {"weight", kShape, "a weight with elements, got " + shape("2, 2, 0", "3"),
       Given{.weight = {2, 2, 0, 3}}},
      {"weight", kShape, "a weight with elements, got " + shape("2, 0, 3", "3"),
       Given{.weight = {2, 0, 3, 3}}},
      {"weight", kType, "one dtype, got float32 and float64", Given{.weight_type = DType::float64}},
      {"bias", kShape, "bias \\[2\\] for weight " + shape("2, 2, 3", "3") + ", got \\[3\\]",
       Given{.bias = Sizes{3}}},
      {"bias", kShape, "bias \\[2\\] for weight .*, got \\[1, 2\\]", Given{.bias = Sizes{1, 2}}},
      {"bias", kType, "one dtype, got float32 and float16",
       Given{.bias = Sizes{2}, .bias_type = DType::float16}},
      {"bias", kType, "one dtype, got float32 and float64",
       Given{.bias = Sizes{2}, .bias_type = DType::float64}},
      {"stride", kArgument, "stride >= 1, got 0", Given{.options = {.stride = 0}}},
      {"stride", kArgument, "stride >= 1, got -2", Given{.options = {.stride = {1, -2}}}},
      {"padding", kArgument, "padding >= 0, got -1", Given{.options = {.padding = -1}}},
      {"padding", kArgument, "padding >= 0, got -3", Given{.options = {.padding = {0, -3}}}},
      {"padding", kArgument, "padding below 2\\^31, got 1099511627776",
       Given{.options = {.padding = far}}},
      {"dilation", kArgument, "dilation >= 1, got 0", Given{.options = {.dilation = 0}}},
      {"dilation", kArgument, "dilation >= 1, got -1", Given{.options = {.dilation = {2, -1}}}},
      {"dilation", kArgument, "dilation below 2\\^31, got 1099511627776",
       Given{.options = {.dilation = far}}},
      {"groups", kArgument, "groups >= 1, got 0", Given{.options = {.groups = 0}}},
      {"groups", kArgument, "groups >= 1, got -1", Given{.options = {.groups = -1}}},
      {"groups", kShape,
       str("groups to divide the 2 ", transposed ? "input" : "output", " channels, got groups 3"),
       Given{.options = {.groups = 3}}},
  };
  const auto more = [&](std::vector<Wrong> others) {
    rows.insert(rows.end(), others.begin(), others.end());
  };
  if (images)
    more({{"stride", kArgument, "stride below 2\\^31, got 1099511627776",
           Given{.options = {.stride = far}}}});
  if (transposed) {
    const char* const smaller = "output_padding smaller than stride or dilation, got ";
    const std::string nothing =
        "a result with sides above 0, got 0 for x " + shape("1, 2, (1, )?4", "4");
    more({{"weight", kShape, "x with 3 channels for weight .*, got 2",
           Given{.weight = {3, 2, 3, 3}}},
          {"bias", kShape, "bias \\[2\\] for weight .*, got \\[\\]", Given{.bias = Sizes{}}},
          {"padding", kShape, nothing, Given{.options = {.padding = 3}}},
          {"output_padding", kArgument, str(smaller, 1), Given{.options = {.output_padding = 1}}},
          {"output_padding", kArgument, "output_padding >= 0, got -1",
           Given{.options = {.output_padding = {0, -1}}}},
          {"output_padding", kArgument, str(smaller, 2),
           Given{.options = {.stride = 2, .output_padding = {1, 2}}}}});
    if (!images)
      more({{"stride", kShape, "a result with sides above 0.*",
             Given{.options = {.stride = I{1} << 30}}}});
  } else {
    const char* const larger =
        "a kernel no larger than the padded image, got a kernel that reaches over 5 of 4";
    more({{"weight", kShape, larger, Given{.weight = {2, 2, 5, 5}}},
          {"dilation", kShape, larger, Given{.options = {.dilation = 2}}},
          {images ? "padding" : "stride", kArgument, "stride 1 with padding \"same\", got 1, 2",
           Given{.options = {.stride = {1, 2}, .word = "same"}}},
          {"groups", kShape, "x with 4 channels for weight .* and groups 2, got 2",
           Given{.options = {.groups = 2}}}});
    BadInputs(list, op, "padding")
        .refused(kArgument, "padding: expected \"same\" or \"valid\", got \"full\"", [=] {
          return call(op, ones_of({1, 2, 4, 4}), ones_of({2, 2, 3, 3}), {}, {.word = "full"});
        });
  }
  for (Wrong& w : rows) {
    if (!images) w.given.x.pop_back(), w.given.weight.pop_back();
    BadInputs(list, op, w.argument).is(w.type, w.text, [op, g = w.given] {
      return call(op, ones_of(g.x, g.x_type), ones_of(g.weight, g.weight_type),
                  g.bias ? ones_of(*g.bias, g.bias_type) : Tensor(), g.options);
    });
  }
}

}  // namespace

void add_conv_cases(Cases& list) {
  for (const Variant& v : kVariants) {
    add(list, v, true);
    if (v.name[0] == 0) add(list, v, false);
  }
  for (const char* op : {"conv2d", "conv1d", "conv_transpose2d", "conv_transpose1d"})
    add_errors(list, op);
  for (const char* op : {"conv2d", "conv1d", "conv_transpose2d", "conv_transpose1d"})
    BadInputs(list, op)
        .free("device", "of the layer; the function ignores it")
        .free("dtype", "of the layer; the function ignores it");
  parameters(list,
             "conv1d(x weight bias options) conv2d(x weight bias options) "
             "conv_transpose1d(x weight bias options) conv_transpose2d(x weight bias options)");
}

}  // namespace braid::test
