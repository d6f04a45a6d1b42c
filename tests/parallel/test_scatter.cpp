// scatter: the chunks, the traversed types, and gradients.
#include <algorithm>
#include <unordered_map>

#include "group.hpp"

namespace braid::test::on_device {

using parallel::scatter;

namespace {

using Sizes64 = std::vector<std::int64_t>;
using List = std::vector<Tensor>;
using Map = std::map<std::string, Tensor>;

struct Batch {
  Tensor image, label;
  std::string name;
  std::optional<Tensor> mask;
  List list;
  Map map;
  std::pair<Tensor, int> pair;
  std::array<Tensor, 1> array;
  std::unordered_map<int, Tensor> hashed;
  // nothing to split
  List no_list = {};
  Map no_map = {};
  std::tuple<> nothing = {};
  std::optional<Tensor> no_mask = {};
  Tensor undefined = {};
  BRAID_FIELDS(image, label, name, mask, list, map, pair, array, hashed, no_list, no_map, nothing,
               no_mask, undefined)
};

Sizes64 rows(const std::vector<Tensor>& parts) {
  Sizes64 sizes;
  for (const Tensor& t : parts) sizes.push_back(t.size(0));
  return sizes;
}

/// Scatters from a device along every dim: chunks, gradients, and gradients of gradients.
void check_scatter(Device from) {
  for (const std::vector<Device>& ids : orders()) {
    for (const int dim : {0, 1, -1}) {
      const Tensor x = random_tensor({5, 7}, DType::float64, from).requires_grad_();
      const std::vector<Tensor> parts = scatter(x, ids, dim);
      std::vector<Tensor> seeds;
      for (std::size_t i = 0; i < parts.size(); ++i)
        seeds.push_back(random_tensor(sizes_of(parts[i].shape()), DType::float64, ids[i], i + 5));
      if (ids.size() > 1) CHECK_FALSE(parts[0].is_leaf());
      backward(parts, seeds);
      CHECK(x.grad().device() == from);
      std::int64_t start = 0;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::int64_t size = parts[i].size(dim);
        CHECK(parts[i].device() == ids[i]);
        CHECK_SAME_BITS(parts[i].detach(), x.detach().narrow(dim, start, size));
        CHECK_SAME_BITS(x.grad().narrow(dim, start, size), seeds[i]);
        start += size;
      }
      CHECK(start == x.size(dim));
    }
    if (ids.size() < 2) continue;
    // an unused chunk gives zeros
    const Tensor x = counting({4, 4}, DType::float64, from).requires_grad_();
    const Tensor used = scatter(x, ids)[0];
    used.backward(ones_like(used) * 2.0);
    std::vector<double> expected(16, 0.0);
    std::fill_n(expected.begin(), used.numel(), 2.0);
    CHECK(numbers(x.grad()) == expected);
    const auto cubes = [&](const Tensor& t) {
      std::vector<Tensor> out;
      for (const Tensor& part : scatter(t, ids)) out.push_back(part * part * part);
      return out;
    };
    CHECK_GRAD(cubes, random_tensor({9, 2}, DType::float64, from).requires_grad_());
  }
}

}  // namespace

ACCEPTANCE("C1: scatter has a gradient") {
  for (const std::vector<Device>& ids : orders()) {
    if (ids.size() != 2) continue;
    const Tensor x = braid::ones({10}, {.requires_grad = true});
    const std::vector<Tensor> output = scatter(x, ids);
    REQUIRE(output.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(output[i].device() == ids[i]);
      CHECK(numbers(output[i]) == std::vector<double>(5, 1.0));
    }
    (output[0].to(ids[1]) + output[1]).backward(ones({5}, {.device = ids[1]}));
    CHECK(x.grad().device() == host());
    CHECK(numbers(x.grad()) == std::vector<double>(10, 1.0));
  }
}

ACCEPTANCE("T19: scatter from the host") { check_scatter(host()); }

ACCEPTANCE("T20: scatter from a device") {
  check_scatter(device(0));
  if (device_count() > 1) check_scatter(device(1));
  if (device_count() > 2) check_scatter(device(device_count() - 1));
}

TEST_CASE("scatter: the chunk table", "[scatter]") {
  struct Row {
    std::int64_t size;
    std::size_t n;
    Sizes64 chunks;
  };
  // The reference's numbers.
  const std::vector<Row> table{{30, 1, {30}},
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
                               {33, 32, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1}}};
  CHECK(table.size() == 25);
  for (const Row& row : table) {
    INFO(row.size << " rows over " << row.n);
    CHECK(chunk_sizes(row.size, row.n) == row.chunks);
    if (row.n > usize(device_count())) continue;
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
  const std::int64_t huge = std::int64_t{1} << 62, third = huge / 3 + 1;
  CHECK(chunk_sizes(huge, 3) == Sizes64{third, third, huge - 2 * third});
  CHECK_THROWS_TEXT(ArgumentError,
                    "chunk_sizes: expected size >= 0 and n >= 1, got size -1 and n 2",
                    chunk_sizes(-1, 2));
  CHECK_THROWS_TEXT(ArgumentError, "got size 3 and n 0", chunk_sizes(3, 0));
}

