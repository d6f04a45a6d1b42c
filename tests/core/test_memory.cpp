// Tests of a device's memory as a program sees it: accounting, capacity, failing allocations, the
// state after an error, and the operation after it.
#include "shorthand.hpp"

namespace braid::test::on_device {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// Restores the allocator of a device at the end of a test.
struct Restore {
  Device device;
  ~Restore() {
    fail_allocation(device, 0);
    set_memory_capacity(device, 0);
  }
};

/// The forward and backward of a small training step: two layers and a loss. Leaves gradients in
/// w1, w2, table.
struct Scenario {
  Device device;
  Tensor table, w1, b1, w2, index, labels;
  explicit Scenario(Device d) : device(d) {
    const auto parameter = [&](const Sizes& s, std::uint64_t seed) {
      return random_tensor(s, DType::float32, device, seed).requires_grad_();
    };
    table = parameter({50, 40}, 1);
    w1 = parameter({30, 40}, 2);
    b1 = parameter({30}, 3);
    w2 = parameter({10, 30}, 4);
    index = (arange(64) * 0 + 7).to(device);
    labels = (arange(64) * 0 + 3).to(device);
  }
  double run() const {
    const Tensor h = relu(linear(embedding(table, index), w1, b1));
    const Tensor g = cat({h, exp(h * 0.1)}, 1).slice(1, 0, 60, 2);
    const Tensor loss = cross_entropy(linear(g, w2), labels) + mean(softmax(h)) + h.sum() * 1e-6;
    loss.backward();
    return loss.item<double>();
  }
  [[nodiscard]] std::vector<Tensor> parameters() const { return {table, w1, b1, w2}; }
  void zero_grad() const {
    for (const Tensor& p : parameters()) p.set_grad({});
  }
};

}  // namespace

TEST_CASE("memory: in_use follows the tensors, each device separately", "[memory]") {
  const Device one = there(), zero = here();
  const std::size_t base = memory_stats(one).in_use, other = memory_stats(zero).in_use;
  {
    const Tensor a = empty({1000}, {.device = one});
    const std::size_t with_a = memory_stats(one).in_use;
    CHECK(with_a >= base + 4000);
    CHECK(with_a < base + 8192);
    const Tensor view = a.slice(0, 0, 10), same = a.reshape({10, 100});
    CHECK(memory_stats(one).in_use == with_a);
    const Tensor b = empty({1 << 20}, {.device = one});
    CHECK(memory_stats(one).in_use >= with_a + 4 * kMiB);
  }
  CHECK(memory_stats(one).in_use == base);
  CHECK(memory_stats(zero).in_use == other);
  // A view keeps the whole storage alive.
  Tensor a = empty({1 << 18}, {.device = one});
  const Tensor view = a[5];
  a = Tensor();
  CHECK(memory_stats(one).in_use >= base + kMiB);
}

TEST_CASE("memory: peak, counts, cache", "[memory]") {
  const Device d = there();
  empty_cache(d);
  CHECK(memory_stats(d).cached == 0);
  reset_peak_memory(d);
  const MemoryStats before = memory_stats(d);
  CHECK(before.peak == before.in_use);
  { const Tensor a = empty({1 << 18}, {.device = d}), b = empty({1 << 18}, {.device = d}); }
  const MemoryStats after = memory_stats(d);
  CHECK(after.in_use == before.in_use);
  CHECK(after.peak >= before.in_use + 2 * kMiB);
  CHECK(after.allocations == before.allocations + 2);
  CHECK(after.releases == before.releases + 2);
  CHECK(after.cached >= 2 * kMiB);
  { const Tensor c = empty({1 << 18}, {.device = d}); }
  CHECK(memory_stats(d).hits == after.hits + 1);
  empty_cache(d);
  CHECK(memory_stats(d).cached == 0);
  reset_peak_memory(d);
  CHECK(memory_stats(d).peak == memory_stats(d).in_use);
  // A tensor without elements makes no request.
  const std::uint64_t requests = memory_stats(d).allocations;
  const Tensor none = empty({0, 7}, {.device = d});
  CHECK(memory_stats(d).allocations == requests);
}

TEST_CASE("memory: a request over the capacity says what was there, and the next operation works",
          "[memory][errors]") {
  const Device d = there();
  const Restore restore{d};
  const Tensor small = ones({100}, {.device = d});
  empty_cache(d);
  const std::size_t in_use = memory_stats(d).in_use, capacity = in_use + kMiB;
  set_memory_capacity(d, capacity);
  const std::uint64_t failures = memory_stats(d).failures;
  try {
    (void)empty({1 << 20}, {.device = d});
    FAIL("nothing was thrown");
  } catch (const OutOfMemoryError& e) {
    CHECK(e.device == d);
    CHECK(e.in_use == in_use);
    CHECK(e.capacity == capacity);
    CHECK(e.retryable());
    CHECK(e.requested >= 4 * kMiB);
    CHECK(e.requested < 5 * kMiB);
    if (on_cpu()) CHECK(e.cached == 0);  // a GPU keeps the rest of the segment that holds `small`
    INFO(e.what());
    CHECK((matches(e.what(), str(d)) && matches(e.what(), "expected 4194304 free bytes, got ")));
  }
  CHECK(memory_stats(d).failures == failures + 1);
  CHECK(memory_stats(d).in_use == in_use);
  CHECK((small + small).sum().item<double>() == 200);
  CHECK_NOTHROW(empty({1 << 17}, {.device = d}));
  // The other device has no limit.
  CHECK_NOTHROW(empty({1 << 20}, {.device = here()}));
  // An op whose result does not fit leaves its inputs unchanged.
  const Tensor column = random_tensor({1000, 1}, DType::float32, d);
  const Array values = array_of(column);
  CHECK_THROWS_AS(column + column.t(), OutOfMemoryError);
  CHECK_THROWS_AS(column.expand({1000, 1000}).clone(), OutOfMemoryError);
  CHECK_THROWS_AS(zeros({1000, 1000}).to(d), OutOfMemoryError);
  CHECK_EXACT(column, values);
  set_memory_capacity(d, 0);
  CHECK((column + column.t()).numel() == 1000000);
}

