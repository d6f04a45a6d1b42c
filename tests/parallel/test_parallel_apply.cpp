// parallel_apply: every module on its device, all in parallel, and the errors of those that throw.
#include <chrono>

#include "group.hpp"

namespace braid::test::on_device {

using parallel::parallel_apply;

namespace {

using Call = std::function<Tensor(const Tensor&)>;
template <class R, class... A> using Calls = std::vector<std::function<R(A...)>>;

std::vector<Tensor> one_each(int n) {
  std::vector<Tensor> list;
  for (int i = 0; i < n; ++i)
    list.push_back(full({2, 2}, static_cast<double>(i), {.device = device(i)}));
  return list;
}

/// device(0), device(1), and a third one or the host, if there is one.
std::vector<Device> several() {
  std::vector<Device> list = group(up_to(2));
  if (third()) list.push_back(*third());
  return list;
}

/// A separate layer on each device gives the same result as alone.
void check_layers(const std::vector<Device>& ids) {
  std::vector<nn::Linear> layers;
  std::vector<Tensor> inputs, expected;
  std::vector<std::tuple<Tensor>> tuples;
  for (const Device d : ids) {
    layers.push_back(placed_on(nn::Linear(5, 3), d));
    inputs.push_back(randn({4, 5}, {.device = d}));
    tuples.emplace_back(inputs.back());
    expected.push_back(layers.back()(inputs.back()));
  }
  for (const auto& outputs : {parallel_apply(layers, inputs), parallel_apply(layers, tuples),
                              parallel_apply(layers, inputs, ids)}) {
    check_same(outputs, expected);
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(outputs[i].device() == ids[i]);
  }
}

}  // namespace

ACCEPTANCE("C4: parallel_apply on two devices and a third") { check_layers(several()); }

ACCEPTANCE("C5: parallel_apply moves the outputs to the devices that it is given") {
  std::vector<Device> ids = several();
  std::swap(ids.front(), ids[ids.size() > 1 ? 1 : 0]);
  // creates its tensor on the factories' default device, which is not the replica's
  const Call elsewhere = [](const Tensor&) { return braid::ones({5}, {.dtype = DType::int32}); };
  const std::vector<Tensor> outputs =
      parallel_apply(std::vector<Call>(ids.size(), elsewhere),
                     std::vector<Tensor>(ids.size(), braid::zeros({})), ids);
  REQUIRE(outputs.size() == ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    CHECK(outputs[i].device() == ids[i]);
    CHECK(outputs[i].dtype() == DType::int32);
    CHECK(numbers(outputs[i]) == std::vector<double>(5, 1.0));
  }
}

ACCEPTANCE("T04: modules on their devices, inputs as tuples and as they are") {
  for (int n = 1; n <= device_count(); ++n) check_layers(group(n));
}

ACCEPTANCE("T05: autocast holds in all replicas") {
  for (int n = 1; n <= device_count(); ++n) {
    std::vector<nn::Linear> layers;
    std::vector<Tensor> inputs;
    for (const Device device : group(n)) {
      layers.emplace_back(4, 3, nn::LinearOptions{.device = device});
      inputs.push_back(random_tensor({2, 4}, DType::float32, device));
    }
    const Autocast guard(DType::float16);
    for (const Tensor& y : parallel_apply(layers, inputs)) CHECK(y.dtype() == DType::float16);
  }
}

ACCEPTANCE("T28: autocast inside of forward") {
  struct Half : nn::Module {
    nn::Linear fc{4, 3};
    Tensor operator()(const Tensor& x) const {
      const Autocast guard(DType::float16);
      return fc(x);
    }
    BRAID_FIELDS(fc)
  };
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(Half()), group(n));
    const Tensor y = model(random_tensor({8, 4}));
    CHECK(y.dtype() == DType::float16);
    y.sum().backward();
    CHECK(model.module.fc.weight.dtype() == DType::float32);
    CHECK(model.module.fc.weight.grad().dtype() == DType::float32);
  }
}

