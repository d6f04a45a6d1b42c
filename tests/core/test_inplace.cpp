// Tests of in-place changes: every layout of target and source, memory between the elements that
// must not change, and when autograd rejects them.
#include "reference/activation.hpp"
#include "reference/elementwise.hpp"
#include "shorthand.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {
namespace {

struct InPlace {
  const char* name;
  std::function<T(T, T)> call;
  std::function<double(double, double)> expected;
  bool floating = false;  ///< for floating-point tensors only
  /// "add_: ", with which its error texts begin.
  [[nodiscard]] std::string prefix() const {
    const std::string whole = name;  // zero_ is fill_ with 0
    return (whole == "zero_" ? "fill_" : whole.substr(0, whole.find(' '))) + ": ";
  }
};

const std::vector<InPlace>& with_a_tensor() {
  static const std::vector<InPlace> list{
      {"add_", [](T x, T y) -> T { return x.add_(y); }, [](double x, double y) { return x + y; }},
      {"add_ alpha", [](T x, T y) -> T { return x.add_(y, 2); },
       [](double x, double y) { return x + 2 * y; }},
      {"sub_", [](T x, T y) -> T { return x.sub_(y); }, [](double x, double y) { return x - y; }},
      {"mul_", [](T x, T y) -> T { return x.mul_(y); }, [](double x, double y) { return x * y; }},
      {"div_", [](T x, T y) -> T { return x.div_(y); }, [](double x, double y) { return x / y; },
       true},
      {"copy_", [](T x, T y) -> T { return x.copy_(y); }, [](double, double y) { return y; }},
      {"masked_fill_", [](T x, T y) -> T { return x.masked_fill_(gt(y, 0), 3); },
       [](double x, double y) { return y > 0 ? 3 : x; }},
      {"fill_", [](T x, T) -> T { return x.fill_(3); }, [](double, double) { return 3.0; }},
      {"zero_", [](T x, T) -> T { return x.zero_(); }, [](double, double) { return 0.0; }},
      {"relu_", [](T x, T) -> T { return x.relu_(); },
       [](double x, double) { return x > 0 ? x : 0; }},
      {"clamp_", [](T x, T) -> T { return x.clamp_(-1, 1); },
       [](double x, double) { return reference::cut_off(x, -1, 1); }},
      {"add_ number", [](T x, T) -> T { return x.add_(3.0); },
       [](double x, double) { return x + 3; }},
      {"sub_ number", [](T x, T) -> T { return x.sub_(2); },
       [](double x, double) { return x - 2; }},
      {"mul_ number", [](T x, T) -> T { return x.mul_(2.0); },
       [](double x, double) { return x * 2; }},
      {"div_ number", [](T x, T) -> T { return x.div_(3); }, [](double x, double) { return x / 3; },
       true},
  };
  return list;
}

/// Returns all elements of a tensor's storage.
List memory_of(T t) {
  const std::int64_t n = static_cast<std::int64_t>(t.storage()->bytes() / size_of(t.dtype()));
  return array_of(make_tensor_on(t.storage(), Shape{n}, Shape{1}, 0, t.dtype())).data;
}

}  // namespace

TEST_CASE("in place: the elements change, and nothing between them", "[inplace]") {
  const std::vector<std::pair<Sizes, Sizes>> shapes{
      {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{2, 3, 2}, {3, 1}}, {{3}, {}},
      {{}, {}},         {{2, 0}, {1}}, {{33}, {33}},        {{3, 17}, {17}}};
  std::size_t number = 0;
  for (const InPlace& op : with_a_tensor())
    for (const DType dtype : {DType::int32, DType::int64, DType::float16, DType::bfloat16,
                              DType::float32, DType::float64})
      for (const auto& [shape, other] : shapes)
        for (const Layout& to : layouts(shape)) {
          if (!mine(number++)) continue;
          if (to.repeats || (op.floating && !is_floating(dtype))) continue;
          for (const Layout& from : layouts(other)) {
            Numbers numbers(5);
            const auto next = [&] { return numbers.of(dtype); };
            const Tensor x = strided(shape, to.strides, to.offset, dtype, here(), next),
                         y = strided(other, from.strides, from.offset, dtype, here(), next);
            const Array before = array_of(x), source = array_of(y);
            List want = memory_of(x);
            const Sizes strides = sizes_of(x.strides());
            reference::for_each(shape, [&](const Sizes& i) {
              const double v =
                  op.expected(reference::value(before, i), reference::broadcast_value(source, i));
              want.at(static_cast<std::size_t>(to.offset + reference::offset(i, strides))) =
                  reference::round_to(v, format_of(dtype));
            });
            T result = op.call(x, y);
            if (&result != &x || memory_of(x) != want || array_of(y).data != source.data ||
                (x.version() != 1 && x.numel() > 0))
              FAIL_CHECK(op.name << " " << dtype << " " << Shape(shape) << " " << to.name << " by "
                                 << Shape(other) << " " << from.name);
          }
        }
}

