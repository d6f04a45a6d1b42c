#include <braid/parallel/scatter.hpp>

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/gradcheck.hpp"

namespace braid::test::on_device {

using parallel::scatter;

namespace {

using Sizes64 = std::vector<std::int64_t>;

struct Batch {
  Tensor image, label;
  std::string name;
  std::optional<Tensor> mask;
  BRAID_FIELDS(image, label, name, mask)
};

Sizes64 rows(const std::vector<Tensor>& parts) {
  Sizes64 sizes;
  for (const Tensor& t : parts) sizes.push_back(t.size(0));
  return sizes;
}

}  // namespace

TEST_CASE("3.1: the chunk table", "[parallel][scatter]") {
  struct Row {
    std::int64_t size;
    std::size_t n;
    Sizes64 chunks;
  };
  // The 25 rows of the reference numbers.
  const std::vector<Row> table{
      {30, 1, {30}},
      {30, 2, {15, 15}},
      {30, 3, {10, 10, 10}},
      {30, 4, {8, 8, 8, 6}},
      {30, 8, {4, 4, 4, 4, 4, 4, 4, 2}},
      {10, 1, {10}},
      {10, 2, {5, 5}},
      {10, 3, {4, 4, 2}},
      {10, 4, {3, 3, 3, 1}},
      {10, 8, {2, 2, 2, 2, 2}},
      {9, 8, {2, 2, 2, 2, 1}},
      {9, 4, {3, 3, 3}},
      {5, 4, {2, 2, 1}},
      {5, 3, {2, 2, 1}},
      {5, 2, {3, 2}},
      {17, 8, {3, 3, 3, 3, 3, 2}},
      {36, 7, {6, 6, 6, 6, 6, 6}},
      {1, 2, {1}},
      {1, 8, {1}},
      {0, 2, {0, 0}},
      {13, 2, {7, 6}},
      {3, 2, {2, 1}},
      {7, 3, {3, 3, 1}},
      {100, 8, {13, 13, 13, 13, 13, 13, 13, 9}},
      {33, 32, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1}},
  };
  CHECK(table.size() == 25);
  for (const Row& row : table) {
    INFO(row.size << " rows over " << row.n);
    CHECK(parallel::chunk_sizes(row.size, row.n) == row.chunks);
    if (row.n > static_cast<std::size_t>(device_count())) continue;
    const Tensor x = counting({row.size, 2});
    const std::vector<Tensor> parts = scatter(x, group(static_cast<int>(row.n)));
    CHECK(rows(parts) == row.chunks);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK(parts[i].device() == device(static_cast<int>(i)));
      CHECK(numbers(parts[i]) == numbers(x.narrow(0, start, row.chunks[i])));
      start += row.chunks[i];
    }
  }
  const std::int64_t huge = std::int64_t{1} << 62;
  CHECK(parallel::chunk_sizes(huge, 3) ==
        Sizes64{huge / 3 + 1, huge / 3 + 1, huge - 2 * (huge / 3 + 1)});
  CHECK_THROWS_TEXT(ArgumentError,
                    "chunk_sizes: expected size >= 0 and n >= 1, got size -1 and n 2",
                    parallel::chunk_sizes(-1, 2));
  CHECK_THROWS_TEXT(ArgumentError, "got size 3 and n 0", parallel::chunk_sizes(3, 0));
}

TEST_CASE("3.1: a chunk on its own device is a view, the others are copies",
          "[parallel][scatter]") {
  for (int n = 2; n <= device_count(); ++n) {
    for (int at = 0; at < n; ++at) {  // where the source is
      const Tensor x = counting({2 * n, 3}, DType::float64, device(at));
      const std::vector<Tensor> parts = scatter(x, group(n));
      for (int i = 0; i < n; ++i)
        CHECK((parts[static_cast<std::size_t>(i)].storage() == x.storage()) == (i == at));
    }
  }
}

