// Acceptance: values and gradients are those of one device.
#include <braid/nn/conv.hpp>
#include <braid/nn/embedding.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/rnn.hpp>
#include <braid/parallel/data_parallel.hpp>

#include <array>
#include <tuple>

#include "acceptance.hpp"
#include "support/gradcheck.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::data_parallel;
using parallel::DataParallel;
using parallel::DataParallelOptions;

namespace {

struct Buffers : nn::Module {
  nn::Buffer t_rg, t_not_rg;
  Tensor operator()(const Tensor& x) const { return x * t_rg + t_not_rg; }
  BRAID_FIELDS(t_rg, t_not_rg)
};

/// Weights are packed in every call: there is nothing to re-flatten.
struct Bidirectional : nn::Module {
  nn::LSTM rnn;
  Bidirectional(std::int64_t input, std::int64_t hidden)
      : rnn(input, hidden, {.batch_first = true, .bidirectional = true}) {}
  std::tuple<Tensor, nn::LSTMState> operator()(const Tensor& x) const {
    const nn::LSTMOutput y = rnn(x);
    return {y.output, y.state()};
  }
  BRAID_FIELDS(rnn)
};

/// Four convolutions, each of a type of its own.
struct ConvNet : nn::Module {
  std::array<DType, 4> types;
  nn::Conv2d conv0, conv1, conv2, conv3;
  ConvNet(const std::array<DType, 4>& t, std::int64_t width)
      : types(t),
        conv0(width, 2 * width, 2, {.dtype = t[0]}),
        conv1(2 * width, 4 * width, 2, {.dtype = t[1]}),
        conv2(4 * width, 2 * width, 2, {.dtype = t[2]}),
        conv3(2 * width, width, 2, {.dtype = t[3]}) {}
  Tensor operator()(const Tensor& x) const {
    return conv3(conv2(conv1(conv0(x.to(types[0])).to(types[1])).to(types[2])).to(types[3]));
  }
  BRAID_FIELDS(types, conv0, conv1, conv2, conv3)
};

/// The input on the second device: output and gradients in both orders are those of the module
/// there.
template <class M> void check_against_one_device(M model, const Tensor& x) {
  const auto gradients = [&] {
    std::vector<Tensor> list;
    for (const Tensor& p : parameters(model)) list.push_back(p.grad());
    return list;
  };
  to(model, x.device());
  const Tensor expected = model(x);
  expected.sum().backward();
  const std::vector<Tensor> expected_gradients = gradients();
  for (const std::vector<Device>& ids : orders()) {
    to(model, ids.front());
    zero_grad(model);
    const Tensor output = data_parallel(model, x, ids);
    output.sum().backward();
    CHECK(output.device() == ids.front());
    CHECK_CLOSE(output, expected, tolerance(DType::float32));
    REQUIRE(gradients().size() == expected_gradients.size());
    for (std::size_t k = 0; k < expected_gradients.size(); ++k) {
      REQUIRE(gradients()[k].defined());
      CHECK(gradients()[k].device() == ids.front());
      CHECK_CLOSE(gradients()[k], expected_gradients[k], (Tolerance{1e-5, 1e-5}));
    }
  }
  to(model, device(0));
  CHECK_CLOSE(data_parallel(model, x), expected, tolerance(DType::float32));
}

}  // namespace

TEST_CASE("T01: a buffer that requires a gradient, and one that does not",
          "[parallel][acceptance]") {
  const std::int64_t width = cut(10, 4);
  for (const std::vector<Device>& ids : orders()) {
    const Device first = ids.front();
    const Tensor x = random_tensor({2, width}, DType::float64, first, 1),
                 t = random_tensor({width}, DType::float64, first, 2).requires_grad_();
    const auto wrapped = [&](const Tensor& rg) {
      Buffers buffers;
      buffers.t_rg = nn::Buffer(rg);
      buffers.t_not_rg = nn::Buffer(random_tensor({width}, DType::float64, first, 3));
      return DataParallel(std::move(buffers), ids);
    };
    CHECK(gradcheck(function_of([&](const Tensor& rg) { return wrapped(rg)(x); }), {t}) == "");
    const auto model = wrapped(t);
    CHECK(model.module.t_rg.requires_grad());
    CHECK_CLOSE(model(x), model.module(x), tolerance(DType::float64));
    model(x).sum().backward();
    CHECK_CLOSE(model.module.t_rg.grad(), x.sum(Shape{0}), tolerance(DType::float64));
    CHECK_FALSE(model.module.t_not_rg.grad().defined());
  }
}