TEST_CASE("in place: a tensor times itself, and times parts of itself", "[inplace]") {
  const Tensor x = random_tensor({4, 4}, DType::float64), itself = tensor({2.0, 4.0});
  CHECK(list(itself.div_(itself)) == List{1, 1});
  Array a = array_of(x);
  x.add_(x);
  CHECK_EXACT(x, reference::map(a, [](double v) { return 2 * v; }));
  a = array_of(x);
  x.mul_(x);
  CHECK_EXACT(x, reference::map(a, [](double v) { return v * v; }));
  // Parts of the same storage that do not overlap.
  a = array_of(x);
  x[0].copy_(x[3]);
  for (std::int64_t j = 0; j < 4; ++j) CHECK(array_of(x)[j] == a[12 + j]);
  // Overlapping parts: the source is read as if copied first, or the call is rejected.
  const auto as_if_copied = [](T target, T source, T whole) {
    const Array before = array_of(whole), t = array_of(target), s = array_of(source);
    try {
      target.add_(source);
      return exact(target, reference::zip(t, s, [](double p, double q) { return p + q; }));
    } catch (const ArgumentError&) {
      return exact(whole, before);
    }
  };
  CHECK(as_if_copied(x, x.t(), x) == "");
  CHECK(as_if_copied(x, x[0], x) == "");
  CHECK(as_if_copied(x, x.select(1, 2).unsqueeze(1), x) == "");
  const Tensor line = random_tensor({100}, DType::float64);
  CHECK(as_if_copied(line.slice(0, 1, 100), line.slice(0, 0, 99), line) == "");
  CHECK(as_if_copied(line.slice(0, 0, 99), line.slice(0, 1, 100), line) == "");
  CHECK(as_if_copied(line, line[50], line) == "");
}

TEST_CASE("in place: what does not fit is refused and changes nothing", "[inplace][errors]") {
  const Tensor x = random_tensor({2, 3}), part = x.slice(0, 0, 1),
               truth = ones({2}, {.dtype = DType::bool_});
  CHECK_THROWS_TEXT(ShapeError, "add_: expected *got *[2, 3] and [4, 3]", x.add_(zeros({4, 3})));
  CHECK_THROWS_TEXT(ShapeError, "div_: expected a shape that broadcasts to [2, 3], got [4, 2, 3]",
                    x.div_(ones({4, 2, 3})));
  CHECK_THROWS_TEXT(ShapeError, "masked_fill_: expected a shape that broadcasts to [2, 3]",
                    x.masked_fill_(ones({4, 1, 3}, {.dtype = DType::bool_}), 1));
  CHECK_THROWS_TEXT(ShapeError, "add_: ", part.add_(zeros({2, 3})));
  CHECK_THROWS_TEXT(ArgumentError, "clamp_: expected min, max or both, got neither",
                    x.clamp_(std::nullopt));
  CHECK_THROWS_TEXT(DTypeError, "clamp_: expected numbers, got bool", truth.clamp_(0));
  CHECK_THROWS_TEXT(DTypeError, "sub_: expected numbers, got bool", truth.sub_(1));
  CHECK(x.version() == 0);
  CHECK(truth.version() == 0);
  // A target whose elements share memory has no well-defined result.
  const Tensor wide = tensor({{1.0}, {2.0}}).expand({2, 3});
  for (const InPlace& op : with_a_tensor())
    CHECK_THROWS_TEXT(LayoutError,
                      op.prefix() + "expected a tensor whose elements each have their own memory",
                      op.call(wide, ones({2, 3})));
  CHECK(list(wide) == List{1, 1, 1, 2, 2, 2});
  CHECK_NOTHROW(x.add_(ones({3}, {.dtype = DType::int64})).sub_(ones({3})));
}

