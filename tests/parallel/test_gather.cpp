#include <braid/parallel/gather.hpp>

#include <deque>
#include <map>
#include <optional>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {

using parallel::gather;

namespace {

struct Output {
  Tensor logits;
  std::vector<Tensor> hidden;
  std::map<std::string, Tensor> named;
  std::optional<Tensor> extra;
  int steps = 0;
  BRAID_FIELDS(logits, hidden, named, extra, steps)
};

/// Replica i's tensor: i+1 rows.
Tensor part_of(int i, std::int64_t offset = 0) {
  return full({i + 1, 2}, static_cast<double>(i + offset), {.device = device(i)});
}

}  // namespace

TEST_CASE("6.3: scalars become a vector, with a warning once per process", "[parallel][gather]") {
  for (int n = 1; n <= device_count(); ++n) {
    std::vector<Tensor> scalars;
    std::vector<double> expected;
    for (int i = 0; i < n; ++i) {
      scalars.push_back(tensor(1.5 * i).to(device(i)));
      expected.push_back(1.5 * i);
    }
    for (const int dim : {0, 1}) {  // for any dim
      const Tensor y = gather(scalars, device(n - 1), dim);
      CHECK(y.shape() == Shape{n});
      CHECK(y.device() == device(n - 1));
      CHECK(numbers(y) == expected);
    }
  }
  CHECK(warnings_with("Was asked to gather along dimension 0, but all input tensors were scalars; "
                      "will instead unsqueeze and return a vector.") == 1);
}

TEST_CASE("6.5: numbers and texts become a vector, one of each replica", "[parallel][gather]") {
  const std::vector<double> numbers{0.5, 2.5, 1.0};
  CHECK(gather(numbers, device(0)) == numbers);
  const std::vector<std::string> texts{"a", "b"};
  CHECK(gather(texts, device(0)) == texts);
}

TEST_CASE("6.1: outputs are joined in device order, on the output device, along dim",
          "[parallel][gather]") {
  for (int n = 1; n <= device_count(); ++n) {
    for (const Device at : {device(0), device(n - 1)}) {
      for (const DType type : {DType::float32, DType::int64, DType::bool_}) {
        for (const int dim : {0, 1, -1}) {
          std::vector<Tensor> parts, there;
          for (int i = 0; i < n; ++i) {
            Sizes shape{3, 4};
            shape[dim == 0 ? 0 : 1] = i + 1;
            parts.push_back(
                random_tensor(shape, type, device(i), static_cast<std::uint64_t>(i + 1)));
            there.push_back(parts.back().to(at));
          }
          if (n > 1) parts[1] = parts[1].t().clone().t();  // a layout of its own
          const Tensor y = gather(parts, at, dim);
          CHECK(y.device() == at);
          CHECK(y.dtype() == type);
          std::int64_t start = 0;
          for (const Tensor& part : there) {
            CHECK(equal(y.narrow(dim, start, part.size(dim)), part));
            start += part.size(dim);
          }
          CHECK(start == y.size(dim));
        }
      }
    }
  }
  // Parts without rows count as nothing; large ones are copied by the workers.
  CHECK(numbers(gather(std::vector<Tensor>{empty({0, 2}), ones({1, 2})}, device(0))) ==
        std::vector<double>{1, 1});
  if (device_count() < 2) return;
  const Tensor large = random_tensor({600, 1000}),
               other = random_tensor({500, 1000}, DType::float32, device(1), 2);
  const Tensor y = gather(std::vector<Tensor>{large, other}, device(0));
  CHECK_SAME_BITS(y.narrow(0, 0, 600), large);
  CHECK_SAME_BITS(y.narrow(0, 600, 500), other.to(device(0)));
}