TEST_CASE("scatter: a chunk on its own device is a view, the others are copies", "[scatter]") {
  for (int n = 2; n <= device_count(); ++n) {
    for (int at = 0; at < n; ++at) {  // the device of the source
      const Tensor x = counting({2 * n, 3}, DType::float64, device(at));
      const std::vector<Tensor> parts = scatter(x, group(n));
      for (int i = 0; i < n; ++i) CHECK((parts[usize(i)].storage() == x.storage()) == (i == at));
    }
  }
}

TEST_CASE("scatter: containers are visited, plain fields go everywhere", "[scatter]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Tensor x = counting({16, 2});
    const std::vector<Batch> parts = scatter(Batch{.image = x,
                                                   .label = arange(16),
                                                   .name = "sixteen",
                                                   .mask = x,
                                                   .list = {x, x},
                                                   .map = {{"b", x}, {"a", x}},
                                                   .pair = {x, 7},
                                                   .array = {x},
                                                   .hashed = {{3, x}}},
                                             group(n));
    CHECK(parts.size() == chunk_sizes(16, usize(n)).size());
    std::int64_t start = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Batch& part = parts[i];
      const std::int64_t size = part.image.size(0);
      const std::vector<double> expected = numbers(x.narrow(0, start, size));
      REQUIRE(part.list.size() == 2);
      CHECK(part.list[0].id() == part.list[1].id());  // the same tensor is split once
      for (const Tensor& t : {part.image, part.mask.value(), part.list[0], part.map.at("a"),
                              part.map.at("b"), part.pair.first, part.array[0], part.hashed.at(3)})
        CHECK(numbers(t) == expected);
      for (const Tensor& t : tree::leaves(part))
        if (t.defined()) CHECK(t.device() == device(static_cast<int>(i)));
      CHECK(numbers(part.label) == numbers(arange(start, start + size)));
      CHECK(part.label.dtype() == DType::int64);
      CHECK(part.name == "sixteen");
      CHECK(part.pair.second == 7);
      CHECK(part.no_list.empty());
      CHECK(part.no_map.empty());
      CHECK_FALSE(part.no_mask.has_value());
      CHECK_FALSE(part.undefined.defined());
      start += size;
    }
    CHECK(start == 16);
    // without anything to split there is one call, on the first device
    CHECK(scatter(std::tuple<>(), group(n)).size() == 1);
    CHECK(scatter(std::tuple(1, std::string("a")), group(n)).size() == 1);
    CHECK(scatter(tensor(2.0), group(n)).size() == 1);
    CHECK(scatter(Tensor(), group(n)).size() == 1);
  }
  // A source with another memory layout.
  const Tensor t = counting({6, 8}).t();
  const Tensor last = scatter(t, devices(), -1).back();
  CHECK(numbers(last) == numbers(t.narrow(1, 6 - last.size(1), last.size(1))));
}

TEST_CASE("scatter: different numbers of chunks are an error that names both", "[scatter]") {
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
    // Sizes may differ if the numbers of chunks are equal.
    CHECK(scatter(std::tuple(counting({2 * n, 1}), counting({2 * n - 1, 1})), group(n)).size() ==
          usize(n));
  }
}

TEST_CASE("scatter: tensors without dimensions go to every device", "[scatter]") {
  for (int n = 1; n <= device_count(); ++n) {
    const Tensor x = counting({n, 2}), scale = tensor(3.0, {.requires_grad = true});
    const auto parts = scatter(std::pair(x, scale), group(n));
    REQUIRE(parts.size() == usize(n));
    Tensor total = tensor(0.0);
    for (int i = 0; i < n; ++i) {
      const auto& [rows_i, scale_i] = parts[usize(i)];
      CHECK(scale_i.dim() == 0);
      CHECK(scale_i.device() == device(i));
      CHECK(scale_i.item<double>() == 3.0);
      total = total + (rows_i * scale_i).sum().to(device(0));
    }
    total.backward();
    CHECK(scale.grad().item<double>() == n * (2.0 * n - 1));  // 0 + 1 + … + 2n-1
  }
}

TEST_CASE("scatter: without gradient recording there is no history", "[scatter]") {
  const Tensor x = counting({8, 2}).requires_grad_();
  const NoGrad guard;
  for (const Tensor& part : scatter(x, devices()))
    CHECK((part.id() == x.id() || !part.requires_grad()));
  for (const Tensor& part : scatter(arange(8), devices())) CHECK_FALSE(part.requires_grad());
}

TEST_CASE("scatter: wrong devices and dims are refused by text", "[scatter][errors]") {
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
