// all_reduce, all_gather and reduce_scatter, in groups of 1 to 8 and by whoever moves the bytes,
// against plain loops in double.
#include <functional>
#include <memory>

#include <braid/core/native_device.hpp>
#include <braid/parallel/communicator.hpp>

#include "communicator/local.hpp"
#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"
#include "support/views.hpp"

namespace braid::test::on_device {

using parallel::BufferView;
using parallel::Communicator;

namespace {

// nothing, odd ones, more than a tile, enough to wake the workers
constexpr std::int64_t kCounts[] = {0, 1, 7, 65, 16385, 70001};

/// Item after item, a tensor for each rank.
using Items = std::vector<Tensor>;

/// Small whole numbers: sums of them are exact in every type and order.
Items whole_numbers(int n, DType type, std::int64_t times = 1) {
  Items items;
  for (std::size_t i = 0; i < std::size(kCounts); ++i)
    for (int rank = 0; rank < n; ++rank) {
      std::vector<double> v(static_cast<std::size_t>(kCounts[i] * times));
      for (std::size_t at = 0; at < v.size(); ++at)
        v[at] = static_cast<double>((at * 3 + i + static_cast<std::size_t>(rank) * 5) % 17) - 8;
      items.push_back(tensor(v, {.device = device(rank)}).to(type));
    }
  return items;
}

Items filled(int n, DType type, std::int64_t times) {
  Items items;
  for (const std::int64_t count : kCounts)
    for (int rank = 0; rank < n; ++rank)
      items.push_back(full({count * times}, 99, {.device = device(rank), .dtype = type}));
  return items;
}

/// Every way to form a group of n: straight, from copies, and over NCCL where that can be.
void for_each_group(const std::function<void(Communicator&, int)>& f) {
  for (int n = 1; n <= device_count(); ++n) {
    for (const bool stage : {false, true}) {
      INFO(n << " devices, " << (stage ? "staged" : "straight"));
      parallel::LocalCommunicator local(group(n), stage);
      f(local, n);
    }
    NativeDevice* const first = native_device(device(0));
    if (first == nullptr || !emulated() ||
        (n > 1 && first->gpu() == native_device(device(1))->gpu()))
      continue;
    INFO(n << " devices, nccl");
    f(*parallel::make_nccl_communicator(group(n)), n);
  }
}

std::vector<double> sum_of(const Items& items, std::size_t first, int n) {
  std::vector<double> sum(static_cast<std::size_t>(items[first].numel()), 0.0);
  for (int rank = 0; rank < n; ++rank) {
    const std::vector<double> x = numbers(items[first + static_cast<std::size_t>(rank)]);
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += x[at];
  }
  return sum;
}

}  // namespace

TEST_CASE("collectives: all_reduce gives everybody the sum", "[parallel][communicator]") {
  for (const DType type : {DType::float32, DType::float64, DType::float16, DType::bfloat16})
    for_each_group([&](Communicator& communicator, int n) {
      INFO(type);
      const Items items = whole_numbers(n, type);
      std::vector<std::vector<double>> expected;
      for (std::size_t i = 0; i < items.size(); i += static_cast<std::size_t>(n))
        expected.push_back(sum_of(items, i, n));
      communicator.all_reduce(views_of(items));
      for (std::size_t i = 0; i < items.size(); ++i)
        if (numbers(items[i]) != expected[i / static_cast<std::size_t>(n)]) FAIL("tensor " << i);
    });
}

TEST_CASE("collectives: all_gather gives everybody all parts in rank order",
          "[parallel][communicator]") {
  for (const DType type :
       {DType::float32, DType::float64, DType::bfloat16, DType::int64, DType::bool_})
    for_each_group([&](Communicator& communicator, int n) {
      INFO(type);
      const Items items = whole_numbers(n, type), results = filled(n, type, n);
      communicator.all_gather(views_of(items), views_of(results));
      std::vector<double> expected;
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (i % static_cast<std::size_t>(n) == 0) {  // the next item's
          expected.clear();
          for (std::size_t rank = 0; rank < static_cast<std::size_t>(n); ++rank) {
            const std::vector<double> x = numbers(items[i + rank]);
            expected.insert(expected.end(), x.begin(), x.end());
          }
        }
        if (numbers(results[i]) != expected) FAIL("tensor " << i);
      }
    });
}

TEST_CASE("collectives: reduce_scatter gives rank r part r of the sum, and only reads the rest",
          "[parallel][communicator]") {
  for (const DType type : {DType::float32, DType::float64, DType::float16})
    for_each_group([&](Communicator& communicator, int n) {
      INFO(type);
      const Items items = whole_numbers(n, type, n), results = filled(n, type, 1);
      Items before;
      for (const Tensor& t : items) before.push_back(t.clone());
      communicator.reduce_scatter(views_of(items), views_of(results));
      std::vector<double> sum;
      for (std::size_t i = 0; i < items.size(); ++i) {
        const std::size_t rank = i % static_cast<std::size_t>(n);
        if (rank == 0) sum = sum_of(items, i, n);
        const auto count = static_cast<std::ptrdiff_t>(results[i].numel()),
                   from = static_cast<std::ptrdiff_t>(rank) * count;
        if (numbers(results[i]) !=
            std::vector<double>(sum.begin() + from, sum.begin() + from + count))
          FAIL("tensor " << i);
        CHECK_SAME_BITS(items[i], before[i]);
      }
    });
}

