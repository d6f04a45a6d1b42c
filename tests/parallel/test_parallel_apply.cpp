#include <braid/parallel/parallel_apply.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include <braid/parallel/replicate.hpp>
#include <braid/parallel/scatter.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::parallel_apply;

namespace {

using Call = std::function<Tensor(const Tensor&)>;

std::vector<Tensor> one_each(int n) {
  std::vector<Tensor> list;
  for (int i = 0; i < n; ++i)
    list.push_back(full({2, 2}, static_cast<double>(i), {.device = device(i)}));
  return list;
}

}  // namespace

TEST_CASE("T04: modules on their devices, inputs as tuples and as they are",
          "[parallel][parallel_apply]") {
  for (int n = 1; n <= device_count(); ++n) {
    std::vector<nn::Linear> layers;
    std::vector<Tensor> inputs, expected;
    std::vector<std::tuple<Tensor>> tuples;
    for (int i = 0; i < n; ++i) {
      layers.emplace_back(5, 3);
      to(layers.back(), device(i));
      inputs.push_back(randn({4, 5}, {.device = device(i)}));
      tuples.emplace_back(inputs.back());
      expected.push_back(layers.back()(inputs.back()));
    }
    for (const auto& outputs : {parallel_apply(layers, inputs), parallel_apply(layers, tuples),
                                parallel_apply(layers, inputs, group(n))}) {
      REQUIRE(outputs.size() == static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < outputs.size(); ++i) CHECK_SAME_BITS(outputs[i], expected[i]);
    }
  }
}

TEST_CASE("5.1: all run at once, the first on the calling thread", "[parallel][parallel_apply]") {
  for (int n = 1; n <= device_count(); ++n) {
    std::atomic<int> inside{0};
    std::atomic<bool> together{false};
    std::vector<std::thread::id> threads(static_cast<std::size_t>(n));
    std::vector<std::function<Tensor(const Tensor&)>> modules;
    for (int i = 0; i < n; ++i)
      modules.push_back([&, i](const Tensor& x) {
        threads[static_cast<std::size_t>(i)] = std::this_thread::get_id();
        if (inside.fetch_add(1) + 1 == n) together = true;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        // nobody leaves before all have come
        while (!together && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
        return x;
      });
    parallel_apply(modules, one_each(n));
    CHECK(together);
    CHECK(threads[0] == std::this_thread::get_id());
    for (int i = 1; i < n; ++i)
      for (int j = 0; j < i; ++j)
        CHECK(threads[static_cast<std::size_t>(i)] != threads[static_cast<std::size_t>(j)]);
    // Kept: the next call runs on the same threads.
    const std::vector<std::thread::id> before = threads;
    inside = 0;
    together = false;
    parallel_apply(modules, one_each(n));
    CHECK(threads == before);
  }
}

TEST_CASE("5.2: lengths must agree", "[parallel][parallel_apply][errors]") {
  const Call same = [](const Tensor& x) { return x; };
  const Tensor x = ones({2});
  CHECK_THROWS_TEXT(
      ArgumentError,
      "parallel_apply: expected one input for each module, got 2 modules and 1 inputs",
      parallel_apply(std::vector<Call>{same, same}, std::vector<Tensor>{x}));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "parallel_apply: expected one device for each module, got 1 modules and 2 devices",
      parallel_apply(std::vector<Call>{same}, std::vector<Tensor>{x},
                     {device(0), device(device_count() - 1)}));
  CHECK(parallel_apply(std::vector<Call>{}, std::vector<Tensor>{}).empty());
}

TEST_CASE("5.3: an input that is no tuple is the one argument", "[parallel][parallel_apply]") {
  const std::vector<std::function<Tensor(const std::vector<Tensor>&)>> of_list{
      [](const std::vector<Tensor>& list) { return list.at(0) + list.at(1); }};
  CHECK(numbers(
            parallel_apply(of_list, std::vector<std::vector<Tensor>>{{ones({2}), ones({2})}})[0]) ==
        std::vector<double>{2, 2});
  const std::vector<std::function<Tensor(const Tensor&, double)>> of_two{
      [](const Tensor& x, double y) { return x * y; }};
  CHECK(numbers(parallel_apply(of_two, std::vector<std::tuple<Tensor, double>>{
                                           {ones({2}), 3.0}})[0]) == std::vector<double>{3, 3});
  const std::vector<std::function<std::tuple<Tensor, int>(const std::tuple<Tensor, int>&)>>
      of_tuple{[](const std::tuple<Tensor, int>& x) { return x; }};
  const auto outputs =
      parallel_apply(of_tuple, std::vector<std::tuple<std::tuple<Tensor, int>>>{{{ones({2}), 4}}});
  CHECK(std::get<1>(outputs[0]) == 4);
  std::atomic<int> calls{0};
  const std::vector<std::function<void(const Tensor&)>> nothing{[&](const Tensor&) { ++calls; }};
  parallel_apply(nothing, std::vector<Tensor>{ones({1})});
  CHECK(calls == 1);
}