TEST_CASE("in place: an operand of a wider type is not rounded first", "[inplace][gradients]") {
  const auto in16 = [](double value, DType t = DType::float16) {
    return full({2}, value, {.dtype = t});
  };
  const auto same = [](const Tensor& x, double value) {
    CHECK(x.to_vector<double>() == std::vector<double>(2, value));
  };
  const Tensor million = full({2}, 1e6), factor = tensor(1e6);
  same(in16(0x1p-10).mul_(million), 976.5);  // 976.5625, in steps of 1/2
  same(in16(60000).div_(million), 0x1.eb8p-5);
  same(in16(-60000).add_(full({2}, 70000.0)), 10000);
  same(in16(60000).sub_(full({2}, 70000.0)), -10000);
  same(in16(1, DType::bfloat16).sub_(tensor({1.00390625, 1.00390625})), -0.00390625);
  same(in16(1024).add_(full({2}, 0x1p20), -0x1p-10), 0);
  same(full({2}, 0x1p100).div_(full({2}, 0x1p200, {.dtype = DType::float64})), 0x1p-100);
  same(in16(0x1p-10).mul_(factor), 976.5);  // without dims too
  const Tensor one = full({}, 1.0, {.dtype = DType::bfloat16});
  CHECK(one.sub_(tensor(1.00390625)).item<double>() == -0.00390625);
  // gradients, of both operands
  const Tensor x = in16(1).requires_grad_(), y = full({2}, 1e4).requires_grad_(), z = x * 0x1p-10;
  z.mul_(y);
  z.sum().backward();
  same(x.grad(), 9.765625);
  CHECK(y.grad().dtype() == DType::float32);
  same(y.grad(), 0x1p-10);
}

TEST_CASE("in place: copy_ converts and crosses devices", "[inplace]") {
  for (const DType to : all_dtypes())
    for (const DType from : all_dtypes())
      for (const Device device : test_devices()) {
        INFO(from << " to " << to << " on " << device);
        const Tensor source = random_tensor({3, 5}, from, Device("cpu"), 3, 0, 20);
        const Tensor target = zeros({2, 3, 5}, {.device = device, .dtype = to});
        target.copy_(source);
        const Array want =
            reference::generate({2, 3, 5}, [a = array_of(source), to](const Sizes& i) {
              const double v = reference::broadcast_value(a, i);
              return to == DType::bool_ ? static_cast<double>(v != 0)
                     : is_floating(to)  ? v
                                        : std::trunc(v);
            });
        CHECK_EXACT(target, want);
      }
  // Integers have no graph.
  const Tensor n = zeros({2}, {.dtype = DType::int64});
  n.copy_(tensor({1.5, 2.5}).requires_grad_());
  CHECK((!n.requires_grad() && n.is_leaf()));
  CHECK(whole(n) == Whole{1, 2});
}

TEST_CASE("in place: autograd refuses leaves that require a gradient, and their views",
          "[inplace][errors]") {
  const Tensor w = random_tensor({2, 3}).requires_grad_();
  const Array before = array_of(w);
  for (const InPlace& op : with_a_tensor()) {
    INFO(op.name);
    CHECK_THROWS_TEXT(AutogradError,
                      op.prefix() + "expected a tensor that is not a leaf requiring grad",
                      op.call(w, ones({2, 3})));
    for (const Tensor& view : {w[0], w.t()})
      CHECK_THROWS_AS(op.call(view, ones({1})), AutogradError);
  }
  CHECK_EXACT(w, before);
  CHECK(w.version() == 0);
  NoGrad guard;
  w.add_(1.0);
  w[0].zero_();
  CHECK(w.version() == 2);
  CHECK(w.requires_grad());
  CHECK(w.is_leaf());
  // detach() has no graph, so its values may change.
  CHECK_NOTHROW(w.detach().fill_(3));
}