TEST_CASE("T02: a bidirectional LSTM, first without gradients, then one step",
          "[parallel][acceptance]") {
  const std::int64_t input = cut(12, 5), hidden = cut(16, 3);
  const auto step = [&](const auto& model, Device at) {
    optim::SGD optimizer(parameters(model), {.lr = 10});
    const Tensor output =
        std::get<0>(model(ones({4, 4, input}, {.device = at, .dtype = DType::float64})));
    nn::mse_loss(output, zeros_like(output)).backward();
    optimizer.step();
  };
  for (const std::vector<Device>& ids : orders()) {
    Bidirectional start(input, hidden);
    to(start, ids.front(), DType::float64);
    Bidirectional plain = clone(start);
    // The states are [layers, batch, hidden].
    DataParallel model(clone(start), ids, DataParallelOptions{.output_dims = {0, 1}});
    {
      const NoGrad guard;
      const Tensor x = random_tensor({2, 4, input}, DType::float64, ids.front());
      const auto [output, state] = model(x);
      CHECK_FALSE(output.requires_grad());
      CHECK_CLOSE(output, std::get<0>(plain(x)), tolerance(DType::float64));
      CHECK_CLOSE(state.h, std::get<1>(plain(x)).h, tolerance(DType::float64));
      CHECK_CLOSE(state.c, std::get<1>(plain(x)).c, tolerance(DType::float64));
    }
    step(plain, ids.front());
    step(model, ids.front());
    const std::vector<Tensor> before = parameters(start), expected = parameters(plain),
                              after = parameters(model);
    REQUIRE(after.size() == 8);
    for (std::size_t k = 0; k < after.size(); ++k) {
      CHECK_CLOSE(after[k], expected[k], (Tolerance{1e-10, 1e-12}));
      CHECK_FALSE(equal(after[k], before[k]));
    }
  }
}

TEST_CASE("T12: an input on the second device, in both orders", "[parallel][acceptance]") {
  const Device at = device(device_count() > 1 ? 1 : 0);
  check_against_one_device(nn::Linear(10, 5), random_tensor({20, 10}, DType::float32, at));
}

TEST_CASE("an embedding's gradient, dense, is that of one device", "[parallel]") {
  const Device at = device(device_count() > 1 ? 1 : 0);
  check_against_one_device(nn::Embedding(10, 5),
                           randint(0, 10, {20, 5}, {.device = at, .seed = 3}));
}

TEST_CASE("T18: a gradient penalty", "[parallel][acceptance]") {
  for (const std::vector<Device>& ids : orders()) {
    const DataParallel model(placed_on(nn::Linear(4, 1), ids.front()), ids);
    const Tensor x = ones({2, 4}, {.requires_grad = true}).to(ids.front());
    zero_grad(model);
    const Tensor y = model(x);
    const Tensor dx = grad(std::vector<Tensor>{y}, std::vector<Tensor>{x},
                           std::vector<Tensor>{ones_like(y)}, true, true)[0];
    dx.mean().backward();
    REQUIRE(parameters(model).size() == 2);
    CHECK(numbers(model.module.weight.grad()) == std::vector<double>(4, 0.25));
    // PyTorch's is 0: a parameter that is in no gradient has none here (7.6)
    CHECK_FALSE(model.module.bias.grad().defined());
  }
}

TEST_CASE("T30: four convolutions in mixed types", "[parallel][acceptance]") {
  constexpr DType single = DType::float32, half = DType::float16;
  const std::int64_t batch = cut(4, 1) * device_count(), width = cut(4, 1), size = 8;
  std::size_t number = 0;
  for (const std::array<DType, 4>& types :
       {std::array{single, single, single, single}, std::array{single, single, half, half},
        std::array{half, half, half, half}}) {
    if (!mine(number++)) continue;
    INFO("types " << types[0] << " " << types[3]);
    const double tol = types[3] == half ? 1e-3 : 1e-5;
    const Tensor x = random_tensor({batch, width, size, size}, single, {}, 1),
                 target = random_tensor({batch, width, size - 4, size - 4}, single, {}, 2);
    const ConvNet plain = home(ConvNet(types, width));
    const DataParallel model(clone(plain), devices());
    optim::SGD optimizer(parameters(plain), {.lr = 0.1}), split(parameters(model), {.lr = 0.1});
    for (int iteration = 0; iteration < 2; ++iteration) {  // the second finds removed gradients
      nn::mse_loss(plain(x).to(single), target).backward();
      nn::mse_loss(model(x).to(single), target).backward();
      const std::vector<Tensor> expected = parameters(plain), got = parameters(model);
      REQUIRE(got.size() == 8);
      for (std::size_t k = 0; k < got.size(); ++k) {
        CHECK(got[k].grad().dtype() == got[k].dtype());
        CHECK(got[k].grad().strides() == got[k].strides());
        CHECK_CLOSE(got[k].grad(), expected[k].grad(), (Tolerance{tol, tol}));
      }
      optimizer.step();
      split.step();
      optimizer.zero_grad();
      split.zero_grad();
    }
  }
}

}  // namespace braid::test::on_device
