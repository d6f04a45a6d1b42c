// Optimizers and a training run against PyTorch (goldens/optim.txt, goldens/mlp.txt), float32 and
// float64.
#include <memory>
#include <string>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/tree.hpp>
#include <braid/nn/nn.hpp>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/on_device.hpp"

namespace braid::test::on_device {
using braid::testing::difference;
using braid::testing::Goldens;

namespace {

constexpr int kSteps = 5, kParameters = 2;
const DType kTypes[] = {DType::float32, DType::float64};

std::string dtype_name(DType t) { return std::string(name_of(t)); }

// Gives the optimizer the golden gradients and compares the parameters after every step.
template <class Make>
void check_steps(const Goldens& goldens, const std::string& name, const Make& make) {
  const std::vector<double> options = goldens.tensor(name + ".options").to_vector<double>();
  for (DType dtype : kTypes) {
    INFO(name << " " << dtype);
    std::vector<Tensor> parameters;
    for (int i = 0; i < kParameters; ++i)
      parameters.push_back(goldens.tensor("p" + std::to_string(i)).to(dtype).requires_grad_());
    const auto optimizer = make(parameters, options);
    for (int step = 1; step <= kSteps; ++step) {
      const std::string at = ".step" + std::to_string(step);
      for (int i = 0; i < kParameters; ++i)
        parameters[static_cast<std::size_t>(i)].set_grad(
            goldens.tensor("g" + std::to_string(i) + at).to(dtype));
      optimizer->step();
      for (int i = 0; i < kParameters; ++i) {
        const std::string golden = name + "." + dtype_name(dtype) + ".p" + std::to_string(i) + at;
        INFO(golden);
        CHECK(difference(parameters[static_cast<std::size_t>(i)], goldens.tensor(golden)) == "");
      }
    }
  }
}

struct Mlp {
  std::vector<Tensor> parameters;  // weight, bias, weight, bias, weight, bias
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor h = relu(linear(x, parameters[0], parameters[1]));
    return linear(relu(linear(h, parameters[2], parameters[3])), parameters[4], parameters[5]);
  }
};

const char* const kNames[] = {"0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"};

// Trains for ten steps and returns the losses; `model` may be any callable on the parameters.
template <class Model, class Optimizer>
std::vector<double> train(const Model& model, Optimizer& optimizer, const Tensor& x,
                          const Tensor& labels) {
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model(x), labels);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.template item<double>());
  }
  return losses;
}

void check_losses(const std::vector<double>& got, const Tensor& want) {
  const std::vector<double> expected = want.to_vector<double>();
  REQUIRE(got.size() == expected.size());
  const double rtol = want.dtype() == DType::float64 ? 1e-11 : 2e-5;  // ten steps of rounding
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("step " << i + 1);
    CHECK(got[i] == Approx(expected[i]).epsilon(rtol));
  }
}

}  // namespace

TEST_CASE("SGD: five steps agree with PyTorch", "[nn][optim][goldens]") {
  const Goldens goldens("optim.txt", here());
  for (const char* name : {"sgd.plain", "sgd.decay", "sgd.momentum", "sgd.both", "sgd.dampening",
                           "sgd.nesterov", "sgd.maximize"})
    check_steps(goldens, name, [](const std::vector<Tensor>& p, const std::vector<double>& o) {
      return std::make_unique<optim::SGD>(p, optim::SgdOptions{.lr = o[0],
                                                               .momentum = o[1],
                                                               .weight_decay = o[2],
                                                               .dampening = o[3],
                                                               .nesterov = o[4] != 0,
                                                               .maximize = o[5] != 0});
    });
}

TEST_CASE("AdamW: five steps agree with PyTorch", "[nn][optim][goldens]") {
  const Goldens goldens("optim.txt", here());
  for (const char* name : {"adamw.default", "adamw.large", "adamw.no_decay"})
    check_steps(goldens, name, [](const std::vector<Tensor>& p, const std::vector<double>& o) {
      return std::make_unique<optim::AdamW>(
          p, optim::AdamWOptions{
                 .lr = o[0], .beta1 = o[1], .beta2 = o[2], .eps = o[3], .weight_decay = o[4]});
    });
}

