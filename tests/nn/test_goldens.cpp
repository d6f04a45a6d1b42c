// Compares optimizers and a training run with PyTorch (goldens/optim.txt, goldens/mlp.txt), in
// float32 and float64.
#include <braid/braid.hpp>

#include "support/golden.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
using braid::testing::difference;
using braid::testing::Goldens;

namespace {

const DType kTypes[] = {DType::float32, DType::float64};

using Numbers = std::vector<double>;
using Parameters = std::vector<Tensor>;

/// Gives the optimizer the golden gradients, and compares the parameters after every step.
template <class O, class Options>
void check_steps(const std::string& name, Options (*options)(const Numbers&)) {
  static const Goldens goldens("optim.txt", here());
  Numbers numbers = goldens.tensor(name + ".options").to_vector<double>();
  numbers.resize(7);  // missing flags are off
  for (const DType dtype : kTypes) {
    const Parameters p{goldens.tensor("p0").to(dtype).requires_grad_(),
                       goldens.tensor("p1").to(dtype).requires_grad_()};
    O optimizer(p, options(numbers));
    for (int step = 1; step <= 5; ++step) {
      for (std::size_t i = 0; i < 2; ++i)
        p[i].set_grad(goldens.tensor(str("g", i, ".step", step)).to(dtype));
      optimizer.step();
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string golden = str(name, ".", name_of(dtype), ".p", i, ".step", step);
        INFO(golden);
        CHECK(difference(p[i], goldens.tensor(golden)) == "");
      }
    }
  }
}

void check_losses(const Numbers& got, const Tensor& want) {
  const Numbers expected = want.to_vector<double>();
  REQUIRE(got.size() == expected.size());
  const double rtol = want.dtype() == DType::float64 ? 1e-11 : 2e-5;  // ten steps of rounding
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(got[i] == Approx(expected[i]).epsilon(rtol));
  }
}

}  // namespace

TEST_CASE("optimizers: five steps agree with PyTorch", "[nn][optim][goldens]") {
  using namespace optim;
  for (const char* name : {"sgd.plain", "sgd.decay", "sgd.momentum", "sgd.both", "sgd.dampening",
                           "sgd.nesterov", "sgd.maximize"})
    check_steps<SGD, SgdOptions>(name, [](const Numbers& o) {
      return SgdOptions{o[0], o[1], o[2], o[3], o[4] != 0, o[5] != 0};
    });
  for (const char* name :
       {"adamw.default", "adamw.large", "adamw.no_decay", "adamw.amsgrad", "adamw.maximize"})
    check_steps<AdamW, AdamWOptions>(name, [](const Numbers& o) {
      return AdamWOptions{o[0], o[1], o[2], o[3], o[4], o[5] != 0, o[6] != 0};
    });
  for (const char* name : {"adam.decay", "adam.amsgrad", "adam.maximize"})
    check_steps<Adam, AdamOptions>(name, [](const Numbers& o) {
      return AdamOptions{o[0], o[1], o[2], o[3], o[4], o[5] != 0, o[6] != 0};
    });
  for (const char* name : {"rmsprop.momentum", "rmsprop.centered", "rmsprop.both"})
    check_steps<RMSprop, RMSpropOptions>(name, [](const Numbers& o) {
      return RMSpropOptions{o[0], o[1], o[2], o[3], o[4], o[5] != 0, o[6] != 0};
    });
  for (const char* name : {"adagrad.decays", "adagrad.maximize"})
    check_steps<Adagrad, AdagradOptions>(name, [](const Numbers& o) {
      return AdagradOptions{o[0], o[1], o[2], o[3], o[4], o[5] != 0};
    });
}

TEST_CASE("training: an MLP's gradients and ten losses agree with PyTorch",
          "[nn][optim][goldens]") {
  const Goldens goldens("mlp.txt", here());
  const Tensor labels = goldens.tensor("labels");
  for (const DType dtype : kTypes) {
    const std::string type(name_of(dtype));
    INFO(type);
    const Tensor x = goldens.tensor("x").to(dtype);
    const auto check = [&](const std::string& name, auto make, double tolerance) {
      nn::Sequential model{nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 16), nn::ReLU(),
                           nn::Linear(16, 4)};
      to(model, here(), dtype);
      const auto list = named_parameters(model);
      REQUIRE(list.size() == 6);
      for (const auto& [key, p] : list) p.detach().copy_(goldens.tensor(key));
      auto optimizer = make(parameters(model));
      Numbers losses;
      for (int step = 0; step < 10; ++step) {
        optimizer.zero_grad();
        const Tensor loss = nn::cross_entropy(model(x), labels);
        loss.backward();
        for (const auto& [key, p] : list) {
          INFO(key);
          if (step == 0) CHECK(difference(p.grad(), goldens.tensor(type + ".d" + key)) == "");
        }
        optimizer.step();
        losses.push_back(loss.item<double>());
      }
      check_losses(losses, goldens.tensor(str(name, type, ".losses")));
      for (const auto& [key, p] : list)
        if (key.starts_with("4."))
          CHECK(difference(p, goldens.tensor(str(name, type, ".", key)), tolerance, tolerance) ==
                "");
    };
    const double tolerance = dtype == DType::float64 ? 1e-10 : 1e-4;
    const auto sgd = [](const Parameters& p) {
      return optim::SGD(p, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
    };
    const auto adamw = [](const Parameters& p) {
      return optim::AdamW(p, {.lr = 0.01, .weight_decay = 0.01});
    };
    check("sgd.", sgd, tolerance);
    check("adamw.", adamw, tolerance);
  }
}

}  // namespace braid::test::on_device