TEST_CASE("in place: changes of what an op made are recorded", "[inplace][gradients]") {
  const Tensor x = random_tensor({2, 3}, DType::float64).requires_grad_(),
               y = random_tensor({2, 3}, DType::float64, {}, 2, 1, 2).requires_grad_();
  for (const InPlace& op : with_a_tensor()) {
    INFO(op.name);
    const auto again = [&](T a, T b) { return op.call(a * 2.0, b * b).mul_(b[0]).add_(1.0); };
    CHECK_GRAD(again, x, y);
  }
  CHECK_GRAD([](T a, T b) { return zeros({2, 3}, {.dtype = DType::float64}).add_(a).mul_(b); }, x,
             y);
  // A new tensor becomes part of the graph when a recorded tensor is copied to it.
  const Tensor buffer = zeros({2, 3}, {.dtype = DType::float64});
  buffer.copy_(x);
  CHECK(buffer.requires_grad());
  CHECK_FALSE(buffer.is_leaf());
}

TEST_CASE(
    "in place: copy_ from another CPU device takes no memory, in every layout, dtype and shape "
    "that broadcasts",
    "[inplace][device]") {
  const Device cpu("cpu:0"), there("cpu:1");  // whatever the best device is
  const Tensor x = random_tensor({4, 6}, DType::float32, cpu),
               wide = random_tensor({6, 4}, DType::float32, cpu).t(),
               row = random_tensor({6}, DType::float32, cpu),
               doubles = random_tensor({4, 6}, DType::float64, cpu);
  const Tensor y = zeros({4, 6}, {.device = there}), columns = zeros({6, 4}, {.device = there}).t();
  const std::uint64_t here_before = memory_stats(x.device()).allocations,
                      there_before = memory_stats(there).allocations;
  for (const Tensor& to : {y, columns})
    for (const Tensor& from : {x, wide, row, doubles}) {
      const std::uint64_t version = to.storage()->version();
      to.copy_(from);
      CHECK(to.storage()->version() > version);
      CHECK(to.device() == there);
      // array_of reads without a copy: it allocates nothing on the devices.
      CHECK_EXACT(to, reference::generate({4, 6}, [a = array_of(from)](const Sizes& i) {
                    return reference::broadcast_value(a, i);
                  }));
    }
  CHECK(memory_stats(there).allocations == there_before);
  CHECK(memory_stats(x.device()).allocations == here_before);
  // The gradient arrives on the source's device.
  const Tensor source = random_tensor({4, 6}).requires_grad_();
  const Tensor target = zeros({4, 6}, {.device = there});
  target.copy_(source);
  (target * target).sum().backward();
  REQUIRE(source.grad().defined());
  CHECK(source.grad().device() == source.device());
  CHECK_SAME_BITS(source.grad(), source.detach() * 2.0);
}

TEST_CASE("in place: a change of what backward needs is found", "[inplace][errors]") {
  const Tensor x = random_tensor({3}).requires_grad_();
  {
    const Tensor y = x * 2, z = y * y;
    y.add_(1.0);
    CHECK_THROWS_TEXT(AutogradError, "version", z.sum().backward());
    CHECK_FALSE(x.grad().defined());
  }
  {
    const Tensor y = exp(x), z = y.sum();
    y.mul_(2.0);  // exp saves its result
    CHECK_THROWS_TEXT(AutogradError, "backward: expected *version 0*got *version 1*saved by exp",
                      z.backward());
  }
  {
    const Tensor factor = random_tensor({3}), z = (x * factor).sum();
    factor.detach().zero_();  // through another handle
    CHECK_THROWS_AS(z.backward(), AutogradError);
  }
  const Tensor y = x + 1.0, z = (y + y).sum();
  y.add_(1.0);  // add saves nothing
  CHECK_NOTHROW(z.backward());
  CHECK(list(x.grad()) == List{2, 2, 2});
}