TEST_CASE("collectives: in place, a rank's part is a part of the whole",
          "[parallel][communicator]") {
  constexpr std::int64_t kPart = 1003;
  for_each_group([&](Communicator& communicator, int n) {
    Items gathered, scattered;
    std::vector<BufferView> gather_parts, scatter_parts;
    const auto part = [&](const Tensor& whole, int rank) {
      return BufferView{static_cast<float*>(whole.id()->data()) + rank * kPart, kPart,
                        whole.dtype(), whole.device()};
    };
    for (int rank = 0; rank < n; ++rank) {
      gathered.push_back(full({n * kPart}, rank + 1, {.device = device(rank)}));
      scattered.push_back(full({n * kPart}, rank + 1, {.device = device(rank)}));
      gather_parts.push_back(part(gathered.back(), rank));
      scatter_parts.push_back(part(scattered.back(), rank));
    }
    communicator.all_gather(gather_parts, views_of(gathered));
    communicator.reduce_scatter(views_of(scattered), scatter_parts);
    std::vector<double> all;
    for (int rank = 0; rank < n; ++rank) all.insert(all.end(), kPart, rank + 1);
    for (int rank = 0; rank < n; ++rank) {
      CHECK(numbers(gathered[static_cast<std::size_t>(rank)]) == all);
      const Tensor own = scattered[static_cast<std::size_t>(rank)].narrow(0, rank * kPart, kPart);
      CHECK(numbers(own) == std::vector<double>(kPart, n * (n + 1) / 2));
    }
  });
}

TEST_CASE("collectives: sums have reduce's order, to the last bit", "[parallel][communicator]") {
  for (int n = 1; n <= device_count(); ++n)
    for (const bool stage : {false, true}) {
      INFO(n << " devices");
      parallel::LocalCommunicator local(group(n), stage);
      Items items, copies, results;
      constexpr std::int64_t kPart = 777;
      for (int rank = 0; rank < n; ++rank) {
        items.push_back(random_tensor({n * kPart}, DType::float32, device(rank),
                                      static_cast<std::uint64_t>(rank + 7), -1e3, 1e3));
        copies.push_back(items.back().clone());
        results.push_back(zeros({kPart}, {.device = device(rank)}));
      }
      const Tensor sum = zeros({n * kPart}, {.device = device(0)});
      const BufferView result[] = {view_of(sum)};
      local.reduce(views_of(items), result);
      local.reduce_scatter(views_of(items), views_of(results));
      local.all_reduce(views_of(copies));
      for (int rank = 0; rank < n; ++rank) {
        CHECK_SAME_BITS(copies[static_cast<std::size_t>(rank)].to(device(0)), sum);
        CHECK_SAME_BITS(results[static_cast<std::size_t>(rank)].to(device(0)),
                        sum.narrow(0, rank * kPart, kPart).contiguous());
      }
    }
}

TEST_CASE("collectives: wrong buffers are refused by text, before anything changes",
          "[parallel][communicator][errors]") {
  if (device_count() < 2) return;
  const auto local = parallel::make_local_communicator(group(2));
  const Tensor a = ones({4}), b = zeros({4}, {.device = device(1)}), two = zeros({2}),
               two_b = zeros({2}, {.device = device(1)}), ints = ones({4}, {.dtype = DType::int32}),
               ints_b = ones({4}, {.device = device(1), .dtype = DType::int32});
  CHECK_THROWS_TEXT(ArgumentError, "all_reduce: expected 2 buffers an item*got 1",
                    local->all_reduce(views_of({a})));
  CHECK_THROWS_TEXT(ArgumentError, "all_reduce: expected 4 elements of float32 for item 0*got 2",
                    local->all_reduce(views_of({a, two_b})));
  CHECK_THROWS_TEXT(DTypeError, "all_reduce: expected floating point, got int32 for item 0",
                    local->all_reduce(views_of({ints, ints_b})));
  CHECK_THROWS_TEXT(ArgumentError, "all_gather: expected as many results as buffers, got 1 and 2",
                    local->all_gather(views_of({two, two_b}), views_of({a})));
  CHECK_THROWS_TEXT(ArgumentError, "all_gather: expected 8 elements of float32 for item 0*got 4",
                    local->all_gather(views_of({a, b}), views_of({a, b})));
  CHECK_THROWS_TEXT(ArgumentError,
                    here("all_gather: expected the buffer of item 0 on cpu:0, got cpu:1"),
                    local->all_gather(views_of({two_b, two}), views_of({a, b})));
  CHECK_THROWS_TEXT(ArgumentError,
                    "reduce_scatter: expected 4 elements of float32 for item 0*got 2",
                    local->reduce_scatter(views_of({a, two_b}), views_of({two, two_b})));
  CHECK_THROWS_TEXT(
      DTypeError, "reduce_scatter: expected floating point, got int32 for item 0",
      local->reduce_scatter(views_of({ints, ints_b}),
                            views_of({zeros({2}, {.dtype = DType::int32}),
                                      zeros({2}, {.device = device(1), .dtype = DType::int32})})));
  CHECK(numbers(b) == std::vector<double>(4, 0.0));
  CHECK(numbers(a) == std::vector<double>(4, 1.0));
}

}  // namespace braid::test::on_device
