// What a module sees when it runs as a replica, and what remains of it after a step, after a failed
// step, and after one without memory.
#include <algorithm>

#include "group.hpp"

namespace braid::test::on_device {

namespace {

constexpr std::string_view kNoEffect =
    "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The "
    "parameters are copied (in a differentiable manner) from the original "
    "module. This means they are not leaf nodes in autograd and so don't accumulate gradients.";
/// Has a parameter, because a module without one gives no warning here; PyTorch's test has none.
struct ZeroGrad : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const {
    zero_grad(*this);
    return x * weight;
  }
  BRAID_FIELDS(weight)
};

const Tensor& item(const std::vector<nn::Parameter>& list, int k) { return list.at(usize(k)); }
template <class Map> const Tensor& item(const Map& map, int k) {
  return map.at(k == 0 ? "str_key" : "other");
}
std::vector<double> p1, p2;         // expected values in the replicas
std::atomic<int> checked{0};        // number of replicas
std::atomic<bool> expects_history;  // false in the module itself
template <class Data> struct Holder : nn::Module {
  Data data;
  explicit Holder(Data d) : data(std::move(d)) {}
  Tensor operator()(const Tensor& x) const {
    for (const int k : {0, 1}) {  // this may run on a worker, so failures are thrown
      const Tensor& p = item(data, k);
      check(numbers(p) == (k == 0 ? p1 : p2), "expected the parameter's numbers");
      check(p.requires_grad(), "expected a parameter that requires a gradient");
      check(p.is_leaf() != expects_history, "expected a gradient function");
      check(p.device() == x.device(), "expected a parameter on the replica's device");
    }
    ++checked;
    return x * (item(data, 0) + item(data, 1) * 2.0).sum();
  }
  BRAID_FIELDS(data)
};
template <class Data> void check_held(const Data& data) {
  const Tensor x = random_tensor({8, 8});
  for (const std::vector<Device>& ids : orders()) {
    Holder<Data> holder = placed_on(Holder<Data>(data), ids.front());
    p1 = numbers(item(holder.data, 0));
    p2 = numbers(item(holder.data, 1));
    expects_history = ids.size() > 1;
    const DataParallel model(std::move(holder), ids);
    checked = 0;
    model(x).sum().backward();
    CHECK(usize(checked) == chunk_sizes(8, ids.size()).size());
    for (const int k : {0, 1})
      CHECK_CLOSE(item(model.module.data, k).grad(), (x.sum() * (k + 1.0)).expand({10}),
                  (Tolerance{1e-4, 1e-4}));
  }
}

using Network = nn::Sequential<nn::Linear, nn::ReLU, nn::Linear>;

/// A step of a network over n devices, repeated with less memory than it needs.
struct Tight {
  int n;
  Tensor x, labels;
  DataParallel<Network> model;
  std::vector<Tensor> expected;
  std::vector<std::size_t> before;

  Tight(int count, std::int64_t rows)
      : n(count),
        x(random_tensor({rows, 6})),
        labels(randint(0, 3, {rows}, {.seed = 1})),
        model(home(Network{nn::Linear(6, 32), nn::ReLU(), nn::Linear(32, 3)}), group(count)) {
    step();
    expected = gradients_of(parameters(model));
    zero_grad(model);
    before = in_use();
  }
  void step() const { nn::cross_entropy(model(x), labels).backward(); }
  /// Runs steps with limit(1), limit(2), … until one has enough memory; limit(0) removes the limit.
  /// Each earlier step must fail for lack of memory on that device and leave nothing behind. The
  /// last one must give the same result as without failures. `limit` returns the capacity that an
  /// error has to name, or 0. Returns how many steps failed.
  int until_it_works(Device tight, const std::function<std::size_t(int)>& limit) const {
    int failed = 0;
    for (bool worked = false; !worked;) {
      REQUIRE(failed < 10000);
      INFO(n << " devices, " << tight << ", failure " << failed);
      const std::size_t capacity = limit(failed + 1);
      try {
        step();
        worked = true;
      } catch (const OutOfMemoryError& e) {
        CHECK(e.device == tight);
        if (capacity > 0) CHECK(e.capacity == capacity);
      } catch (const ReplicaError& e) {
        REQUIRE(e.cause<OutOfMemoryError>() != nullptr);
        CHECK(e.cause<OutOfMemoryError>()->device == tight);
        CHECK(device(static_cast<int>(e.index())) == tight);
      }
      (void)limit(0);
      if (worked) break;
      ++failed;
      if (in_use() != before) FAIL("memory is left");
      for (const Tensor& g : gradients_of(parameters(model))) CHECK_FALSE(g.defined());
    }
    check_same(gradients_of(parameters(model)), expected);
    zero_grad(model);
    CHECK(in_use() == before);
    return failed;
  }
};

}  // namespace