ACCEPTANCE("T06: an exception of a replica passes, with its text") {
  // PyTorch keeps the type. Here the error is a ReplicaError with the original nested. All threads
  // have ended, and the next call works.
  for (int n = 1; n <= device_count(); ++n) {
    for (int failing = 1; failing < (1 << n); failing += (n > 4 ? 7 : 1)) {  // which replicas throw
      std::atomic<int> finished{0};
      std::vector<Call> modules;
      std::vector<int> expected;
      for (int i = 0; i < n; ++i) {
        if (failing >> i & 1) expected.push_back(i);
        modules.push_back([&finished, i, failing](const Tensor& x) -> Tensor {
          if (failing >> i & 1) throw std::out_of_range("key " + std::to_string(i));
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          ++finished;
          return x;
        });
      }
      const std::string key = str("key ", expected[0]);
      try {
        parallel_apply(modules, one_each(n));
        FAIL("nothing was thrown");
      } catch (const ReplicaError& e) {
        CHECK(finished == n - static_cast<int>(expected.size()));
        const std::string first = str("Caught std::out_of_range in replica ", expected[0],
                                      " on device ", device(expected[0]), ": ", key);
        CHECK(std::string(e.what()).substr(0, first.size()) == first);
        CHECK(e.index() == usize(expected[0]));
        CHECK(e.device() == device(expected[0]));
        REQUIRE(e.failures.size() == expected.size());
        for (std::size_t k = 0; k < expected.size(); ++k)
          CHECK(e.failures[k].index == usize(expected[k]));
        REQUIRE(e.cause<std::out_of_range>() != nullptr);
        CHECK(e.cause<std::out_of_range>()->what() == key);
        CHECK(e.cause<std::bad_alloc>() == nullptr);
        CHECK_THROWS_TEXT(std::out_of_range, key, std::rethrow_if_nested(e));
      }
      const Call next = [](const Tensor& x) { return x + 1.0; };
      CHECK(parallel_apply(std::vector<Call>(usize(n), next), one_each(n)).size() == usize(n));
    }
  }
}

TEST_CASE("parallel_apply: Braid's errors, bad_alloc, and no exception at all",
          "[parallel_apply]") {
  const auto check_text = [](Call call, const char* text) {
    CHECK_THROWS_TEXT(
        ReplicaError, here(text),
        parallel_apply(std::vector<Call>{std::move(call)}, std::vector<Tensor>{ones({2, 3})}));
  };
  check_text([](const Tensor& x) { return x + ones({2}); },
             "Caught ShapeError in replica 0 on device cpu:0: ");
  check_text([](const Tensor&) -> Tensor { throw std::bad_alloc(); },
             "Caught std::bad_alloc in replica 0 on device cpu:0: ");
  check_text([](const Tensor&) -> Tensor { throw 5; },
             "Caught unknown in replica 0 on device cpu:0: unknown exception");
}