TEST_CASE("3.4: containers are walked, plain fields go to every device", "[parallel][scatter]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Tensor x = counting({16, 2});
    const Batch batch{x, arange(16), "sixteen", x};
    const std::vector<Batch> parts = scatter(batch, group(n));
    const auto m = parts.size();
    CHECK(m == parallel::chunk_sizes(16, static_cast<std::size_t>(n)).size());
    const auto nested =
        scatter(std::tuple(std::vector<Tensor>{x, x},
                           std::map<std::string, Tensor>{{"b", x}, {"a", x}}, std::pair(x, 7),
                           std::array<Tensor, 1>{x}, std::unordered_map<int, Tensor>{{3, x}}),
                group(n));
    REQUIRE(nested.size() == m);
    std::int64_t start = 0;
    for (std::size_t i = 0; i < m; ++i) {
      const std::int64_t size = parts[i].image.size(0);
      const std::vector<double> expected = numbers(x.narrow(0, start, size));
      CHECK(numbers(parts[i].image) == expected);
      CHECK(numbers(parts[i].label) == numbers(arange(start, start + size)));
      CHECK(parts[i].label.dtype() == DType::int64);
      CHECK(parts[i].name == "sixteen");
      CHECK(numbers(parts[i].mask.value()) == expected);
      const auto& [list, map, pair, array, hashed] = nested[i];
      CHECK(list.size() == 2);
      CHECK(numbers(list[1]) == expected);
      CHECK(numbers(map.at("a")) == expected);
      CHECK(numbers(pair.first) == expected);
      CHECK(pair.second == 7);
      CHECK(numbers(array[0]) == expected);
      CHECK(hashed.at(3).device() == device(static_cast<int>(i)));
      CHECK(list[0].id() == list[1].id());  // the same tensor is cut once
      start += size;
    }
    CHECK(start == 16);
  }
  // A source in other memory order, and other dims.
  const Tensor t = counting({6, 8}).t();
  const std::vector<Tensor> parts = scatter(t, devices(), -1);
  CHECK(numbers(parts.back()) ==
        numbers(t.narrow(1, 6 - parts.back().size(1), parts.back().size(1))));
}

TEST_CASE("3.5: empty containers do not count", "[parallel][scatter]") {
  for (int n = 1; n <= device_count(); ++n) {
    const auto parts =
        scatter(std::tuple(counting({8, 1}), std::vector<Tensor>{}, std::map<std::string, Tensor>{},
                           std::tuple<>{}, std::optional<Tensor>{}, Tensor()),
                group(n));
    CHECK(parts.size() == parallel::chunk_sizes(8, static_cast<std::size_t>(n)).size());
    for (const auto& part : parts) {
      CHECK(std::get<1>(part).empty());
      CHECK(std::get<2>(part).empty());
      CHECK_FALSE(std::get<4>(part).has_value());
      CHECK_FALSE(std::get<5>(part).defined());
    }
  }
}

TEST_CASE("3.6: different numbers of chunks are an error that names both; plain values follow",
          "[parallel][scatter][errors]") {
  if (device_count() < 2) return;
  const Tensor x = counting({30, 1}), y = counting({1, 1});
  CHECK_THROWS_TEXT(ShapeError,
                    "scatter: expected the same number of chunks along dim 0 over 2 devices*got 2 "
                    "for '0' (size 30) and 1 for '1.a' (size 1)",
                    scatter(std::tuple(x, std::map<std::string, Tensor>{{"a", y}}), group(2)));
  for (int n = 2; n <= device_count(); ++n) {
    const auto parts = scatter(std::tuple(counting({2, 1}), 5, std::string("text")), group(n));
    CHECK(parts.size() == 2);
    for (const auto& part : parts) CHECK(std::get<1>(part) == 5);
    // Sizes may differ as long as the numbers of chunks agree.
    CHECK(scatter(std::tuple(counting({2 * n, 1}), counting({2 * n - 1, 1})), group(n)).size() ==
          static_cast<std::size_t>(n));
  }
}

TEST_CASE("3.7: tensors without dimensions go to every device; their gradient is the sum",
          "[parallel][scatter]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Tensor x = counting({n, 2}), scale = tensor(3.0, {.requires_grad = true});
    const auto parts = scatter(std::pair(x, scale), group(n));
    REQUIRE(parts.size() == static_cast<std::size_t>(n));
    Tensor total = tensor(0.0);
    for (int i = 0; i < n; ++i) {
      const auto& [rows_i, scale_i] = parts[static_cast<std::size_t>(i)];
      CHECK(scale_i.dim() == 0);
      CHECK(scale_i.device() == device(i));
      CHECK(scale_i.item<double>() == 3.0);
      total = total + (rows_i * scale_i).sum().to(device(0));
    }
    total.backward();
    CHECK(scale.grad().item<double>() == n * (2.0 * n - 1));  // 0 + 1 + … + 2n-1
  }
}

