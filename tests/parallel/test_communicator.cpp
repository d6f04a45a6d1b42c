#include <braid/parallel/communicator.hpp>

#include <cmath>

#include "communicator/local.hpp"
#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"
#include "support/views.hpp"

namespace braid::test::on_device {

using parallel::BufferView;
using parallel::LocalCommunicator;

namespace {

/// parts[item][rank]
std::vector<BufferView> views_of(const std::vector<std::vector<Tensor>>& parts) {
  std::vector<BufferView> views;
  for (const auto& item : parts)
    for (const Tensor& t : item) views.push_back(t.defined() ? view_of(t) : BufferView{});
  return views;
}

/// The sum in the documented order, in the type's own arithmetic.
template <class T> T tree_sum(const std::vector<T>& x, std::size_t first, std::size_t count) {
  if (count == 1) return x[first];
  std::size_t left = 1;
  while (2 * left < count) left *= 2;
  return tree_sum(x, first, left) + tree_sum(x, first + left, count - left);
}

// Sizes around a tile (16 Ki), a staged tile (1 Mi) and a line, and enough in all to wake the
// workers.
std::vector<std::int64_t> counts_for(int n) {
  std::vector<std::int64_t> counts{0, 1, 7, 16, 17, 1000, 16384, 16385, 150001};
  if (n == 3) counts.push_back(1048577);
  return counts;
}

/// 1, 2, 3, 5, 8, as far as there are devices.
std::vector<int> group_sizes() {
  std::vector<int> sizes;
  for (const int n : {1, 2, 3, 5, 8})
    if (n <= device_count()) sizes.push_back(n);
  return sizes;
}

}  // namespace

TEST_CASE("communicator: broadcast copies rank 0's bytes, in every type, whoever moves them",
          "[parallel][communicator]") {
  for (const int n : group_sizes()) {
    for (const bool stage : {false, true}) {
      LocalCommunicator group_of(group(n), stage);
      CHECK(group_of.size() == n);
      std::vector<std::vector<Tensor>> parts;
      for (const DType type :
           {DType::float32, DType::float64, DType::float16, DType::int64, DType::bool_}) {
        for (const std::int64_t count : {0, 1, 65, 70001}) {
          parts.emplace_back();
          for (int rank = 0; rank < n; ++rank)
            parts.back().push_back(
                random_tensor({count}, type, device(rank), static_cast<std::uint64_t>(rank + 1)));
        }
      }
      const Tensor before = parts.back()[0].clone();
      group_of.broadcast(views_of(parts));
      CHECK_SAME_BITS(parts.back()[0], before);
      for (const auto& item : parts)
        for (int rank = 1; rank < n; ++rank)
          CHECK_SAME_BITS(item[static_cast<std::size_t>(rank)].to(device(0)), item[0]);
    }
  }
}

TEST_CASE("communicator: reduce adds in the fixed tree, to the last bit, and only reads the parts",
          "[parallel][communicator]") {
  for (const int n : group_sizes()) {
    INFO(n << " devices");
    std::vector<std::vector<Tensor>> parts;
    for (const std::int64_t count : counts_for(n)) {
      parts.emplace_back();
      for (int rank = 0; rank < n; ++rank)
        parts.back().push_back(random_tensor({count}, DType::float32, device(rank),
                                             static_cast<std::uint64_t>(100 * rank + 1), -1e3,
                                             1e3));
    }
    const std::vector<double> before = numbers(parts[5].back());
    std::vector<Tensor> sums, staged;
    for (const std::int64_t count : counts_for(n)) {
      sums.push_back(full({count}, std::nan("")));
      staged.push_back(full({count}, std::nan("")));
    }
    std::vector<BufferView> results, staged_results;
    for (const Tensor& t : sums) results.push_back(view_of(t));
    for (const Tensor& t : staged) staged_results.push_back(view_of(t));
    LocalCommunicator(group(n)).reduce(views_of(parts), results);
    LocalCommunicator(group(n), true).reduce(views_of(parts), staged_results);
    CHECK(numbers(parts[5].back()) == before);
    for (std::size_t item = 0; item < parts.size(); ++item) {
      CHECK_SAME_BITS(sums[item], staged[item]);
      std::vector<std::vector<float>> values;
      for (const Tensor& part : parts[item]) values.push_back(part.to_vector<float>());
      const std::vector<float> got = sums[item].to_vector<float>();
      std::size_t wrong = 0;
      std::vector<float> x(values.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        for (std::size_t part = 0; part < x.size(); ++part) x[part] = values[part][i];
        wrong += got[i] != tree_sum(x, 0, x.size());
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("communicator: reduce in place, and with ranks that have nothing",
          "[parallel][communicator]") {
  const int n = device_count();
  for (const bool stage : {false, true}) {
    for (int present = 1; present < (1 << n); ++present) {  // which ranks have data
      std::vector<Tensor> item(static_cast<std::size_t>(n));
      std::vector<double> expected(3, 0.0);
      for (int rank = 0; rank < n; ++rank) {
        if (!(present >> rank & 1)) continue;
        item[static_cast<std::size_t>(rank)] =
            full({3}, std::pow(10.0, rank), {.device = device(rank), .dtype = DType::float64});
        for (double& x : expected) x += std::pow(10.0, rank);
      }
      const Tensor result = item[0].defined() ? item[0] : empty({3}, {.dtype = DType::float64});
      const BufferView results[] = {view_of(result)};
      LocalCommunicator(group(n), stage).reduce(views_of({item}), results);
      if (numbers(result) != expected) FAIL("ranks " << present << ": " << result);
    }
  }
  SUCCEED();
}

TEST_CASE("communicator: float16 and bfloat16 are added", "[parallel][communicator]") {
  if (device_count() < 2) return;
  for (const DType type : {DType::float16, DType::bfloat16}) {
    const std::vector<std::vector<Tensor>> parts{
        {full({70000}, 1.5, {.device = device(0), .dtype = type}),
         full({70000}, 2.25, {.device = device(1), .dtype = type})}};
    const Tensor sum = empty({70000}, {.dtype = type});
    const BufferView results[] = {view_of(sum)};
    LocalCommunicator(group(2)).reduce(views_of(parts), results);
    CHECK(numbers(sum) == std::vector<double>(70000, 3.75));
  }
}

TEST_CASE("communicator: wrong buffers are refused by text, before anything changes",
          "[parallel][communicator][errors]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "make_local_communicator: expected at least one device, got none",
                    parallel::make_local_communicator({}));
  CHECK_THROWS_TEXT(DeviceError, "expected one of cpu:0*got cpu:63",
                    parallel::make_local_communicator({Device("cpu:63")}));
  if (device_count() < 2) return;
  CHECK_THROWS_TEXT(DeviceError, here("expected each device once, got cpu:1 twice"),
                    parallel::make_local_communicator({device(0), device(1), device(1)}));
  const auto group_of = parallel::make_local_communicator(group(2));
  const Tensor a = ones({4}), b = zeros({4}, {.device = device(1)}),
               shorter = zeros({3}, {.device = device(1)}),
               other = zeros({4}, {.device = device(1), .dtype = DType::int32});
  const BufferView result[] = {view_of(a)};
  CHECK_THROWS_TEXT(ArgumentError, "broadcast: expected 2 buffers an item*got 1",
                    group_of->broadcast(views_of({{a}})));
  CHECK_THROWS_TEXT(ArgumentError,
                    here("broadcast: expected the buffer of item 0 on cpu:1, got cpu:0"),
                    group_of->broadcast(views_of({{a, a}})));
  CHECK_THROWS_TEXT(
      ArgumentError,
      here("broadcast: expected 4 elements of float32 for item 1 on cpu:1, got 3 of float32"),
      group_of->broadcast(views_of({{a, b}, {a, shorter}})));
  CHECK_THROWS_TEXT(ArgumentError,
                    here("expected 4 elements of float32 for item 0 on cpu:1, got 4 of int32"),
                    group_of->reduce(views_of({{a, other}}), result));
  CHECK_THROWS_TEXT(ArgumentError, "reduce: expected 2 results, one for each item, got 1",
                    group_of->reduce(views_of({{a, b}, {a, b}}), result));
  CHECK_THROWS_TEXT(ArgumentError,
                    "reduce: expected data from at least one device for item 0, got none",
                    group_of->reduce(views_of({{Tensor(), Tensor()}}), result));
  const Tensor ints = ones({4}, {.dtype = DType::int32});
  const BufferView int_result[] = {view_of(ints)};
  CHECK_THROWS_TEXT(DTypeError, "reduce: expected floating point, got int32 for item 0",
                    group_of->reduce(views_of({{ints, other}}), int_result));
  CHECK(numbers(b) == std::vector<double>(4, 0.0));
  CHECK(numbers(a) == std::vector<double>(4, 1.0));
}

}  // namespace braid::test::on_device
