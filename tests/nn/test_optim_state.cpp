// Optimizers: their state is a tree, saved and restored.
#include <limits>
#include <string>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/body.hpp>

#include "optim_cases.hpp"
#include "support/errors.hpp"

namespace braid::test::on_device {

TEST_CASE("optimizers: the state is a tree, saved and restored", "[nn][optim][state]") {
  const auto run = [](optim::Optimizer& optimizer, const std::vector<Tensor>& parameters, int from,
                      int to) {
    for (int step = from; step < to; ++step) {
      optimizer.zero_grad();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (i == 1 && step < 4) continue;
        parameters[i].set_grad(random_tensor(test::sizes_of(parameters[i].shape()), DType::float32,
                                             {}, static_cast<std::uint64_t>(step) * 7 + i));
      }
      optimizer.step();
    }
  };
  const auto check = [&](const auto& options, auto make, const std::vector<std::string>& expected) {
    const std::vector<Tensor> through{leaf({6}, DType::float32, here(), 1),
                                      leaf({2, 2}, DType::float32, here(), 2)};
    std::vector<Tensor> resumed;
    auto first = make(through, options);
    run(*first, through, 0, 3);  // the second parameter has no state yet
    for (const Tensor& t : through) resumed.push_back(t.detach().clone().requires_grad_());
    StateDict saved;
    std::vector<std::string> keys;
    for (const auto& [key, t] : state_dict(*first)) {
      keys.push_back(key);
      saved.set(key, t.clone());
    }
    CHECK(keys == expected);
    CHECK(saved.at("steps").to_vector<int>() == std::vector<int>{3, 0});
    StateDict before;
    for (const auto& [key, t] : saved) before.set(key, t.clone());
    auto second = make(resumed, options);
    CHECK(load_state_dict(*second, saved).loaded == expected.size());
    run(*first, through, 3, 9);
    run(*second, resumed, 3, 9);
    for (std::size_t i = 0; i < through.size(); ++i) CHECK_SAME_BITS(through[i], resumed[i]);
    // what was loaded is a copy
    for (const auto& [key, t] : saved) CHECK_SAME_BITS(t, before.at(key));
    // Loading again over existing state goes back to it.
    load_state_dict(*second, saved);
    CHECK(second->steps(0) == 3);
    CHECK(state_dict(*second).size() == expected.size());
    CHECK_SAME_BITS(state_dict(*second).at(expected[0]), saved.at(expected[0]));
  };
  const auto sgd = [](const std::vector<Tensor>& p, const optim::SgdOptions& o) {
    return std::make_unique<optim::SGD>(p, o);
  };
  const auto adamw = [](const std::vector<Tensor>& p, const optim::AdamWOptions& o) {
    return std::make_unique<optim::AdamW>(p, o);
  };
  check(optim::SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, sgd,
        {"momentum.0", "steps"});
  check(optim::SgdOptions{.lr = 0.1}, sgd, {"steps"});
  check(optim::AdamWOptions{.lr = 0.1}, adamw, {"exp_avg.0", "exp_avg_sq.0", "steps"});
}

TEST_CASE("optimizers: a state that does not fit is refused whole", "[nn][optim][state][errors]") {
  const Tensor a = leaf({6}, DType::float32, here(), 1), b = leaf({2}, DType::float32, here(), 2);
  optim::AdamW adamw({a, b});
  a.set_grad(ones({6}));
  adamw.step();
  StateDict dict;
  for (const auto& [key, t] : state_dict(adamw)) dict.set(key, t.clone());
  const Tensor before = dict.at("exp_avg.0");
  dict.set("exp_avg.0", ones({5}));
  dict.set("exp_avg_sq.0", ones({6}, {.dtype = DType::float64}));
  dict.set("momentum.0", ones({6}));
  dict.set("steps", tensor(std::vector<std::int64_t>{4, 2}));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "load_state_dict: expected the state of AdamW over 2 parameters, got 5 keys that do not fit\n"
      "  exp_avg.0: expected shape [6], got [5]\n"
      "  exp_avg.1: is missing, and parameter 1 was updated 2 times\n"
      "  exp_avg_sq.0: expected float32, got float64\n"
      "  exp_avg_sq.1: is missing, and parameter 1 was updated 2 times\n"
      "  momentum.0: was not expected",
      load_state_dict(adamw, dict));
  CHECK(adamw.steps(0) == 1);
  CHECK_SAME_BITS(state_dict(adamw).at("exp_avg.0"), before);
  CHECK_THROWS_TEXT(ArgumentError, "1 key that does not fit\n  steps: is missing",
                    load_state_dict(adamw, StateDict()));
  CHECK_THROWS_TEXT(
      ArgumentError, "steps: expected counts >= 0, got -1",
      load_state_dict(adamw, StateDict{{"steps", tensor(std::vector<std::int64_t>{0, -1})}}));
}

}  // namespace braid::test::on_device