TEST_CASE("3.8: nothing to cut is one call on the first device", "[parallel][scatter]") {
  for (int n = 1; n <= device_count(); ++n) {
    CHECK(scatter(std::tuple<>(), group(n)).size() == 1);
    CHECK(scatter(std::tuple(1, std::string("a")), group(n)).size() == 1);
    const std::vector<Tensor> scalar = scatter(tensor(2.0), group(n));
    CHECK(scalar.size() == 1);
    CHECK(scatter(Tensor(), group(n)).size() == 1);
  }
}

TEST_CASE("3.13: the gradient of scatter is the joined gradients, on the input's device",
          "[parallel][scatter][autograd]") {
  for (int n = 1; n <= device_count(); ++n) {
    for (int dim : {0, 1, -1}) {
      for (int at : {0, device_count() - 1}) {
        const Tensor x = random_tensor({5, 7}, DType::float64, device(at)).requires_grad_();
        const std::vector<Tensor> parts = scatter(x, group(n), dim);
        std::vector<Tensor> seeds;
        for (std::size_t i = 0; i < parts.size(); ++i)
          seeds.push_back(
              random_tensor(sizes_of(parts[i].shape()), DType::float64, parts[i].device(), i + 5));
        if (n > 1) CHECK_FALSE(parts[0].is_leaf());
        backward(parts, seeds);
        CHECK(x.grad().device() == device(at));
        std::int64_t start = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
          CHECK_SAME_BITS(x.grad().narrow(dim, start, parts[i].size(dim)), seeds[i]);
          start += parts[i].size(dim);
        }
      }
    }
  }
}

TEST_CASE("3.13, 11.4: an unused chunk gives zeros", "[parallel][scatter][autograd]") {
  if (device_count() < 2) return;
  const Tensor x = counting({4, 4}).requires_grad_();
  const std::vector<Tensor> parts = scatter(x, group(2));
  CHECK(parts[0].shape() == Shape{2, 4});
  CHECK(numbers(parts[1]) == std::vector<double>{8, 9, 10, 11, 12, 13, 14, 15});
  parts[0].backward(full({2, 4}, 2));
  CHECK(numbers(x.grad()) == std::vector<double>{2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("3.13: gradients of gradients through scatter", "[parallel][scatter][autograd]") {
  for (int n : {2, 3, 8}) {
    if (n > device_count()) continue;
    for (const Device at : {device(0), device(n - 1)}) {
      const auto f = [n](const Tensor& x) {
        std::vector<Tensor> out;
        for (const Tensor& part : scatter(x, group(n))) out.push_back(part * part * part);
        return out;
      };
      CHECK_GRAD(f, random_tensor({9, 2}, DType::float64, at).requires_grad_());
    }
  }
}

TEST_CASE("scatter: without gradient recording there is no history", "[parallel][scatter]") {
  const Tensor x = counting({8, 2}).requires_grad_();
  const NoGrad guard;
  for (const Tensor& part : scatter(x, devices()))
    CHECK((part.id() == x.id() || !part.requires_grad()));
  const Tensor integers = arange(8);
  for (const Tensor& part : scatter(integers, devices())) CHECK_FALSE(part.requires_grad());
}

TEST_CASE("scatter: wrong devices and dims are refused by text", "[parallel][scatter][errors]") {
  const Tensor x = counting({8, 2});
  CHECK_THROWS_TEXT(ArgumentError, "scatter: expected at least one device, got none",
                    scatter(x, {}));
  CHECK_THROWS_TEXT(DeviceError, "expected one of cpu:0*got cpu:63",
                    scatter(x, {Device("cpu:63")}));
  CHECK_THROWS_TEXT(DeviceError, "scatter: expected each device once, got cpu:0 twice",
                    scatter(x, {Device("cpu:0"), Device("cpu:0")}));
  CHECK_THROWS_TEXT(IndexError, "scatter*2", scatter(x, {device(0)}, 2));
  CHECK_THROWS_TEXT(DeviceError, "devices: expected indices from 0 to*got 64", scatter(x, {0, 64}));
}

}  // namespace braid::test::on_device
