// Acceptance: what a module finds when it runs as a replica, and what is left of it.
#include <braid/core/memory.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/parameter_dict.hpp>
#include <braid/parallel/data_parallel.hpp>

#include <atomic>
#include <map>
#include <string>

#include "acceptance.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;

namespace {

constexpr std::string_view kNoEffect =
    "Calling .zero_grad() from a module created with nn.DataParallel() has no effect. The "
    "parameters are copied (in a differentiable manner) from the original "
    "module. This means they are not leaf nodes in autograd and so don't accumulate gradients.";
/// A module without parameters has nothing to warn about here: PyTorch's own test has none.
struct ZeroGrad : nn::Module {
  nn::Parameter weight{ones({1})};
  Tensor operator()(const Tensor& x) const {
    zero_grad(*this);
    return x * weight;
  }
  BRAID_FIELDS(weight)
};

const Tensor& item(const std::vector<nn::Parameter>& list, int k) {
  return list.at(static_cast<std::size_t>(k));
}
template <class Map> const Tensor& item(const Map& map, int k) {
  return map.at(k == 0 ? "str_key" : "other");
}
std::vector<double> p1, p2;         // what the replicas have to find
std::atomic<int> checked{0};        // replicas
std::atomic<bool> expects_history;  // not in the module itself
template <class Data> struct Holder : nn::Module {
  Data data;
  explicit Holder(Data d) : data(std::move(d)) {}
  Tensor operator()(const Tensor& x) const {
    for (const int k : {0, 1}) {  // on a worker: what fails is thrown
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
    Holder<Data> holder(data);
    to(holder, ids.front());
    p1 = numbers(item(holder.data, 0));
    p2 = numbers(item(holder.data, 1));
    expects_history = ids.size() > 1;
    const DataParallel model(std::move(holder), ids);
    checked = 0;
    model(x).sum().backward();
    CHECK(static_cast<std::size_t>(checked) == parallel::chunk_sizes(8, ids.size()).size());
    for (const int k : {0, 1})
      CHECK_CLOSE(item(model.module.data, k).grad(), (x.sum() * (k + 1.0)).expand({10}),
                  (Tolerance{1e-4, 1e-4}));
  }
}

}  // namespace

TEST_CASE("T10: no replica is left after a forward, or a step", "[parallel][acceptance]") {
  // PyTorch looks for cycles of references; here every device's memory is counted.
  for (const std::vector<Device>& ids : orders()) {
    for (const bool cache : {false, true}) {
      const std::vector<std::size_t> empty_devices = in_use();
      {
        DataParallel model(placed_on(nn::Linear(1, 1), ids.front()), ids,
                           DataParallelOptions{.cache = cache});
        optim::SGD optimizer(parameters(model), {.lr = 0.1});
        const Tensor x = ones({static_cast<std::int64_t>(ids.size()), 1}, {.device = ids.front()});
        const std::vector<std::size_t> before = in_use();
        (void)model(x);
        // with a cache the copies of the weights, and nothing else
        const std::vector<std::size_t> kept = in_use();
        for (std::size_t i = 0; i < kept.size(); ++i) {
          const bool has_copies =
              cache && std::find(ids.begin() + 1, ids.end(), devices()[i]) != ids.end();
          CHECK((has_copies ? kept[i] > before[i] : kept[i] == before[i]));
        }
        for (int step = 0; step < 3; ++step) {
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

TEST_CASE("T27: zero_grad in a replica warns that it has no effect", "[parallel][acceptance]") {
  for (const std::vector<Device>& ids : orders()) {
    const DataParallel model(placed_on(ZeroGrad{}, ids.front()), ids);
    model.module.weight.set_grad(full({1}, 3, {.device = ids.front()}));
    const int before = warnings_with(kNoEffect);
    (void)model(random_tensor({4, 3, 6, 5}));
    const std::size_t replicas = ids.size() > 1 ? parallel::chunk_sizes(4, ids.size()).size() : 0;
    CHECK(warnings_with(kNoEffect) - before == static_cast<int>(replicas));
    // on one device it is the module itself
    CHECK(model.module.weight.grad().defined() == (replicas > 0));
  }
}

TEST_CASE("T31: a list and a dict of parameters in replicas", "[parallel][acceptance]") {
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

}  // namespace braid::test::on_device