TEST_CASE(
    "in place: mul_ of a tensor and itself, or its memory, has the gradient of the old numbers",
    "[inplace][gradients]") {
  const auto by = [](double factor, T (*f)(T)) {
    return gradient_at([=](T w) { return f(w * factor); }, {1, 2, 3});
  };
  const auto square = [](T x) -> T { return x.mul_(x); };
  CHECK(by(1, square) == List{2, 4, 6});
  CHECK(by(2, [](T x) -> T { return x.mul_(x.detach()); }) == List{4, 8, 12});
  CHECK(by(1, [](T x) -> T { return x.add_(x); }) == List{2, 2, 2});
  CHECK(by(1, [](T x) -> T { return x.sub_(x); }) == List{0, 0, 0});
  const auto doubled = [](T t) {
    const Tensor x = t * 2.0;
    return x.mul_(x);
  };
  CHECK_GRAD(doubled, random_tensor({2, 3}, DType::float64).requires_grad_());
  // The graph is freed, so it has no reference cycle.
  const std::size_t before = memory_stats(here()).in_use;
  for (int i = 0; i < 3; ++i) {
    const Tensor w = ones({1000}).requires_grad_(), x = w * 1.0;
    x.mul_(x);
  }
  CHECK(memory_stats(here()).in_use == before);
}

TEST_CASE("in place: integers refuse numbers that they cannot hold", "[inplace][errors]") {
  const Tensor i = tensor({10, 20, 30}), b = tensor({true, false}),
               u = tensor({1, 2}, {.dtype = DType::uint8});
  for (const double wrong : {0.5, 1e30, kInf, kNan}) {
    const std::string number = str("expected a number that int64 can hold, got ", wrong),
                      alpha = str("expected a whole alpha for int64, got ", wrong);
    CHECK_THROWS_TEXT(DTypeError, "mul_: " + number, i.mul_(wrong));
    CHECK_THROWS_TEXT(DTypeError, "add_: " + number, i.add_(wrong));
    CHECK_THROWS_TEXT(DTypeError, "add_: " + alpha, i.add_(i, wrong));
    CHECK_THROWS_TEXT(DTypeError, "add: " + alpha, add(i, i, wrong));
  }
  CHECK_THROWS_TEXT(DTypeError, "add_: expected a number that bool can hold, got 2", b.add_(2.0));
  CHECK_THROWS_TEXT(DTypeError, "add_: expected *bool*got int64", b.add_(tensor({1, 2})));
  CHECK_THROWS_TEXT(DTypeError, "add: expected a whole alpha for bool, got 0.5", add(b, b, 0.5));
  CHECK((i.version() == 0 && b.version() == 0));
  // The same results as PyTorch.
  check_lists({{i, {10, 20, 30}},
               {b, {1, 0}},
               {add(i, i.to(DType::float32), 0.5), {15, 30, 45}},
               {add(i, i, 2), {30, 60, 90}},
               {add(b, b, 2), {1, 0}}});
  CHECK(list(b.add_(1.0)) == List{1, 1});
  CHECK(list(u.add_(300)) == List{45, 46});
  CHECK(list(u.add_(-1)) == List{44, 45});
  CHECK(list(u.mul_(-1)) == List{212, 211});
}

