// Changes in place: every layout of target and source, memory between the elements untouched, and
// when autograd refuses them.
#include <cmath>

#include <braid/core/autograd.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/ops/elementwise.hpp>

#include "reference/elementwise.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
namespace {

struct InPlace {
  const char* name;
  std::function<const Tensor&(const Tensor&, const Tensor&)> call;
  std::function<double(double, double)> expected;
};

const std::vector<InPlace>& with_a_tensor() {
  static const std::vector<InPlace> list{
      {"add_", [](const Tensor& x, const Tensor& y) -> const Tensor& { return x.add_(y); },
       [](double x, double y) { return x + y; }},
      {"add_ alpha", [](const Tensor& x, const Tensor& y) -> const Tensor& { return x.add_(y, 2); },
       [](double x, double y) { return x + 2 * y; }},
      {"sub_", [](const Tensor& x, const Tensor& y) -> const Tensor& { return x.sub_(y); },
       [](double x, double y) { return x - y; }},
      {"mul_", [](const Tensor& x, const Tensor& y) -> const Tensor& { return x.mul_(y); },
       [](double x, double y) { return x * y; }},
      {"copy_", [](const Tensor& x, const Tensor& y) -> const Tensor& { return x.copy_(y); },
       [](double, double y) { return y; }},
      {"fill_", [](const Tensor& x, const Tensor&) -> const Tensor& { return x.fill_(3); },
       [](double, double) { return 3.0; }},
      {"zero_", [](const Tensor& x, const Tensor&) -> const Tensor& { return x.zero_(); },
       [](double, double) { return 0.0; }},
      {"add_ number", [](const Tensor& x, const Tensor&) -> const Tensor& { return x.add_(3.0); },
       [](double x, double) { return x + 3; }},
      {"mul_ number", [](const Tensor& x, const Tensor&) -> const Tensor& { return x.mul_(2.0); },
       [](double x, double) { return x * 2; }},
  };
  return list;
}

/// All of the memory under a tensor.
std::vector<double> memory_of(const Tensor& t) {
  const std::int64_t n = static_cast<std::int64_t>(t.storage()->bytes() / size_of(t.dtype()));
  return array_of(make_tensor_on(t.storage(), Shape{n}, Shape{1}, 0, t.dtype())).data;
}

}  // namespace

