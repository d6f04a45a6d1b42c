// The collectives in groups of 1 to 8 devices, with all communicators, compared with plain loops.
#include <braid/core/internal/native_device.hpp>

#include "communicator/local.hpp"
#include "group.hpp"
#include "support/views.hpp"

namespace braid::test::on_device {

using parallel::BufferView;
using parallel::Communicator;
using parallel::LocalCommunicator;

namespace {

/// One tensor per rank, grouped by item; undefined if a rank has no data.
using Items = std::vector<Tensor>;
std::vector<BufferView> views(const Items& items) {
  std::vector<BufferView> list;
  for (const Tensor& t : items) list.push_back(t.defined() ? view_of(t) : BufferView{});
  return list;
}

/// No elements, odd numbers, more than a tile, and enough to wake the CPU's workers.
const std::vector<std::int64_t>& counts_of_items() {
  static const std::vector<std::int64_t> list{0, 1, 7, 65, 16385, cut(70001, 2051)};
  return list;
}

/// Small whole numbers, whose sums are exact in every type and order.
Items whole_numbers(int n, DType type, std::int64_t times = 1) {
  Items items;
  for (std::size_t i = 0; i < counts_of_items().size(); ++i)
    for (int rank = 0; rank < n; ++rank) {
      std::vector<double> v(usize(counts_of_items()[i] * times));
      for (std::size_t at = 0; at < v.size(); ++at)
        v[at] = static_cast<double>((at * 3 + i + usize(rank) * 5) % 17) - 8;
      items.push_back(tensor(v, {.device = device(rank)}).to(type));
    }
  return items;
}
Items filled(int n, DType type, std::int64_t times) {
  Items items;
  for (const std::int64_t count : counts_of_items())
    for (int rank = 0; rank < n; ++rank)
      items.push_back(full({count * times}, 99, {.device = device(rank), .dtype = type}));
  return items;
}
/// A tensor of random numbers for each rank.
Items random_numbers(int n, std::int64_t count) {
  Items items;
  for (int rank = 0; rank < n; ++rank)
    items.push_back(random_tensor({count}, DType::float32, device(rank),
                                  static_cast<std::uint64_t>(100 * rank + 1), -1e3, 1e3));
  return items;
}

/// Calls f with every kind of group of n: local, local from copies, and NCCL on emulated devices.
void for_each_group(const std::function<void(Communicator&, int)>& f) {
  for (int n = 1; n <= device_count(); ++n) {
    for (const bool stage : {false, true}) {
      INFO(n << " devices, " << (stage ? "staged" : "straight"));
      LocalCommunicator local(group(n), stage);
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

/// The numbers of an item's ranks, concatenated in rank order.
std::vector<double> all_of(const Items& items, std::size_t first, int n) {
  std::vector<double> all;
  for (std::size_t rank = 0; rank < usize(n); ++rank) {
    const std::vector<double> x = numbers(items[first + rank]);
    all.insert(all.end(), x.begin(), x.end());
  }
  return all;
}
std::vector<double> sum_of(const Items& items, std::size_t first, int n) {
  const std::vector<double> all = all_of(items, first, n);
  std::vector<double> sum(all.size() / usize(n), 0.0);
  for (std::size_t at = 0; at < all.size(); ++at) sum[at % sum.size()] += all[at];
  return sum;
}

/// Checks that every rank has the same numbers of each item.
void check_each_has(const Items& items, int n,
                    const std::function<std::vector<double>(std::size_t)>& numbers_of) {
  for (std::size_t first = 0; first < items.size(); first += usize(n)) {
    const std::vector<double> expected = numbers_of(first);
    for (std::size_t i = first; i < first + usize(n); ++i)
      if (numbers(items[i]) != expected) FAIL("tensor " << i);
  }
}

/// The sum in the documented order, computed in the type's own arithmetic.
template <class T> T tree_sum(const std::vector<T>& x, std::size_t first, std::size_t count) {
  if (count == 1) return x[first];
  std::size_t left = 1;
  while (2 * left < count) left *= 2;
  return tree_sum(x, first, left) + tree_sum(x, first + left, count - left);
}

}  // namespace

TEST_CASE("communicator: broadcast copies rank 0's bytes, in every type", "[communicator]") {
  for (const int n : {1, 2, 3, 5, 8}) {
    if (n > device_count()) break;
    for (const bool stage : {false, true}) {
      LocalCommunicator local(group(n), stage);
      CHECK(local.size() == n);
      Items items;
      for (const DType type :
           {DType::float32, DType::float64, DType::float16, DType::int64, DType::bool_})
        for (const std::int64_t count : {0, 1, 65, 70001})
          for (int rank = 0; rank < n; ++rank)
            items.push_back(
                random_tensor({count}, type, device(rank), static_cast<std::uint64_t>(rank + 1)));
      const Items before = copies_of(items);
      local.broadcast(views(items));
      for (std::size_t i = 0; i < items.size(); ++i)
        CHECK_SAME_BITS(items[i], before[i - i % usize(n)]);
    }
  }
}

TEST_CASE("communicator: reduce adds in the fixed tree, and only reads the parts",
          "[communicator]") {
  for (const int n : {1, 2, 3, 5, 8}) {
    if (n > device_count()) break;
    INFO(n << " devices");
    // Sizes around a tile (16 Ki), a staged tile (1 Mi) and a cache line, and enough in total to
    // wake the workers.
    std::vector<std::int64_t> counts{0, 1, 7, 16, 17, 1000, 16384, 16385, 150001};
    if (n == 3) counts.push_back(1048577);
    Items parts, sums, staged;
    for (const std::int64_t count : counts) {
      for (const Tensor& part : random_numbers(n, count)) parts.push_back(part);
      sums.push_back(full({count}, std::nan("")));
      staged.push_back(full({count}, std::nan("")));
    }
    const Items before = copies_of(parts);
    LocalCommunicator(group(n)).reduce(views(parts), views(sums));
    LocalCommunicator(group(n), true).reduce(views(parts), views(staged));
    check_same(parts, before);
    check_same(staged, sums);
    for (std::size_t item = 0; item < counts.size(); ++item) {
      std::vector<std::vector<float>> values;
      for (std::size_t rank = 0; rank < usize(n); ++rank)
        values.push_back(parts[item * usize(n) + rank].to_vector<float>());
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

TEST_CASE("communicator: reduce in place, of some ranks, and in 16 bits", "[communicator]") {
  const int n = device_count();
  for (const bool stage : {false, true}) {
    for (int present = 1; present < (1 << n); ++present) {  // which ranks have data
      Items item(usize(n));
      std::vector<double> expected(3, 0.0);
      for (int rank = 0; rank < n; ++rank) {
        if (!(present >> rank & 1)) continue;
        item[usize(rank)] =
            full({3}, std::pow(10.0, rank), {.device = device(rank), .dtype = DType::float64});
        for (double& x : expected) x += std::pow(10.0, rank);
      }
      const Tensor result = item[0].defined() ? item[0] : empty({3}, {.dtype = DType::float64});
      LocalCommunicator(group(n), stage).reduce(views(item), views({result}));
      if (numbers(result) != expected) FAIL("ranks " << present << ": " << result);
    }
  }
  if (n < 2) return;
  for (const DType type : {DType::float16, DType::bfloat16}) {
    const Items parts{full({70000}, 1.5, {.device = device(0), .dtype = type}),
                      full({70000}, 2.25, {.device = device(1), .dtype = type})};
    const Tensor sum = empty({70000}, {.dtype = type});
    LocalCommunicator(group(2)).reduce(views(parts), views({sum}));
    CHECK(numbers(sum) == std::vector<double>(70000, 3.75));
  }
}

TEST_CASE("communicator: all_reduce, all_gather and reduce_scatter", "[communicator]") {
  for (const DType type : {DType::float32, DType::float64, DType::float16, DType::bfloat16,
                           DType::int64, DType::bool_})
    for_each_group([&](Communicator& communicator, int n) {
      INFO(type);
      const Items items = whole_numbers(n, type), results = filled(n, type, n);
      communicator.all_gather(views(items), views(results));
      check_each_has(results, n, [&](std::size_t first) { return all_of(items, first, n); });
      if (!is_floating(type)) return;
      const Items before = copies_of(items);
      communicator.all_reduce(views(items));
      check_each_has(items, n, [&](std::size_t first) { return sum_of(before, first, n); });
      // rank r gets part r of the sum, and the rest is only read
      const Items wholes = whole_numbers(n, type, n), parts = filled(n, type, 1);
      const Items untouched = copies_of(wholes);
      communicator.reduce_scatter(views(wholes), views(parts));
      check_same(wholes, untouched);
      for (std::size_t i = 0; i < wholes.size(); i += usize(n))
        if (all_of(parts, i, n) != sum_of(wholes, i, n)) FAIL("item " << i / usize(n));
    });
}

TEST_CASE("communicator: all_to_all gives a rank its part of every buffer", "[communicator]") {
  for (const DType type : {DType::float32, DType::bfloat16, DType::int64, DType::bool_})
    for_each_group([&](Communicator& communicator, int n) {
      INFO(type);
      const Items wholes = whole_numbers(n, type, n), results = filled(n, type, n),
                  untouched = copies_of(wholes);
      communicator.all_to_all(views(wholes), views(results));
      check_same(wholes, untouched);
      for (std::size_t first = 0; first < wholes.size(); first += usize(n)) {
        const auto count = wholes[first].numel() / n;
        for (int rank = 0; rank < n; ++rank) {
          std::vector<double> expected;
          for (int from = 0; from < n; ++from) {
            const std::vector<double> x =
                numbers(wholes[first + usize(from)].narrow(0, rank * count, count));
            expected.insert(expected.end(), x.begin(), x.end());
          }
          if (numbers(results[first + usize(rank)]) != expected)
            FAIL("item " << first / usize(n) << ", rank " << rank);
        }
      }
    });
}

TEST_CASE("communicator: in place, a rank's part is a part of the whole", "[communicator]") {
  constexpr std::int64_t kPart = 1003;
  for_each_group([&](Communicator& communicator, int n) {
    Items gathered, scattered;
    std::vector<BufferView> gather_parts, scatter_parts;
    const auto part = [&](const Tensor& whole, int rank) {
      return BufferView{static_cast<float*>(whole.id()->data()) + rank * kPart, kPart,
                        whole.dtype(), whole.device()};
    };
    std::vector<double> all;
    for (int rank = 0; rank < n; ++rank) {
      gathered.push_back(full({n * kPart}, rank + 1.0, {.device = device(rank)}));
      scattered.push_back(full({n * kPart}, rank + 1.0, {.device = device(rank)}));
      gather_parts.push_back(part(gathered.back(), rank));
      scatter_parts.push_back(part(scattered.back(), rank));
      all.insert(all.end(), kPart, rank + 1);
    }
    communicator.all_gather(gather_parts, views(gathered));
    communicator.reduce_scatter(views(scattered), scatter_parts);
    for (int rank = 0; rank < n; ++rank) {
      CHECK(numbers(gathered[usize(rank)]) == all);
      const Tensor own = scattered[usize(rank)].narrow(0, rank * kPart, kPart);
      CHECK(numbers(own) == std::vector<double>(kPart, n * (n + 1) / 2));
    }
  });
}

TEST_CASE("communicator: all sums have reduce's order, to the last bit", "[communicator]") {
  for (int n = 1; n <= device_count(); ++n)
    for (const bool stage : {false, true}) {
      INFO(n << " devices");
      LocalCommunicator local(group(n), stage);
      constexpr std::int64_t kPart = 777;
      const Items items = random_numbers(n, n * kPart), copies = copies_of(items);
      Items results;
      for (int rank = 0; rank < n; ++rank)
        results.push_back(zeros({kPart}, {.device = device(rank)}));
      const Tensor sum = zeros({n * kPart}, {.device = device(0)});
      local.reduce(views(items), views({sum}));
      local.reduce_scatter(views(items), views(results));
      local.all_reduce(views(copies));
      for (int rank = 0; rank < n; ++rank) {
        CHECK_SAME_BITS(copies[usize(rank)], sum);
        CHECK_SAME_BITS(results[usize(rank)], sum.narrow(0, rank * kPart, kPart));
      }
    }
}

TEST_CASE("communicator: wrong buffers are refused, nothing changes", "[communicator]") {
  CHECK_THROWS_TEXT(ArgumentError,
                    "make_local_communicator: expected at least one device, got none",
                    parallel::make_local_communicator({}));
  CHECK_THROWS_TEXT(DeviceError, "expected one of cpu:0*got cpu:63",
                    parallel::make_local_communicator({Device("cpu:63")}));
  if (device_count() < 2) return;
  CHECK_THROWS_TEXT(DeviceError, here("expected each device once, got cpu:1 twice"),
                    parallel::make_local_communicator({device(0), device(1), device(1)}));
  const auto local = parallel::make_local_communicator(group(2));
  const auto on_second = [](std::int64_t n, DType type = DType::float32) {
    return zeros({n}, {.device = device(1), .dtype = type});
  };
  const Tensor a = ones({4}), b = on_second(4), shorter = on_second(3), two = zeros({2}),
               two_b = on_second(2), ints = ones({4}, {.dtype = DType::int32}),
               ints_b = on_second(4, DType::int32);
  const auto check_refused = [](const char* text, const auto& call) {
    CHECK_THROWS_TEXT(ArgumentError, here(text), call());
  };
  check_refused("broadcast: expected 2 buffers an item*got 1",
                [&] { local->broadcast(views({a})); });
  check_refused("broadcast: expected the buffer of item 0 on cpu:1, got cpu:0",
                [&] { local->broadcast(views({a, a})); });
  check_refused("broadcast: expected 4 elements of float32 for item 1 on cpu:1, got 3 of float32",
                [&] { local->broadcast(views({a, b, a, shorter})); });
  check_refused("expected 4 elements of float32 for item 0 on cpu:1, got 4 of int32",
                [&] { local->reduce(views({a, ints_b}), views({a})); });
  check_refused("reduce: expected 2 results, one for each item, got 1",
                [&] { local->reduce(views({a, b, a, b}), views({a})); });
  check_refused("reduce: expected data from at least one device for item 0, got none",
                [&] { local->reduce(views({Tensor(), Tensor()}), views({a})); });
  check_refused("all_reduce: expected 2 buffers an item*got 1",
                [&] { local->all_reduce(views({a})); });
  check_refused("all_reduce: expected 4 elements of float32 for item 0*got 2",
                [&] { local->all_reduce(views({a, two_b})); });
  check_refused("all_gather: expected as many results as buffers, got 1 and 2",
                [&] { local->all_gather(views({two, two_b}), views({a})); });
  check_refused("all_gather: expected 8 elements of float32 for item 0*got 4",
                [&] { local->all_gather(views({a, b}), views({a, b})); });
  check_refused("all_gather: expected the buffer of item 0 on cpu:0, got cpu:1",
                [&] { local->all_gather(views({two_b, two}), views({a, b})); });
  check_refused("reduce_scatter: expected 4 elements of float32 for item 0*got 2",
                [&] { local->reduce_scatter(views({a, two_b}), views({two, two_b})); });
  check_refused("all_to_all: expected as many results as buffers, got 1 and 2",
                [&] { local->all_to_all(views({a, b}), views({a})); });
  check_refused("all_to_all: expected a multiple of 2 elements for item 0, got 3",
                [&] { local->all_to_all(views({zeros({3}), shorter}), views({a, b})); });
  check_refused("all_to_all: expected 4 elements of float32 for item 0 on cpu:1, got 2 of float32",
                [&] { local->all_to_all(views({a, b}), views({ones({4}), two_b})); });
  CHECK_THROWS_TEXT(DTypeError, "reduce: expected floating point, got int32 for item 0",
                    local->reduce(views({ints, ints_b}), views({ints})));
  CHECK_THROWS_TEXT(DTypeError, "all_reduce: expected floating point, got int32 for item 0",
                    local->all_reduce(views({ints, ints_b})));
  CHECK_THROWS_TEXT(DTypeError, "reduce_scatter: expected floating point, got int32 for item 0",
                    local->reduce_scatter(
                        views({ints, ints_b}),
                        views({zeros({2}, {.dtype = DType::int32}), on_second(2, DType::int32)})));
  CHECK(numbers(b) == std::vector<double>(4, 0.0));
  CHECK(numbers(a) == std::vector<double>(4, 1.0));
}

}  // namespace braid::test::on_device
