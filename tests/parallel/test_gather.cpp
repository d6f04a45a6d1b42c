// gather: values, errors and gradients.
#include <deque>

#include "group.hpp"

namespace braid::test::on_device {

using parallel::gather;

namespace {

using List = std::vector<Tensor>;
using Map = std::map<std::string, Tensor>;

struct Output {
  Tensor logits;
  List hidden;
  Map named;
  std::optional<Tensor> extra;
  int steps = 0;
  BRAID_FIELDS(logits, hidden, named, extra, steps)
};

/// Replica i's tensor: i+1 rows.
Tensor part_of(int i, std::int64_t offset = 0) {
  return full({i + 1, 2}, static_cast<double>(i + offset), {.device = device(i)});
}

/// Gathers the parts to a device: checks the values, and the gradients if there are any.
void check_join(const List& parts, Device to, int dim) {
  const bool scalars = parts[0].dim() == 0;
  const Tensor y = gather(parts, to, dim);
  CHECK(y.device() == to);
  CHECK(y.dtype() == parts[0].dtype());
  CHECK(y.dim() == (scalars ? 1 : 2));
  Tensor dy;
  if (y.requires_grad()) {
    dy = random_tensor(sizes_of(y.shape()), y.dtype(), to, 3);
    y.backward(dy);
  }
  std::int64_t at = 0;
  for (const Tensor& part : parts) {
    const std::int64_t size = scalars ? 1 : part.size(dim);
    const auto own = [&](const Tensor& whole) {
      return whole.narrow(dim, at, size).reshape(part.shape());
    };
    CHECK_SAME_BITS(own(y.detach()), part.detach());
    if (dy.defined()) {
      CHECK_SAME_BITS(part.grad(), own(dy));
      CHECK(part.grad().device() == part.device());
    }
    at += size;
  }
  CHECK(y.size(scalars ? 0 : dim) == at);
}

/// Uneven parts along every dim, and scalars; gradients of gradients.
void check_gather(Device to) {
  for (const std::vector<Device>& ids : orders()) {
    for (const DType type : {DType::float32, DType::float64, DType::int64, DType::bool_}) {
      for (const int dim : {0, 1, -1}) {
        List parts, scalars;
        for (std::size_t i = 0; i < ids.size(); ++i) {
          Sizes shape{3, 4};
          shape[dim == 0 ? 0 : 1] = static_cast<std::int64_t>(i) + 1;
          parts.push_back(random_tensor(shape, type, ids[i], i + 1));
          if (i == 1) parts[1] = parts[1].t().clone().t();  // a different layout
          scalars.push_back(random_tensor({}, type, ids[i], i + 1));
          if (!is_floating(type)) continue;
          parts[i].requires_grad_();
          scalars[i].requires_grad_();
        }
        check_join(parts, to, dim);
        if (dim == 0) check_join(scalars, to, dim);
      }
    }
  }
  if (device_count() < 2) return;
  const Tensor a = random_tensor({2, 3}, DType::float64, device(0), 1).requires_grad_(),
               b = random_tensor({2, 2}, DType::float64, device(1), 2).requires_grad_();
  const auto rows = [to](const Tensor& x, const Tensor& y) {
    const Tensor z = gather(List{x * x, exp(y)}, to, 1);
    return z * z;
  };
  CHECK_GRAD(rows, a, b);
  const auto scalars = [to](const Tensor& x, const Tensor& y) {
    const Tensor z = gather(List{(x * x).sum(), exp(y).sum()}, to);
    return z * z;
  };
  CHECK_GRAD(scalars, a, b);
}

}  // namespace

ACCEPTANCE("C2: gather has a gradient") {
  if (device_count() < 2) return;
  const Tensor a = ones({5}, {.device = device(0), .requires_grad = true}),
               b = full({5}, 2.0, {.device = device(1), .requires_grad = true});
  const Tensor output = gather(List{a, b}, device(1));
  CHECK(output.shape() == Shape{10});
  CHECK(output.device() == device(1));
  CHECK(numbers(output) == std::vector<double>{1, 1, 1, 1, 1, 2, 2, 2, 2, 2});
  output.backward(ones({10}, {.device = device(1)}));
  for (const Tensor& part : {a, b}) {
    REQUIRE(part.grad().defined());
    CHECK(part.grad().device() == part.device());
    CHECK(numbers(part.grad()) == std::vector<double>(5, 1.0));
  }
}

ACCEPTANCE("T22: gather to the host") { check_gather(host()); }

ACCEPTANCE("T23: gather to a device") {
  check_gather(device(0));
  if (device_count() > 1) check_gather(device(1));
  if (device_count() > 2) check_gather(device(device_count() - 1));
}

ACCEPTANCE("T24: gather of maps with different numbers of keys") {
  if (device_count() < 2) return;
  const Tensor a = part_of(0).requires_grad_(), b = part_of(1).requires_grad_();
  const auto check_maps = [](const Map& first, const Map& second) {
    CHECK_THROWS_TEXT(ArgumentError, "All dicts must have the same number of keys",
                      gather(std::vector<Map>{first, second}, device(0)));
  };
  check_maps({{"a", a}}, {{"b", b}, {"a", b}});
  check_maps({{"b", a}, {"a", a}}, {{"a", b}});
  using Maps = std::vector<Map>;
  CHECK_THROWS_TEXT(
      ArgumentError, "All dicts must have the same number of keys",
      gather(std::vector<Maps>{{{{"x", a}}, {}}, {{{"x", b}}, {{"y", b}}}}, device(0)));
}

TEST_CASE("gather: scalars, numbers and texts become a vector; one warning", "[gather]") {
  for (int n = 1; n <= device_count(); ++n) {
    List scalars;
    std::vector<double> expected;
    for (int i = 0; i < n; ++i) {
      scalars.push_back(tensor(1.5 * i).to(device(i)));
      expected.push_back(1.5 * i);
    }
    for (const int dim : {0, 1}) {  // any dim works
      const Tensor y = gather(scalars, device(n - 1), dim);
      CHECK(y.shape() == Shape{n});
      CHECK(y.device() == device(n - 1));
      CHECK(numbers(y) == expected);
    }
    CHECK(gather(expected, device(0)) == expected);
  }
  CHECK(warnings_with("Was asked to gather along dimension 0, but all input tensors were scalars; "
                      "will instead unsqueeze and return a vector.") == 1);
  const std::vector<std::string> texts{"a", "b"};
  CHECK(gather(texts, device(0)) == texts);
}

TEST_CASE("gather: parts without rows, and large ones", "[gather]") {
  // Parts without rows add nothing; the workers copy large parts.
  CHECK(numbers(gather(List{empty({0, 2}), ones({1, 2})}, device(0))) == std::vector<double>{1, 1});
  if (device_count() < 2) return;
  const Tensor large = random_tensor({600, 1000}),
               other = random_tensor({500, 1000}, DType::float32, device(1), 2);
  const Tensor y = gather(List{large, other}, device(0));
  CHECK_SAME_BITS(y.narrow(0, 0, 600), large);
  CHECK_SAME_BITS(y.narrow(0, 600, 500), other.to(device(0)));
}

TEST_CASE("gather: sizes must agree, and there must be something", "[gather][errors]") {
  CHECK_THROWS_TEXT(ArgumentError, "Expected at least one tensor to gather from",
                    gather(List{}, device(0)));
  if (device_count() < 2) return;
  const Tensor a = zeros({3, 4}), b = zeros({2, 5}, {.device = device(1)}),
               c = zeros({2, 4, 1}, {.device = device(1)}), s = tensor(1.0).to(device(1));
  const auto check_sizes = [](const Tensor& x, const Tensor& y, const std::string& sizes) {
    CHECK_THROWS_TEXT(ShapeError, "Gather got an input of invalid size: " + sizes,
                      gather(List{x, y}, device(0)));
  };
  check_sizes(a, b, "got [2, 5], but expected [2, 4] (the output of replica 1)");
  check_sizes(a, c, "got [2, 4, 1], but expected [3, 4]");
  check_sizes(a, s, "got [], but expected [3, 4]");
  check_sizes(s, a, "got [3, 4], but expected []");
  CHECK_THROWS_TEXT(ShapeError, "('0' of replica 1)",
                    gather(std::vector<std::tuple<Tensor>>{{a}, {b}}, device(0)));
  CHECK_THROWS_TEXT(DTypeError, "gather: expected float32 from every replica, got float64",
                    gather(List{a, a.to(device(1), DType::float64)}, device(0)));
  CHECK_THROWS_TEXT(IndexError, "gather", gather(List{a, a.to(device(1))}, device(0), 2));
  CHECK_THROWS_TEXT(DeviceError, "expected one of cpu:0*got cpu:63",
                    gather(List{a}, Device("cpu:63")));
}

TEST_CASE("gather: structured outputs keep their types", "[gather]") {
  for (int n = 1; n <= device_count(); ++n) {
    std::vector<Output> outputs;
    std::vector<std::tuple<Tensor, std::deque<std::pair<Tensor, int>>>> nested;
    List flat;
    for (int i = 0; i < n; ++i) {
      outputs.push_back({part_of(i),
                         {part_of(i, 10), part_of(i, 20)},
                         {{"b", part_of(i, 30)}, {"a", part_of(i, 40)}},
                         part_of(i, 50),
                         7 + i});
      nested.push_back({part_of(i), {{part_of(i), i}}});
      flat.push_back(part_of(i));
    }
    const Output y = gather(outputs, device(0));
    const Tensor plain = gather(flat, device(0));
    CHECK(plain.shape() == Shape{n * (n + 1) / 2, 2});
    CHECK(equal(y.logits, plain));
    CHECK(equal(y.hidden.at(1), plain + 20.0));
    CHECK(equal(y.named.at("b"), plain + 30.0));
    CHECK(equal(y.named.at("a"), plain + 40.0));
    CHECK(equal(y.extra.value(), plain + 50.0));
    CHECK(y.steps == 7);  // plain fields are the first replica's
    CHECK(equal(std::get<1>(gather(nested, device(0))).at(0).first, plain));
  }
}

TEST_CASE("gather: differences of structure; the first decides about none", "[gather][errors]") {
  if (device_count() < 2) return;
  const Tensor a = part_of(0), b = part_of(1);
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure from every replica, got*'z'*replica 1",
                    gather(std::vector<Map>{{{"x", a}}, {{"z", b}}}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure*replica 1*expected 1 elements, got 2",
                    gather(std::vector<List>{{a}, {b, b}}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure*replica 1*expected 2 elements, got 1",
                    gather(std::vector<List>{{a, a}, {b}}, device(0)));
  using Maybe = std::tuple<std::optional<Tensor>, Tensor, std::optional<List>, Tensor>;
  const Maybe none{std::nullopt, Tensor(), std::nullopt, a}, all{b, b, List{b}, b};
  const auto& [first, second, third, last] = gather(std::vector<Maybe>{none, all}, device(0));
  CHECK_FALSE(first.has_value());
  CHECK_FALSE(second.defined());
  CHECK_FALSE(third.has_value());
  CHECK(last.size(0) == 3);
  const Maybe all0{a, a, List{a}, a}, empty1{std::nullopt, b, List{b}, b},
      undefined1{b, Tensor(), List{b}, b};
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure*replica 1 at '0': empty there",
                    gather(std::vector<Maybe>{all0, empty1}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected a defined tensor, got an undefined one ('1' of replica 1)",
                    gather(std::vector<Maybe>{all0, undefined1}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected an output with a defined tensor, got none from replica 0",
                    gather(List{Tensor(), Tensor()}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError, "gather: expected an output with a defined tensor",
                    gather(std::vector<Maybe>{Maybe(), Maybe()}, device(0)));
}

TEST_CASE("gather: without gradient recording there is no history", "[gather]") {
  List parts;
  for (int i = 0; i < device_count(); ++i) parts.push_back(part_of(i).requires_grad_());
  CHECK(gather(parts, device(0)).requires_grad());
  const NoGrad guard;
  CHECK((device_count() == 1 || !gather(parts, device(0)).requires_grad()));
}

}  // namespace braid::test::on_device