TEST_CASE("parallel_apply: all run at once, the first on the calling thread", "[parallel_apply]") {
  for (int n = 1; n <= device_count(); ++n) {
    std::atomic<int> inside{0};
    std::atomic<bool> together{false};
    std::vector<std::thread::id> threads(usize(n));
    std::vector<Call> modules;
    for (int i = 0; i < n; ++i)
      modules.push_back([&, i](const Tensor& x) {
        threads[usize(i)] = std::this_thread::get_id();
        if (inside.fetch_add(1) + 1 == n) together = true;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        // no call returns before all have started
        while (!together && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
        return x;
      });
    parallel_apply(modules, one_each(n));
    CHECK(together);
    CHECK(threads[0] == std::this_thread::get_id());
    CHECK(std::set<std::thread::id>(threads.begin(), threads.end()).size() == usize(n));
    // The threads are kept: the next call runs on the same ones.
    const std::vector<std::thread::id> before = threads;
    inside = 0;
    together = false;
    parallel_apply(modules, one_each(n));
    CHECK(threads == before);
  }
}

TEST_CASE("parallel_apply: a call inside a replica does not wait for itself", "[parallel_apply]") {
  const int n = device_count();
  const auto each = usize(n);
  const Calls<int, const Tensor&> outer(each, [n, each](const Tensor&) {
    const Calls<int, const Tensor&> inner(each, [](const Tensor& x) { return x.device().index(); });
    int sum = 0;
    for (const int i : parallel_apply(inner, one_each(n))) sum += i;
    return sum;
  });
  for (int round = 0; round < 10; ++round)
    CHECK(parallel_apply(outer, one_each(n)) == std::vector<int>(each, n * (n - 1) / 2));
}

TEST_CASE("parallel_apply: an input that is no tuple is the one argument", "[parallel_apply]") {
  const Calls<Tensor, const std::vector<Tensor>&> of_list{
      [](const std::vector<Tensor>& list) { return list.at(0) + list.at(1); }};
  const std::vector<std::vector<Tensor>> lists{{ones({2}), ones({2})}};
  CHECK(numbers(parallel_apply(of_list, lists)[0]) == std::vector<double>{2, 2});
  const Calls<Tensor, const Tensor&, double> of_two{
      [](const Tensor& x, double y) { return x * y; }};
  const std::vector<std::tuple<Tensor, double>> two{{ones({2}), 3.0}};
  CHECK(numbers(parallel_apply(of_two, two)[0]) == std::vector<double>{3, 3});
  using Pair = std::tuple<Tensor, int>;
  const Calls<Pair, const Pair&> of_tuple{[](const Pair& x) { return x; }};
  const std::vector<std::tuple<Pair>> pairs{{{ones({2}), 4}}};
  CHECK(std::get<1>(parallel_apply(of_tuple, pairs)[0]) == 4);
  std::atomic<int> calls{0};
  const Calls<void, const Tensor&> nothing{[&](const Tensor&) { ++calls; }};
  parallel_apply(nothing, std::vector<Tensor>{ones({1})});
  CHECK(calls == 1);
}

TEST_CASE("parallel_apply: lengths that differ, a device that is not found", "[parallel_apply]") {
  const Call same = [](const Tensor& x) { return x; };
  const std::vector<Call> two{same, same};
  CHECK_THROWS_TEXT(
      ArgumentError,
      "parallel_apply: expected one input for each module, got 2 modules and 1 inputs",
      parallel_apply(two, std::vector<Tensor>{ones({2})}));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "parallel_apply: expected one device for each module, got 1 modules and 2 devices",
      parallel_apply(std::vector<Call>{same}, std::vector<Tensor>{ones({2})},
                     {device(0), device(device_count() - 1)}));
  CHECK(parallel_apply(std::vector<Call>{}, std::vector<Tensor>{}).empty());
  const Calls<int, int> plain(2, [](int x) { return x + 1; });
  const Calls<Tensor, const std::vector<Tensor>&> lists(
      2, [](const std::vector<Tensor>&) { return Tensor(); });
  const auto text = [](int replica) {
    return str("in replica ", replica,
               ", no device was provided and no tensor input was found; device cannot be resolved");
  };
  CHECK_THROWS_TEXT(DeviceError, text(0), parallel_apply(plain, std::vector<int>{1, 2}));
  CHECK_THROWS_TEXT(
      DeviceError, text(1),
      parallel_apply(lists, std::vector<std::vector<Tensor>>{{Tensor(), ones({1})}, {Tensor()}}));
  if (device_count() < 2) return;
  CHECK(parallel_apply(plain, std::vector<int>{1, 2}, group(2)) == std::vector<int>{2, 3});
  CHECK_THROWS_TEXT(DeviceError, here("parallel_apply: expected each device once, got cpu:0 twice"),
                    parallel_apply(two, std::vector<Tensor>{ones({1}), ones({1})}));
}

TEST_CASE("parallel_apply: workers have the caller's gradient mode", "[parallel_apply]") {
  for (int n = 1; n <= device_count(); ++n) {
    const auto each = usize(n);
    const Calls<bool, const Tensor&> modules(each, [](const Tensor&) {
      const bool now = grad_enabled();
      thread_state().grad_enabled = !now;  // the next call must not see this
      return now;
    });
    for (const bool on : {true, false, true}) {
      const GradMode mode(on);
      CHECK(parallel_apply(modules, one_each(n)) == std::vector<bool>(each, on));
      CHECK(grad_enabled() == on);
    }
  }
}

}  // namespace braid::test::on_device