ACCEPTANCE("T10: no replica is left after a forward, or a step") {
  // PyTorch's test looks for reference cycles; this one counts every device's memory.
  for (const std::vector<Device>& ids : orders()) {
    for (const bool cache : {false, true}) {
      const std::vector<std::size_t> empty_devices = in_use();
      {
        DataParallel model(placed_on(nn::Linear(6, 6), ids.front()), ids,
                           DataParallelOptions{.cache = cache});
        optim::SGD optimizer(parameters(model), {.lr = 0.1});
        const Tensor x = ones({static_cast<std::int64_t>(ids.size()), 6}, {.device = ids.front()});
        const std::vector<std::size_t> before = in_use();
        (void)model(x);
        // with a cache only the copies of the weights remain
        const std::vector<std::size_t> kept = in_use();
        for (std::size_t i = 0; i < kept.size(); ++i) {
          const bool has_copies =
              cache && std::find(ids.begin() + 1, ids.end(), devices()[i]) != ids.end();
          CHECK((has_copies ? kept[i] > before[i] : kept[i] == before[i]));
        }
        {
          const Tensor y = model(x);
          // the graph of y holds the replicas' inputs and weights
          for (const Device d : ids) CHECK(memory_stats(d).in_use > kept[usize(d.index())]);
        }
        {
          const NoGrad guard;
          const Tensor y = model(x);
          for (std::size_t i = 1; i < ids.size(); ++i)
            CHECK(memory_stats(ids[i]).in_use == kept[usize(ids[i].index())]);
        }
        CHECK(in_use() == kept);
        for (int step = 0; step < 3; ++step) {
          model(x).sum().backward();
          model(x).sum().backward();
          optimizer.step();
          optimizer.zero_grad();
          CHECK(in_use() == kept);
        }
      }
      CHECK(in_use() == empty_devices);
    }
  }
}

ACCEPTANCE("T11: without gradients, in the replicas too; what they assert reaches the caller") {
  const Tensor x = random_tensor({20, 10});
  const auto asserts = [](const Tensor&, const Tensor& part) {
    if (grad_enabled()) throw std::logic_error("expected no gradients");
    return part;
  };
  for (const std::vector<Device>& ids : orders()) {
    const DataParallel model(placed_on(Made(asserts), ids.front()), ids);
    for (const bool function : {true, false}) {
      const auto call = [&] { return function ? data_parallel(model.module, x, ids) : model(x); };
      {
        const NoGrad guard;
        CHECK_SAME_BITS(call(), x);
      }
      if (ids.size() == 1) {  // the module itself runs
        CHECK_THROWS_TEXT(std::logic_error, "expected no gradients", call());
        continue;
      }
      try {
        call();
        FAIL("nothing was thrown");
      } catch (const ReplicaError& e) {
        CHECK(e.cause<std::logic_error>() != nullptr);
        CHECK(e.failures.size() == chunk_sizes(20, ids.size()).size());
      }
    }
  }
}

ACCEPTANCE("T27: zero_grad in a replica warns that it has no effect") {
  for (const std::vector<Device>& ids : orders()) {
    const DataParallel model(placed_on(ZeroGrad{}, ids.front()), ids);
    model.module.weight.set_grad(full({1}, 3.0, {.device = ids.front()}));
    const int before = warnings_with(kNoEffect);
    (void)model(random_tensor({4, 3, 6, 5}));
    const std::size_t replicas = ids.size() > 1 ? chunk_sizes(4, ids.size()).size() : 0;
    CHECK(warnings_with(kNoEffect) - before == static_cast<int>(replicas));
    // on one device the module itself runs
    CHECK(model.module.weight.grad().defined() == (replicas > 0));
  }
}

ACCEPTANCE("T31: a list and a dict of parameters in replicas") {
  const auto parameter = [](std::uint64_t seed) {
    return nn::Parameter(random_tensor({10}, DType::float32, {}, seed));
  };
  std::vector<nn::Parameter> list;
  list.push_back(parameter(1));
  list.push_back(parameter(2));
  check_held(list);
  nn::ParameterDict dict;
  dict.insert("str_key", parameter(1));
  dict.insert("other", parameter(2));
  check_held(dict);
  std::map<std::string, nn::Parameter> map;
  map.emplace("str_key", parameter(1));
  map.emplace("other", parameter(2));
  check_held(map);
}

ACCEPTANCE("C6: the text of an exception") {
  // LibTorch throws the original. Here its text follows the replica and the device, and the
  // original is nested. No tensor remains.
  const Made module = home(Made([](const Tensor& weight, const Tensor& part) -> Tensor {
    const Tensor y = part * weight;
    throw std::runtime_error("Badness!");
  }));
  const Tensor x = ones({10, 3});
  const std::vector<std::size_t> before = in_use();
  if (device_count() == 1) {
    CHECK_THROWS_TEXT(std::runtime_error, "Badness!", data_parallel(module, x));
    return;
  }
  try {
    (void)data_parallel(module, x);
    FAIL("nothing was thrown");
  } catch (const ReplicaError& e) {
    const std::string text =
        str("Caught std::runtime_error in replica 0 on device ", device(0), ": Badness!");
    CHECK(std::string(e.what()).substr(0, text.size()) == text);
    REQUIRE(e.cause<std::runtime_error>() != nullptr);
    CHECK(std::string(e.cause<std::runtime_error>()->what()) == "Badness!");
  }
  CHECK(in_use() == before);
}

TEST_CASE("memory: one device short of it loses nothing", "[memory]") {
  for (int n = 2; n <= up_to(3); ++n) {
    const Tight steps(n, 16);
    for (int tight = 1; tight < n; ++tight) {
      const int failed = steps.until_it_works(device(tight), [&](int k) {
        const std::size_t capacity =
            k == 0 ? 0 : steps.before[usize(tight)] + 64 + 1024 * usize(k - 1);
        set_memory_capacity(device(tight), capacity);
        return capacity;
      });
      CHECK(failed > 3);
    }
  }
}

TEST_CASE("memory: every single allocation of a step fails once", "[memory][errors]") {
  for (int n = 2; n <= up_to(3); ++n) {
    const Tight steps(n, 7);
    for (const Device d : group(n))
      for (const bool persistent : {false, true}) {
        const int failed = steps.until_it_works(d, [&](int k) {
          fail_allocation(d, static_cast<std::uint64_t>(k), persistent);
          return std::size_t{0};
        });
        CHECK(failed > 4);
      }
  }
}

}  // namespace braid::test::on_device