TEST_CASE("in place: what is written into a copy that nothing holds is refused",
          "[inplace][errors]") {
  const Tensor x = random_tensor({3, 4}), index = tensor({2, 0}),
               square = random_tensor({2, 2, 2}).transpose(0, 2);
  const Array before = array_of(x), before_square = array_of(square);
  const std::string text = "expected memory that something holds, got the copy that x[index]";
  for (const InPlace& op : with_a_tensor()) {
    INFO(op.name);
    const Tensor y = zeros({1});
    const std::string name = std::string(op.name).substr(0, std::string(op.name).find(' '));
    const auto lost = [&](const std::function<Tensor()>& make) {
      if (name == "copy_") make().copy_(y);
      else if (name == "fill_") make().fill_(1);
      else if (name == "zero_") make().zero_();
      else if (name == "relu_") make().relu_();
      else if (name == "clamp_") make().clamp_(0, 1);
      else if (name == "masked_fill_") make().masked_fill_(eq(y, 0), 1);
      else if (name == "add_") make().add_(y);
      else if (name == "sub_") make().sub_(y);
      else if (name == "mul_") make().mul_(y);
      else make().div_(y);
    };
    for (const auto& make : std::vector<std::function<Tensor()>>{
             [&] { return x[index]; }, [&] { return x[tensor({{0}, {1}})]; },
             [&] { return square.flatten(1); }, [&] { return square.reshape({8}); }})
      CHECK_THROWS_TEXT(LayoutError, name + ": " + text, lost(make));
  }
  CHECK_THROWS_TEXT(LayoutError, "add_: " + text, x[index].add_(1));
  CHECK_THROWS_TEXT(LayoutError, "mul_: " + text, x[index].mul_(2));
  CHECK_THROWS_TEXT(LayoutError, "sub_: " + text, x[index].sub_(2));
  CHECK_THROWS_TEXT(LayoutError, "div_: " + text, x[index].div_(2));
  CHECK_EXACT(x, before);
  CHECK_EXACT(square, before_square);
}

TEST_CASE("in place: on a temporary that is a view, that is held, or that is the value",
          "[inplace]") {
  const Tensor x = zeros({3, 4}), index = tensor({2, 0});
  x[0].fill_(1);
  x.view({12}).add_(1);
  x.reshape({2, 6})[1].mul_(3);
  x.flatten().narrow(0, 0, 1).copy_(tensor({7.0}));
  CHECK(list(x) == List{7, 2, 2, 2, 1, 1, 3, 3, 3, 3, 3, 3});
  // x[index] as a variable is a copy
  const Tensor rows = x[index];
  rows.zero_();
  rows[0].fill_(5);
  CHECK(list(rows) == List{5, 5, 5, 5, 0, 0, 0, 0});
  const Tensor strided = x.t(), copy = strided.reshape({12});
  copy.add_(1);
  copy.view({3, 4})[0].zero_();
  CHECK(list(copy)[0] == 0);
  CHECK(list(x)[0] == 7);
  // calls on temporaries, whose results are used
  const Tensor made = zeros({3}).fill_(1), sum = (made + made).mul_(2),
               scaled = tensor({1, 2}).to(DType::float32).div_(2), mine = x[index].clone().zero_();
  check_lists({{made, {1, 1, 1}}, {sum, {4, 4, 4}}, {scaled, {0.5, 1}}});
  const Tensor& bound = ones({2}).mul_(3);  // lifetime is extended
  CHECK(list(bound) == List{3, 3});
  CHECK(mine.shape() == Shape{2, 4});
}

TEST_CASE("in place: elements that share memory are refused", "[inplace][errors]") {
  const Tensor line = arange(6, {.dtype = DType::float32});
  const std::string text = "expected a tensor whose elements each have their own memory";
  for (const auto& view : std::vector<std::pair<Shape, Shape>>{
           {{3, 3}, {1, 1}}, {{2, 4}, {2, 1}}, {{4, 2}, {1, 2}}, {{3, 2}, {0, 1}}}) {
    INFO(view.first << " " << view.second);
    const Tensor t = make_view(line, view.first, view.second, 0);
    for (const InPlace& op : with_a_tensor())
      CHECK_THROWS_TEXT(LayoutError, op.prefix() + text, op.call(t, ones({1})));
  }
  CHECK(list(line) == List{0, 1, 2, 3, 4, 5});
  for (const auto& view : std::vector<std::pair<Shape, Shape>>{
           {{2, 3}, {3, 1}}, {{3, 2}, {1, 3}}, {{2, 2}, {3, 2}}, {{3, 1, 2}, {2, 0, 1}}})
    CHECK_NOTHROW(make_view(line, view.first, view.second, 0).zero_());
}

}  // namespace braid::test::on_device
