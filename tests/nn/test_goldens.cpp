// Compares optimizers and a training run with PyTorch (goldens/optim.txt, goldens/mlp.txt), in
// float32 and float64.
#include "optim_cases.hpp"
#include "support/golden.hpp"

namespace braid::test::on_device {
using braid::testing::difference;
using braid::testing::Goldens;

namespace {

const DType kTypes[] = {DType::float32, DType::float64};

using Parameters = std::vector<Tensor>;

/// Gives the optimizer the golden gradients, and compares the parameters after every step.
void check_steps(const GoldenCase& c) {
  static const Goldens goldens("optim.txt", here());
  Numbers numbers;
  if (goldens.has(c.name + ".options"))
    numbers = goldens.tensor(c.name + ".options").to_vector<double>();
  numbers.resize(7);  // missing flags are off
  for (const DType dtype : kTypes) {
    const Parameters p{goldens.tensor("p0").to(dtype).requires_grad_(),
                       goldens.tensor("p1").to(dtype).requires_grad_()};
    const auto optimizer = c.make(p, numbers);
    for (int step = 1; step <= 5; ++step) {
      for (std::size_t i = 0; i < 2; ++i)
        p[i].set_grad(goldens.tensor(str("g", i, ".step", step)).to(dtype));
      optimizer->step();
      for (std::size_t i = 0; i < 2; ++i) {
        const std::string golden = str(c.name, ".", name_of(dtype), ".p", i, ".step", step);
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
  for (const GoldenCase& c : golden_cases()) check_steps(c);
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