TEST_CASE(
    "memory: the cache is freed before a request is refused; a capacity below what is in use "
    "only stops further requests",
    "[memory]") {
  const Device d = there();
  const Restore restore{d};
  empty_cache(d);
  set_memory_capacity(d, memory_stats(d).in_use + 16 * kMiB);
  // 12 MiB, which the cache keeps: in 14 MiB if the device rounds it up
  { const Tensor a = empty({12, 1 << 18}, {.device = d}); }
  const MemoryStats before = memory_stats(d);
  CHECK(before.cached >= 12 * kMiB);
  CHECK_NOTHROW(empty({15, 1 << 18}, {.device = d}));  // 15 MiB: fits only without the cache
  CHECK(memory_stats(d).retries == before.retries + 1);
  CHECK(memory_stats(d).failures == before.failures);
  const Tensor a = ones({1 << 18}, {.device = d});
  set_memory_capacity(d, 1000);
  // a GPU keeps the rest of the segment that holds `a`
  if (on_cpu()) CHECK(memory_stats(d).cached == 0);
  CHECK_THROWS_AS(empty({10}, {.device = d}), OutOfMemoryError);
  CHECK(a[77].item<double>() == 1);
  a.add_(1.0);  // needs no memory
  CHECK(a[77].item<double>() == 2);
}

TEST_CASE(
    "memory: every allocation of a step may fail, once or from then on, and nothing is left "
    "behind; "
    "gradients that were there stay as they were",
    "[memory][errors]") {
  const Device d = there();
  const Restore restore{d};
  const Scenario s(d);
  std::vector<Array> values;
  for (const Tensor& p : s.parameters()) values.push_back(array_of(p));
  const double loss = s.run();
  std::vector<Tensor> gradients;
  for (const Tensor& p : s.parameters()) gradients.push_back(p.grad().clone());
  const auto has_gradients = [&] {
    for (std::size_t i = 0; i < gradients.size(); ++i)
      CHECK_SAME_BITS(s.parameters()[i].grad(), gradients[i]);
  };
  /// Runs steps whose k-th allocation fails until no step fails; `check` runs after each failure.
  const auto fail_each = [&](bool persistent, const std::function<void(std::uint64_t)>& check) {
    for (std::uint64_t k = 1;; ++k) {
      REQUIRE(k < 1000);
      fail_allocation(d, k, persistent);
      bool failed = false;
      try {
        (void)s.run();
      } catch (const OutOfMemoryError& e) {
        failed = true;
        CHECK(e.device == d);
      }
      fail_allocation(d, 0);
      if (!failed) {
        CHECK(k > 20);
        return;
      }
      INFO("allocation " << k << (persistent ? " and all after it" : ""));
      check(k);
    }
  };
  fail_each(false, [&](std::uint64_t) { has_gradients(); });
  for (std::size_t i = 0; i < gradients.size(); ++i)
    CHECK_CLOSE(s.parameters()[i].grad(), gradients[i] + gradients[i], tolerance(DType::float32));
  s.zero_grad();
  const std::size_t base = memory_stats(d).in_use;
  for (const bool persistent : {false, true}) {
    fail_each(persistent, [&](std::uint64_t k) {
      bool clean = memory_stats(d).in_use == base;
      for (const Tensor& p : s.parameters())
        clean = clean && !p.grad().defined() && p.version() == 0;
      CHECK(clean);
      if (k % 5 != 1) return;
      // The next step equals the step of a run that never failed.
      CHECK(s.run() == loss);
      has_gradients();
      s.zero_grad();
    });
    s.zero_grad();
    CHECK(memory_stats(d).in_use == base);
  }
  for (std::size_t i = 0; i < values.size(); ++i) CHECK_EXACT(s.parameters()[i], values[i]);
}

TEST_CASE("memory: steps of changing shapes come back to where they began", "[memory]") {
  const Device d = there();
  const std::size_t base = memory_stats(d).in_use;
  for (int i = 1; i < 60; ++i) {
    const Tensor w = random_tensor({i, 2 * i + 1}, DType::float32, d).requires_grad_();
    const Tensor x = random_tensor({i % 7 + 1, 2 * i + 1}, DType::float32, d);
    mse_loss(linear(x, w), zeros({i % 7 + 1, i}, {.device = d})).backward();
    CHECK(w.grad().defined());
  }
  CHECK(memory_stats(d).in_use == base);
}

TEST_CASE("memory: a full device can be read and reset", "[memory]") {
  for (const Device d : test_devices()) {
    const Restore restore{d};
    const Tensor x = ones({3}, {.device = d}),
                 n = full({}, 7, {.device = d, .dtype = DType::int64}),
                 h = full({1}, 0.5, {.device = d, .dtype = DType::float16});
    fail_allocation(d, 1, true);
    CHECK_THROWS_AS(x + x, OutOfMemoryError);
    CHECK(x[1].item<float>() == 1);
    CHECK(h.item<float>() == 0.5f);
    CHECK(n.item<double>() == 7);
    CHECK(n.item<int>() == 7);
    x.fill_(3);
    CHECK(x[2].item<double>() == 3);
    x[1].zero_();
    CHECK((x[0].item<int>() == 3 && x[1].item<int>() == 0));
  }
}

}  // namespace braid::test::on_device