TEST_CASE("in place: the elements change, and nothing between them", "[inplace]") {
  const std::vector<std::pair<Sizes, Sizes>> shapes{
      {{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{2, 3, 2}, {3, 1}}, {{3}, {}},
      {{}, {}},         {{2, 0}, {1}}, {{33}, {33}},        {{3, 17}, {17}}};
  for (const InPlace& op : with_a_tensor())
    for (const DType dtype : {DType::int32, DType::int64, DType::float16, DType::bfloat16,
                              DType::float32, DType::float64})
      for (const auto& [shape, other] : shapes)
        for (const Layout& to : layouts(shape)) {
          if (to.repeats) continue;
          for (const Layout& from : layouts(other)) {
            Numbers numbers(5);
            const Tensor x = strided(shape, to.strides, to.offset, dtype, here(),
                                     [&] { return numbers.of(dtype); });
            const Tensor y = strided(other, from.strides, from.offset, dtype, here(),
                                     [&] { return numbers.of(dtype); });
            const Array before = array_of(x), source = array_of(y);
            std::vector<double> want = memory_of(x);
            const Sizes strides = sizes_of(x.strides());
            reference::for_each(shape, [&](const Sizes& i) {
              const double v =
                  op.expected(reference::value(before, i), reference::broadcast_value(source, i));
              want.at(static_cast<std::size_t>(to.offset + reference::offset(i, strides))) =
                  reference::round_to(v, format_of(dtype));
            });
            const Tensor& result = op.call(x, y);
            if (result.id() != x.id() || memory_of(x) != want || array_of(y).data != source.data ||
                (x.version() != 1 && x.numel() > 0))
              FAIL_CHECK(op.name << " " << dtype << " " << Shape(shape) << " " << to.name << " by "
                                 << Shape(other) << " " << from.name);
          }
        }
}

TEST_CASE("in place: on every device", "[inplace]") {
  for (const Device d : test_devices())
    for (const InPlace& op : with_a_tensor()) {
      const Tensor x = random_tensor({5, 7}, DType::float32, d),
                   y = random_tensor({7}, DType::float32, d, 2);
      const Array want = reference::zip(array_of(x), array_of(y), op.expected);
      op.call(x, y);
      INFO(op.name << " on " << d);
      CHECK_EXACT(x, want);
    }
}

TEST_CASE("in place: a tensor by itself, and by parts of itself", "[inplace]") {
  const Tensor x = random_tensor({4, 4}, DType::float64);
  Array a = array_of(x);
  x.add_(x);
  CHECK_EXACT(x, reference::map(a, [](double v) { return 2 * v; }));
  a = array_of(x);
  x.mul_(x);
  CHECK_EXACT(x, reference::map(a, [](double v) { return v * v; }));
  // Other parts of the same storage that do not overlap.
  a = array_of(x);
  x[0].copy_(x[3]);
  for (std::int64_t j = 0; j < 4; ++j) CHECK(array_of(x)[j] == a[12 + j]);
  // Overlapping ones: as if the source had been copied first, or refused; never a mixture.
  const auto as_if_copied = [](const Tensor& target, const Tensor& source, const Tensor& whole) {
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
  const Tensor x = random_tensor({2, 3});
  const Array before = array_of(x);
  CHECK_THROWS_TEXT(ShapeError, "add_: expected *got *[2, 3] and [4, 3]", x.add_(zeros({4, 3})));
  CHECK_THROWS_TEXT(ShapeError, "mul_: ", x.mul_(zeros({2})));
  // broadcasts, but the target cannot grow
  CHECK_THROWS_TEXT(ShapeError, "sub_: ", x.sub_(zeros({5, 2, 3})));
  CHECK_THROWS_TEXT(ShapeError, "add_: ", x.slice(0, 0, 1).add_(zeros({2, 3})));
  CHECK_THROWS_TEXT(ShapeError, "copy_: ", x.copy_(zeros({3, 2})));
  CHECK_THROWS_TEXT(DeviceError, here("add_: expected *got cpu:0 and cpu:1"),
                    x.add_(zeros({2, 3}, {.device = there()})));
  CHECK_THROWS_TEXT(DeviceError, "mul_: ", x.mul_(zeros({2, 3}, {.device = there()})));
  const Tensor integers = arange(3);
  // float32 does not fit into int64
  CHECK_THROWS_TEXT(DTypeError, "add_: expected *int64*got *float32",
                    integers.add_(tensor({0.5, 0.5, 0.5})));
  CHECK_THROWS_TEXT(DTypeError, "mul_: ", integers.mul_(tensor({0.5, 0.5, 0.5})));
  CHECK_NOTHROW(x.add_(ones({3}, {.dtype = DType::int64})).sub_(ones({3})));
  // A target whose elements share memory has no one result.
  const Tensor wide = tensor({{1.0}, {2.0}}).expand({2, 3});
  CHECK_THROWS_TEXT(LayoutError, "add_: ", wide.add_(ones({2, 3})));
  CHECK_THROWS_TEXT(LayoutError, "copy_: ", wide.copy_(ones({2, 3})));
  CHECK_EXACT(wide, Array({2, 3}, std::vector<double>{1, 1, 1, 2, 2, 2}));
  CHECK(integers.to_vector<int>() == std::vector<int>{0, 1, 2});
  CHECK_CLOSE(x, before, tolerance(DType::float32));
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
}

TEST_CASE("in place: autograd refuses leaves that require a gradient, and views",
          "[inplace][errors]") {
  const Tensor w = random_tensor({2, 3}).requires_grad_();
  const Array before = array_of(w);
  for (const InPlace& op : with_a_tensor()) {
    INFO(op.name);
    CHECK_THROWS_AS(op.call(w, ones({2, 3})), AutogradError);
    CHECK_THROWS_AS(op.call(w[0], ones({3})), AutogradError);
    CHECK_THROWS_AS(op.call(w.t(), ones({3, 2})), AutogradError);
    const Tensor y = w * 2;
    CHECK_THROWS_AS(op.call(y[0], ones({3})), AutogradError);  // a view of what is recorded
  }
  CHECK_THROWS_TEXT(AutogradError, "add_: expected *leaf*", w.add_(1.0));
  CHECK_EXACT(w, before);
  CHECK(w.version() == 0);
  NoGrad guard;
  w.add_(1.0);
  w[0].zero_();
  CHECK(w.version() == 2);
  CHECK(w.requires_grad());
  CHECK(w.is_leaf());
  // Numbers only, without history.
  CHECK_NOTHROW(w.detach().fill_(3));
}

TEST_CASE("in place: changes of what an op made are recorded", "[inplace][gradients]") {
  const Tensor x = random_tensor({2, 3}, DType::float64).requires_grad_(),
               y = random_tensor({2, 3}, DType::float64, {}, 2).requires_grad_();
  CHECK_GRAD([](const Tensor& a, const Tensor& b) { return (a * 2.0).add_(b, 3); }, x, y);
  CHECK_GRAD([](const Tensor& a, const Tensor& b) { return (a * 2.0).sub_(b); }, x, y);
  CHECK_GRAD([](const Tensor& a, const Tensor& b) { return (a * 2.0).mul_(b); }, x, y);
  CHECK_GRAD([](const Tensor& a, const Tensor&) { return (a * 2.0).mul_(-3.0).add_(1.0); }, x, y);
  CHECK_GRAD([](const Tensor& a, const Tensor& b) { return (a * 2.0).copy_(b * b); }, x, y);
  CHECK_GRAD([](const Tensor& a, const Tensor& b) { return (a * 2.0).fill_(2).mul_(b); }, x, y);
  // broadcast
  CHECK_GRAD([](const Tensor& a, const Tensor& b) { return (a * 2.0).mul_(b[0]); }, x, y);
  CHECK_GRAD(
      [](const Tensor& a, const Tensor& b) {
        return zeros({2, 3}, {.dtype = DType::float64}).add_(a).mul_(b);
      },
      x, y);
  // A fresh tensor that takes part now has a history.
  const Tensor buffer = zeros({2, 3}, {.dtype = DType::float64});
  buffer.copy_(x);
  CHECK(buffer.requires_grad());
  CHECK_FALSE(buffer.is_leaf());
}

TEST_CASE(
    "in place: copy_ from another CPU device takes no memory, in every layout, dtype and shape "
    "that broadcasts",
    "[inplace][device]") {
  const Device cpu("cpu:0"), there("cpu:1");  // whatever the default device is
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
      for (std::int64_t i = 0; i < 4; ++i)
        for (std::int64_t j = 0; j < 6; ++j) {
          // Read in place: item() and select() make no memory on the devices.
          const Tensor want = from.dim() == 1 ? from.select(0, j) : from.select(0, i).select(0, j);
          CHECK(to.select(0, i).select(0, j).item<double>() ==
                static_cast<double>(static_cast<float>(want.item<double>())));
        }
    }
  CHECK(memory_stats(there).allocations == there_before);
  CHECK(memory_stats(x.device()).allocations == here_before);
  // The gradient arrives where the source is.
  const Tensor source = random_tensor({4, 6}).requires_grad_();
  const Tensor target = zeros({4, 6}, {.device = there});
  target.copy_(source);
  (target * target).sum().backward();
  REQUIRE(source.grad().defined());
  CHECK(source.grad().device() == source.device());
  CHECK(source.grad().select(0, 1).select(0, 2).item<double>() ==
        Approx(2 * source.select(0, 1).select(0, 2).item<double>()));
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
    y.mul_(2.0);  // exp keeps its result
    CHECK_THROWS_TEXT(AutogradError, "backward: expected *version 0*got *version 1*saved by exp",
                      z.backward());
  }
  {
    const Tensor factor = random_tensor({3}), z = (x * factor).sum();
    factor.detach().zero_();  // through another handle
    CHECK_THROWS_AS(z.backward(), AutogradError);
  }
  {
    const Tensor y = x + 1.0, z = (y + y).sum();
    y.add_(1.0);  // add keeps nothing
    CHECK_NOTHROW(z.backward());
    CHECK(x.grad().to_vector<float>() == std::vector<float>{2, 2, 2});
  }
}