TEST_CASE("6.2: sizes must agree, and there must be something", "[parallel][gather][errors]") {
  CHECK_THROWS_TEXT(ArgumentError, "Expected at least one tensor to gather from",
                    gather(std::vector<Tensor>{}, device(0)));
  if (device_count() < 2) return;
  const Tensor a = zeros({3, 4}), b = zeros({2, 5}, {.device = device(1)}),
               c = zeros({2, 4, 1}, {.device = device(1)}), s = tensor(1.0).to(device(1));
  CHECK_THROWS_TEXT(ShapeError,
                    "Gather got an input of invalid size: got [2, 5], but expected [2, 4] (the "
                    "output of replica 1)",
                    gather(std::vector<Tensor>{a, b}, device(0)));
  CHECK_THROWS_TEXT(ShapeError,
                    "Gather got an input of invalid size: got [2, 4, 1], but expected [3, 4]",
                    gather(std::vector<Tensor>{a, c}, device(0)));
  CHECK_THROWS_TEXT(ShapeError, "Gather got an input of invalid size: got [], but expected [3, 4]",
                    gather(std::vector<Tensor>{a, s}, device(0)));
  CHECK_THROWS_TEXT(ShapeError, "Gather got an input of invalid size: got [3, 4], but expected []",
                    gather(std::vector<Tensor>{s, a}, device(0)));
  CHECK_THROWS_TEXT(ShapeError, "('0' of replica 1)",
                    gather(std::vector<std::tuple<Tensor>>{{a}, {b}}, device(0)));
  CHECK_THROWS_TEXT(DTypeError, "gather: expected float32 from every replica, got float64",
                    gather(std::vector<Tensor>{a, a.to(device(1), DType::float64)}, device(0)));
  CHECK_THROWS_TEXT(IndexError, "gather",
                    gather(std::vector<Tensor>{a, a.to(device(1))}, device(0), 2));
  CHECK_THROWS_TEXT(DeviceError, "expected one of cpu:0*got cpu:63",
                    gather(std::vector<Tensor>{a}, Device("cpu:63")));
}

