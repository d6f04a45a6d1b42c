#include <limits>

#include <braid/core/ops/shape.hpp>

#include "op_errors.hpp"

namespace braid::test::on_device {

void add_view_errors(std::vector<OpCase>& list) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                         kLeast = std::numeric_limits<std::int64_t>::min();
  const auto x = [] { return random_tensor({2, 3}); };
  const auto scalar = [] { return random_tensor({}); };
  using S = const Shape&;
  using I = std::int64_t;

  BadInputs(list, "select")
      .of("dim")
      .dims([x](I d) { return x().select(d, 0); }, 2)
      .refused("IndexError", "select: expected a tensor with dimensions, got a scalar",
               [=] { return scalar().select(0, 0); });
  BadInputs(list, "select")
      .of("index")
      .values<I>([x](I i) { return x().select(1, i); }, {3, -4, kMost, kLeast}, "IndexError",
                 "expected an index in \\[-3, 2\\] for dim 1");
  BadInputs(list, "slice")
      .of("dim")
      .dims([x](I d) { return x().slice(d, 0, 1); }, 2)
      .refused("IndexError", "slice: expected a tensor with dimensions, got a scalar",
               [=] { return scalar().slice(0, 0, 1); });
  BadInputs(list, "slice")
      .of("step")
      .values<I>([x](I step) { return x().slice(1, 0, 2, step); }, {0, -1, kLeast}, "ArgumentError",
                 "expected step >= 1, got ");
  BadInputs(list, "slice")
      .free("start", "cut to the size, as in Python")
      .free("end", "cut to the size, as in Python");
  BadInputs(list, "narrow")
      .of("dim")
      .dims([x](I d) { return x().narrow(d, 0, 1); }, 2)
      .refused("IndexError", "narrow: expected a tensor with dimensions, got a scalar",
               [=] { return scalar().narrow(0, 0, 0); });
  const char* const part = "expected a part of \\[0, 3\\) of dim 1, got start ";
  BadInputs(list, "narrow")
      .of("start")
      .values<I>([x](I start) { return x().narrow(1, start, 1); }, {3, -4, kMost, kLeast},
                 "IndexError", part);
  BadInputs(list, "narrow")
      .of("length")
      .values<I>([x](I length) { return x().narrow(1, 1, length); }, {3, -1, kMost, kLeast},
                 "IndexError", part);
  BadInputs(list, "transpose").of("a").dims([x](I d) { return x().transpose(d, 0); }, 2);
  BadInputs(list, "transpose").of("b").dims([x](I d) { return x().transpose(0, d); }, 2);
  BadInputs(list, "permute")
      .of("dims")
      .values<Shape>([x](S dims) { return x().permute(dims); }, {{0}, {0, 1, 2}, {}}, "ShapeError",
                     "expected 2 dims, got ")
      .values<Shape>([x](S dims) { return x().permute(dims); }, {{0, 0}, {1, -1}}, "ShapeError",
                     "expected each dim once, got ")
      .values<Shape>([x](S dims) { return x().permute(dims); }, {{0, 2}, {-3, 0}}, "IndexError",
                     "expected a dim in \\[-2, 1\\], got ");
  const std::vector<Shape> wrong{{4}, {2, 2}, {-1, 4}, {0, -1}, {}};
  BadInputs(list, "reshape")
      .of("shape")
      .values<Shape>([x](S shape) { return x().reshape(shape); }, wrong, "ShapeError",
                     "expected a shape of 6 elements, got ")
      .values<Shape>([x](S shape) { return x().reshape(shape); }, {{-1, -1}, {-2, 3}}, "ShapeError",
                     "expected sizes >= 0, got ");
  BadInputs(list, "view")
      .of("shape")
      .values<Shape>([x](S shape) { return x().view(shape); }, wrong, "ShapeError",
                     "expected a shape of 6 elements, got ")
      .values<Shape>([x](S shape) { return x().t().view(shape); }, {{6}, {2, 3}}, "LayoutError",
                     "expected a tensor whose strides allow shape ");
  BadInputs(list, "flatten")
      .of("start")
      .dims([x](I d) { return x().flatten(d); }, 2)
      .refused("ShapeError", "flatten: expected start <= end, got 1 and 0",
               [x] { return x().flatten(1, 0); });
  BadInputs(list, "flatten")
      .of("end")
      .dims([x](I d) { return x().flatten(0, d); }, 2)
      .refused("ShapeError", "flatten: expected start <= end, got 1 and -2",
               [x] { return x().flatten(1, -2); });
  BadInputs(list, "squeeze").of("dim").dims([x](I d) { return x().squeeze(d); }, 2);
  BadInputs(list, "unsqueeze").of("dim").dims([x](I d) { return x().unsqueeze(d); }, 3);
  BadInputs(list, "expand")
      .of("shape")
      .values<Shape>([x](S shape) { return x().expand(shape); }, {{3}, {}}, "ShapeError",
                     "expected at least 2 sizes, got ")
      .values<Shape>([x](S shape) { return x().expand(shape); },
                     {{2, 4}, {3, 3}, {-1, 2, 3}, {2, -2}}, "ShapeError",
                     "expected a shape that \\[2, 3\\] broadcasts to, got ");
  for (const std::string name : {"cpu:99", "cuda:99", "cpu:1023"})
    BadInputs(list, "to")
        .of("device")
        .refused("DeviceError", "device: expected one of ",
                 [x, name] { return x().to(Device(name)); });
  BadInputs(list, "to")
      .of("device")
      .refused("DeviceError", "device: expected cpu, cpu:<index>",
               [x] { return x().to(Device("gpu")); });
  BadInputs(list, "to").free("dtype", "every type can be converted to every other");
}

void add_shape_errors(std::vector<OpCase>& list) {
  using T = const Tensor&;
  const auto broadcast = [](T x) { return broadcast_to(x, {2, 3}); };
  const auto as = [](T x) { return expand_as(x, random_tensor({2, 3})); };
  const auto reshaped = [](T x) { return reshape_as(x, random_tensor({2, 3})); };
  const auto add = [&](const char* op, auto f, const std::vector<Sizes>& shapes, const char* text) {
    BadInputs bad(list, op);
    bad.of("x").undefined(f);
    for (const Sizes& s : shapes)
      bad.refused("ShapeError", text, [f, s] { return f(random_tensor(s)); });
  };
  add("broadcast_to", broadcast, {{2}, {4, 3}},
      "expand: expected a shape that .* broadcasts to, got \\[2, 3\\]");
  add("broadcast_to", broadcast, {{1, 2, 3}}, "expand: expected at least 3 sizes, got \\[2, 3\\]");
  add("expand_as", as, {{2}, {4, 3}},
      "expand: expected a shape that .* broadcasts to, got \\[2, 3\\]");
  add("expand_as", as, {{1, 2, 3}}, "expand: expected at least 3 sizes, got \\[2, 3\\]");
  add("reshape_as", reshaped, {{2}, {4, 3}, {0, 3}},
      "reshape: expected a shape of .* elements, got \\[2, 3\\] for a tensor of shape ");
  BadInputs(list, "diagonal").free("offset", "one beyond the matrix is an empty diagonal");
  for (const char* op : {"tril", "triu"})
    BadInputs(list, op).free("diagonal", "one beyond the matrix leaves all of it, or nothing");
}

}  // namespace braid::test::on_device