TEST_CASE(
    "in place: mul_ by itself, or by what shares its memory, has the gradient of the old numbers",
    "[inplace][gradients]") {
  const auto gradient = [](auto f) {
    const Tensor w = tensor({1.0, 2.0, 3.0}).requires_grad_();
    f(w).sum().backward();
    return w.grad().template to_vector<double>();
  };
  const auto itself = [](const Tensor& w) {
    const Tensor x = w * 1.0;
    return x.mul_(x);
  };
  CHECK(gradient(itself) == std::vector<double>{2, 4, 6});
  CHECK(gradient([](const Tensor& w) {
          const Tensor x = w * 2;
          return x.mul_(x.detach());
        }) == std::vector<double>{4, 8, 12});
  CHECK(gradient([](const Tensor& w) {
          const Tensor x = w * 1.0;
          return x.add_(x);
        }) == std::vector<double>{2, 2, 2});
  CHECK(gradient([](const Tensor& w) {
          const Tensor x = w * 1.0;
          return x.sub_(x);
        }) == std::vector<double>{0, 0, 0});
  const Tensor a = random_tensor({2, 3}, DType::float64).requires_grad_();
  CHECK_GRAD(
      [](const Tensor& t) {
        const Tensor x = t * 2.0;
        return x.mul_(x);
      },
      a);
  // Nothing is left of the graph: it holds no cycle.
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
  for (const double wrong : {0.5, 1e30, double(INFINITY), std::nan("")}) {
    CHECK_THROWS_TEXT(DTypeError, str("mul_: expected a number that int64 can hold, got ", wrong),
                      i.mul_(wrong));
    CHECK_THROWS_TEXT(DTypeError, str("add_: expected a number that int64 can hold, got ", wrong),
                      i.add_(wrong));
    CHECK_THROWS_TEXT(DTypeError, str("add_: expected a whole alpha for int64, got ", wrong),
                      i.add_(i, wrong));
    CHECK_THROWS_TEXT(DTypeError, str("add: expected a whole alpha for int64, got ", wrong),
                      add(i, i, wrong));
    CHECK_THROWS_TEXT(DTypeError, "sub: expected a whole alpha for int64", sub(i, i, wrong));
  }
  CHECK_THROWS_TEXT(DTypeError, "mul_: expected a number that bool can hold, got 0.5", b.mul_(0.5));
  CHECK_THROWS_TEXT(DTypeError, "add_: expected a number that bool can hold, got 2", b.add_(2.0));
  CHECK_THROWS_TEXT(DTypeError, "add_: expected *bool*got int64", b.add_(tensor({1, 2})));
  CHECK_THROWS_TEXT(DTypeError, "add: expected a whole alpha for bool, got 0.5", add(b, b, 0.5));
  CHECK((i.version() == 0 && b.version() == 0));
  CHECK(i.to_vector<int>() == std::vector<int>{10, 20, 30});
  CHECK(b.to_vector<bool>() == std::vector<bool>{true, false});
  // What PyTorch computes.
  CHECK(add(i, i.to(DType::float32), 0.5).to_vector<double>() == std::vector<double>{15, 30, 45});
  CHECK(add(i, i, 2).to_vector<int>() == std::vector<int>{30, 60, 90});
  CHECK(add(b, b, 2).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(b.add_(1.0).to_vector<bool>() == std::vector<bool>{true, true});
  CHECK(u.add_(300).to_vector<int>() == std::vector<int>{45, 46});
  CHECK(u.add_(-1).to_vector<int>() == std::vector<int>{44, 45});
  CHECK(u.mul_(-1).to_vector<int>() == std::vector<int>{212, 211});
}

TEST_CASE("in place: integers take numbers from copy_, and no history", "[inplace]") {
  const Tensor n = zeros({2}, {.dtype = DType::int64}), w = tensor({1.5, 2.5}).requires_grad_();
  n.copy_(w);
  CHECK_FALSE(n.requires_grad());
  CHECK(n.is_leaf());
  CHECK(n.to_vector<int>() == std::vector<int>{1, 2});
}

}  // namespace braid::test::on_device