TEST_CASE("6.4: structured outputs keep their types", "[parallel][gather]") {
  for (int n = 1; n <= device_count(); ++n) {
    std::vector<Output> outputs;
    std::vector<std::tuple<Tensor, std::deque<std::pair<Tensor, int>>>> nested;
    std::vector<Tensor> flat;
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

TEST_CASE("6.4: maps of different sizes, and other differences of structure",
          "[parallel][gather][errors]") {
  if (device_count() < 2) return;
  using Map = std::map<std::string, Tensor>;
  using List = std::vector<Tensor>;
  const Tensor a = part_of(0), b = part_of(1);
  CHECK_THROWS_TEXT(ArgumentError, "All dicts must have the same number of keys",
                    gather(std::vector<Map>{{{"x", a}, {"y", a}}, {{"x", b}}}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError, "All dicts must have the same number of keys",
                    gather(std::vector<Map>{{{"x", a}}, {{"x", b}, {"y", b}}}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure from every replica, got*'z'*replica 1",
                    gather(std::vector<Map>{{{"x", a}}, {{"z", b}}}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure*replica 1*expected 1 elements, got 2",
                    gather(std::vector<List>{{a}, {b, b}}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure*replica 1*expected 2 elements, got 1",
                    gather(std::vector<List>{{a, a}, {b}}, device(0)));
  using Maps = std::vector<Map>;
  CHECK_THROWS_TEXT(
      ArgumentError, "All dicts must have the same number of keys",
      gather(std::vector<Maps>{{{{"x", a}}, {}}, {{{"x", b}}, {{"y", b}}}}, device(0)));
}

TEST_CASE("6.4: the first replica decides about none", "[parallel][gather]") {
  if (device_count() < 2) return;
  using Maybe =
      std::tuple<std::optional<Tensor>, Tensor, std::optional<std::vector<Tensor>>, Tensor>;
  const Tensor a = part_of(0), b = part_of(1);
  const Maybe none{std::nullopt, Tensor(), std::nullopt, a}, some{b, b, std::vector<Tensor>{b}, b};
  const auto& [first, second, third, last] = gather(std::vector<Maybe>{none, some}, device(0));
  CHECK_FALSE(first.has_value());
  CHECK_FALSE(second.defined());
  CHECK_FALSE(third.has_value());
  CHECK(last.size(0) == 3);
  const Maybe some0{a, a, std::vector<Tensor>{a}, a},
      none1{std::nullopt, b, std::vector<Tensor>{b}, b},
      undefined1{b, Tensor(), std::vector<Tensor>{b}, b};
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected the same structure*replica 1 at '0': empty there",
                    gather(std::vector<Maybe>{some0, none1}, device(0)));
  CHECK_THROWS_TEXT(ArgumentError,
                    "gather: expected a defined tensor, got an undefined one ('1' of replica 1)",
                    gather(std::vector<Maybe>{some0, undefined1}, device(0)));
}

TEST_CASE("6.7: the gradient of gather is cut with the saved sizes, to the saved devices",
          "[parallel][gather][autograd]") {
  for (int n = 1; n <= device_count(); ++n) {
    for (const Device at : {device(0), device(n - 1)}) {
      std::vector<Tensor> parts;
      for (int i = 0; i < n; ++i)
        parts.push_back(random_tensor({i + 1, 2}, DType::float64, device(i)).requires_grad_());
      const Tensor y = gather(parts, at);
      const Tensor dy = random_tensor(sizes_of(y.shape()), DType::float64, at, 3);
      y.backward(dy);
      std::int64_t start = 0;
      for (const Tensor& part : parts) {
        CHECK(part.grad().device() == part.device());
        CHECK_SAME_BITS(part.grad(), dy.narrow(0, start, part.size(0)));
        start += part.size(0);
      }
    }
  }
}

TEST_CASE("6.7, 11.5: scalars get back gradients without dimensions",
          "[parallel][gather][autograd]") {
  if (device_count() < 2) return;
  const std::vector<Tensor> parts{tensor(1.0, {.requires_grad = true}),
                                  tensor(2.0).to(device(1)).requires_grad_()};
  const Tensor y = gather(parts, device(0));
  CHECK(y.shape() == Shape{2});
  y.backward(tensor({3.0, 5.0}));
  CHECK(parts[0].grad().dim() == 0);
  CHECK(parts[0].grad().item<double>() == 3.0);
  CHECK(parts[1].grad().dim() == 0);
  CHECK(parts[1].grad().item<double>() == 5.0);
  CHECK(parts[1].grad().device() == device(1));
}

TEST_CASE("6.7: gradients of gradients through gather", "[parallel][gather][autograd]") {
  if (device_count() < 2) return;
  for (const Device at : {device(0), device(1)}) {
    const Tensor a = random_tensor({2, 3}, DType::float64, device(0), 1).requires_grad_(),
                 b = random_tensor({2, 2}, DType::float64, device(1), 2).requires_grad_();
    const auto rows = [at](const Tensor& x, const Tensor& y) {
      const Tensor z = gather(std::vector<Tensor>{x * x, exp(y)}, at, 1);
      return z * z;
    };
    CHECK_GRAD(rows, a, b);
    const auto scalars = [at](const Tensor& x, const Tensor& y) {
      const Tensor z = gather(std::vector<Tensor>{(x * x).sum(), exp(y).sum()}, at);
      return z * z;
    };
    CHECK_GRAD(scalars, a, b);
  }
}

TEST_CASE("gather: without gradient recording, and of integers, there is no history",
          "[parallel][gather]") {
  std::vector<Tensor> parts;
  for (int i = 0; i < device_count(); ++i) parts.push_back(part_of(i).requires_grad_());
  CHECK(gather(parts, device(0)).requires_grad());
  const NoGrad guard;
  CHECK((device_count() == 1 || !gather(parts, device(0)).requires_grad()));
}

}  // namespace braid::test::on_device