TEST_CASE("AdamW and Adam: amsgrad, maximize and coupled decay agree with PyTorch",
          "[nn][optim][goldens]") {
  const Goldens goldens("optim.txt", here());
  for (const char* name : {"adamw.amsgrad", "adamw.maximize"})
    check_steps(goldens, name, [](const std::vector<Tensor>& p, const std::vector<double>& o) {
      return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = o[0],
                                                                   .beta1 = o[1],
                                                                   .beta2 = o[2],
                                                                   .eps = o[3],
                                                                   .weight_decay = o[4],
                                                                   .amsgrad = o[5] != 0,
                                                                   .maximize = o[6] != 0});
    });
  for (const char* name : {"adam.decay", "adam.amsgrad", "adam.maximize"})
    check_steps(goldens, name, [](const std::vector<Tensor>& p, const std::vector<double>& o) {
      return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = o[0],
                                                                 .beta1 = o[1],
                                                                 .beta2 = o[2],
                                                                 .eps = o[3],
                                                                 .weight_decay = o[4],
                                                                 .amsgrad = o[5] != 0,
                                                                 .maximize = o[6] != 0});
    });
}

TEST_CASE("RMSprop: five steps agree with PyTorch", "[nn][optim][goldens]") {
  const Goldens goldens("optim.txt", here());
  for (const char* name : {"rmsprop.momentum", "rmsprop.centered", "rmsprop.both"})
    check_steps(goldens, name, [](const std::vector<Tensor>& p, const std::vector<double>& o) {
      return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions{.lr = o[0],
                                                                       .alpha = o[1],
                                                                       .eps = o[2],
                                                                       .weight_decay = o[3],
                                                                       .momentum = o[4],
                                                                       .centered = o[5] != 0,
                                                                       .maximize = o[6] != 0});
    });
}

TEST_CASE("Adagrad: five steps agree with PyTorch", "[nn][optim][goldens]") {
  const Goldens goldens("optim.txt", here());
  for (const char* name : {"adagrad.decays", "adagrad.maximize"})
    check_steps(goldens, name, [](const std::vector<Tensor>& p, const std::vector<double>& o) {
      return std::make_unique<optim::Adagrad>(
          p, optim::AdagradOptions{.lr = o[0],
                                   .lr_decay = o[1],
                                   .weight_decay = o[2],
                                   .initial_accumulator_value = o[3],
                                   .eps = o[4],
                                   .maximize = o[5] != 0});
    });
}

TEST_CASE("training: an MLP's gradients and ten losses agree with PyTorch",
          "[nn][optim][goldens]") {
  const Goldens goldens("mlp.txt", here());
  const Tensor labels = goldens.tensor("labels");
  for (DType dtype : kTypes) {
    const std::string type = dtype_name(dtype);
    const Tensor x = goldens.tensor("x").to(dtype);
    const auto fresh = [&] {
      Mlp m;
      for (const char* name : kNames)
        m.parameters.push_back(goldens.tensor(name).to(dtype).requires_grad_());
      return m;
    };
    INFO(type);
    {
      const Mlp m = fresh();
      nn::cross_entropy(m(x), labels).backward();
      for (std::size_t i = 0; i < m.parameters.size(); ++i) {
        INFO(kNames[i]);
        CHECK(difference(m.parameters[i].grad(), goldens.tensor(type + ".d" + kNames[i])) == "");
      }
    }
    const Mlp sgd_model = fresh(), adamw_model = fresh();
    optim::SGD sgd(sgd_model.parameters, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
    optim::AdamW adamw(adamw_model.parameters, {.lr = 0.01, .weight_decay = 0.01});
    check_losses(train(sgd_model, sgd, x, labels), goldens.tensor("sgd." + type + ".losses"));
    check_losses(train(adamw_model, adamw, x, labels), goldens.tensor("adamw." + type + ".losses"));
    const double tolerance = dtype == DType::float64 ? 1e-10 : 1e-4;
    for (std::size_t i : {std::size_t{4}, std::size_t{5}}) {
      INFO(kNames[i]);
      CHECK(difference(sgd_model.parameters[i], goldens.tensor("sgd." + type + "." + kNames[i]),
                       tolerance, tolerance) == "");
      CHECK(difference(adamw_model.parameters[i], goldens.tensor("adamw." + type + "." + kNames[i]),
                       tolerance, tolerance) == "");
    }
  }
}

TEST_CASE("training: a Sequential with given weights has PyTorch's ten losses",
          "[nn][optim][goldens]") {
  const Goldens goldens("mlp.txt", here());
  const nn::Sequential model = home(nn::Sequential{
      nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4)});
  const std::vector<Tensor> list = parameters(model);
  REQUIRE(list.size() == 6);
  {
    NoGrad guard;
    for (std::size_t i = 0; i < list.size(); ++i) list[i].copy_(goldens.tensor(kNames[i]));
  }
  optim::SGD sgd(list, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  check_losses(train(model, sgd, goldens.tensor("x"), goldens.tensor("labels")),
               goldens.tensor("sgd.float32.losses"));
}

}  // namespace braid::test::on_device