TEST_CASE("5.4: the device is the first tensor's, and has to be found",
          "[parallel][parallel_apply][errors]") {
  const std::vector<std::function<int(int)>> plain(2, [](int x) { return x + 1; });
  CHECK_THROWS_TEXT(DeviceError,
                    "in replica 0, no device was provided and no tensor input was found; device "
                    "cannot be resolved",
                    parallel_apply(plain, std::vector<int>{1, 2}));
  CHECK_THROWS_TEXT(
      DeviceError,
      "in replica 1, no device was provided and no tensor input was found; device cannot be "
      "resolved",
      parallel_apply(std::vector<std::function<Tensor(const std::vector<Tensor>&)>>(
                         2, [](const std::vector<Tensor>&) { return Tensor(); }),
                     std::vector<std::vector<Tensor>>{{Tensor(), ones({1})}, {Tensor()}}));
  if (device_count() < 2) return;
  CHECK(parallel_apply(plain, std::vector<int>{1, 2}, group(2)) == std::vector<int>{2, 3});
  const Call same = [](const Tensor& x) { return x; };
  CHECK_THROWS_TEXT(
      DeviceError, here("parallel_apply: expected each device once, got cpu:0 twice"),
      parallel_apply(std::vector<Call>{same, same}, std::vector<Tensor>{ones({1}), ones({1})}));
}

TEST_CASE("5.6, T11: the workers have the caller's gradient mode, and leave it alone",
          "[parallel][parallel_apply]") {
  for (int n = 1; n <= device_count(); ++n) {
    std::vector<std::function<bool(const Tensor&)>> modules(
        static_cast<std::size_t>(n), [](const Tensor&) {
          const bool now = grad_enabled();
          thread_state().grad_enabled = !now;  // must not be seen by the next call
          return now;
        });
    for (const bool on : {true, false, true}) {
      const GradMode mode(on);
      CHECK(parallel_apply(modules, one_each(n)) ==
            std::vector<bool>(static_cast<std::size_t>(n), on));
      CHECK(grad_enabled() == on);
    }
  }
}

TEST_CASE(
    "5.7, 11.7: replicas that throw: index, device, text, cause; all are joined; the next call "
    "works",
    "[parallel][parallel_apply][errors]") {
  for (int n = 1; n <= device_count(); ++n) {
    for (int failing = 1; failing < (1 << n); failing += (n > 4 ? 7 : 1)) {  // which replicas throw
      std::atomic<int> finished{0};
      std::vector<Call> modules;
      for (int i = 0; i < n; ++i)
        modules.push_back([&finished, i, failing](const Tensor& x) -> Tensor {
          if (failing >> i & 1) throw std::out_of_range("key " + std::to_string(i));
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          ++finished;
          return x;
        });
      std::vector<int> expected;
      for (int i = 0; i < n; ++i)
        if (failing >> i & 1) expected.push_back(i);
      try {
        parallel_apply(modules, one_each(n));
        FAIL("nothing was thrown");
      } catch (const ReplicaError& e) {
        CHECK(finished == n - static_cast<int>(expected.size()));
        const std::string first = str("Caught std::out_of_range in replica ", expected[0],
                                      " on device ", device(expected[0]), ": key ", expected[0]);
        CHECK(std::string(e.what()).substr(0, first.size()) == first);
        CHECK(e.index() == static_cast<std::size_t>(expected[0]));
        CHECK(e.device() == device(expected[0]));
        REQUIRE(e.failures.size() == expected.size());
        for (std::size_t k = 0; k < expected.size(); ++k)
          CHECK(e.failures[k].index == static_cast<std::size_t>(expected[k]));
        REQUIRE(e.cause<std::out_of_range>() != nullptr);
        CHECK(std::string(e.cause<std::out_of_range>()->what()) == str("key ", expected[0]));
        CHECK(e.cause<std::bad_alloc>() == nullptr);
        try {
          std::rethrow_if_nested(e);
          FAIL("nothing is nested");
        } catch (const std::out_of_range& nested) {
          CHECK(std::string(nested.what()) == str("key ", expected[0]));
        }
      }
      CHECK(parallel_apply(std::vector<Call>(static_cast<std::size_t>(n),
                                             [](const Tensor& x) { return x + 1.0; }),
                           one_each(n))
                .size() == static_cast<std::size_t>(n));
    }
  }
}

TEST_CASE("5.7: Braid's own errors, bad_alloc and what is no exception at all",
          "[parallel][parallel_apply][errors]") {
  const auto text_of = [](Call call) -> std::string {
    try {
      parallel_apply(std::vector<Call>{std::move(call)}, std::vector<Tensor>{ones({2, 3})});
    } catch (const ReplicaError& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  CHECK(matches(text_of([](const Tensor& x) { return x + ones({2}); }),
                here("Caught ShapeError in replica 0 on device cpu:0: ")));
  CHECK(matches(text_of([](const Tensor&) -> Tensor { throw std::bad_alloc(); }),
                here("Caught std::bad_alloc in replica 0 on device cpu:0: ")));
  CHECK(text_of([](const Tensor&) -> Tensor { throw 5; }) ==
        here("Caught unknown in replica 0 on device cpu:0: unknown exception"));
}

TEST_CASE("5.1: a call inside a replica does not wait for itself", "[parallel][parallel_apply]") {
  const int n = device_count();
  std::vector<std::function<int(const Tensor&)>> outer(
      static_cast<std::size_t>(n), [n](const Tensor&) {
        const std::vector<std::function<int(const Tensor&)>> inner(
            static_cast<std::size_t>(n), [](const Tensor& x) { return x.device().index(); });
        int sum = 0;
        for (const int i : parallel_apply(inner, one_each(n))) sum += i;
        return sum;
      });
  for (int round = 0; round < 10; ++round)
    CHECK(parallel_apply(outer, one_each(n)) ==
          std::vector<int>(static_cast<std::size_t>(n), n * (n - 1) / 2));
}

}  // namespace braid::test::on_device
