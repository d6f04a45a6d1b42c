// Layers: initial values and results.
#include <braid/braid.hpp>

#include <future>

#include "layer_here.hpp"
#include "moments.hpp"
#include "refused.hpp"
#include "trees.hpp"

namespace braid::test::on_device {

TEST_CASE("Linear: starts uniform in ±1/√in, weight and bias", "[nn][layers]") {
  const nn::Linear linear = layer(400, 300);
  CHECK(linear.weight.shape() == Shape{300, 400});
  CHECK(linear.bias.shape() == Shape{300});
  for (const Tensor& t : {Tensor(linear.weight), Tensor(linear.bias)}) {
    const Moments m = moments(t);
    CHECK(m.low >= -0.05);
    CHECK(m.low < -0.048);
    CHECK(m.high > 0.048);
    CHECK(m.high < 0.05);
    CHECK(std::abs(m.mean) < 0.005);
    CHECK(m.deviation * m.deviation == Approx(0.05 * 0.05 / 3).epsilon(0.15));
    CHECK(t.requires_grad());
    CHECK(t.is_leaf());
  }
}

TEST_CASE("Layers are made on the default device, the state of optimizers on the host",
          "[nn][layers]") {
  const Device second("cpu:1");
  const DefaultDeviceGuard guard(second);
  nn::Linear linear(2, 3);
  CHECK(linear.weight.device() == second);
  CHECK(nn::Conv2d(2, 3, 1).bias.device() == second);
  CHECK(nn::BatchNorm1d(2).running_mean.device() == second);
  CHECK(nn::BatchNorm1d(2).num_batches_tracked.device() == second);
  CHECK(nn::Embedding(2, 3).weight.device() == second);
  CHECK(nn::PositionalEncoding(4).pe.device() == second);
  CHECK(nn::LSTM(2, 3).weights.at("weight_ih_l0").device() == second);
  CHECK(nn::Linear(2, 3, {.device = Device()}).weight.device() == Device());
  nn::init::orthogonal_(linear.weight);
  nn::init::sparse_(linear.weight, 0.5);
  nn::init::trunc_normal_(linear.weight);
  CHECK(linear.weight.device() == second);

  optim::SGD optimizer(parameters(linear), {.lr = 0.1, .momentum = 0.9});
  linear(ones({4, 2}, {.device = second})).sum().backward();
  const double before = linear.bias.to_vector<double>()[0];
  optimizer.step();
  CHECK(std::abs(linear.bias.to_vector<double>()[0] - (before - 0.4)) < 1e-6);
}

TEST_CASE("Linear: y = x wᵀ + b for vectors, matrices and batches, against plain loops",
          "[nn][layers]") {
  for (const Device device : test::test_devices())
    for (const DType dtype : {DType::float32, DType::float64}) {
      const nn::Linear linear(5, 3, {.device = device, .dtype = dtype});
      for (const Sizes& shape : {Sizes{5}, {1, 5}, {7, 5}, {2, 3, 5}, {0, 5}}) {
        const Tensor x = random_tensor(shape, dtype, device), y = linear(x).detach();
        CHECK(y.device() == device);
        const Array v = array_of(x), w = array_of(linear.weight), b = array_of(linear.bias);
        Sizes outputs = shape;
        outputs.back() = 3;
        Array expected(outputs);
        for (std::size_t k = 0; k < expected.data.size(); ++k) {
          expected.data[k] = b.data[k % 3];
          for (std::size_t i = 0; i < 5; ++i)
            expected.data[k] += v.data[k / 3 * 5 + i] * w.data[k % 3 * 5 + i];
        }
        CHECK_CLOSE(y, expected, tolerance(dtype));
      }
    }
}

TEST_CASE("Linear: without bias, empty, and sizes that are refused", "[nn][layers]") {
  const nn::Linear plain = layer(2, 2, {.bias = false});
  CHECK(!plain.bias.defined());
  CHECK(parameters(plain).size() == 1);
  CHECK_CLOSE(plain(eye(2)), plain.weight.t(), tolerance(DType::float32));
  const nn::Linear none = layer(0, 2);
  CHECK(none(zeros({3, 0})).to_vector<double>() == std::vector<double>(6, 0));
  CHECK_THROWS_TEXT(ArgumentError, "Linear: expected in_features >= 0, got -1", nn::Linear(-1, 2));
  CHECK_THROWS_TEXT(ArgumentError, "Linear: expected out_features >= 0, got -2", nn::Linear(1, -2));
  CHECK_THROWS_AS(plain(ones({2, 3})), ShapeError);
  CHECK_THROWS_AS(plain(ones({2, 2}, {.dtype = DType::float64})), DTypeError);
  CHECK_THROWS_AS(plain(ones({2, 2}, {.device = there()})), DeviceError);
}

TEST_CASE("Linear: the same seed gives the same layer", "[nn][layers]") {
  manual_seed(7);
  const nn::Linear a = layer(3, 4);
  manual_seed(7);
  const nn::Linear b = layer(3, 4), c = layer(3, 4);
  CHECK_SAME_BITS(a.weight, b.weight);
  CHECK_SAME_BITS(a.bias, b.bias);
  CHECK(test::same_bits(b.weight, c.weight) != "");
}

TEST_CASE("Embedding: standard normal rows, looked up; gradients to the rows that were",
          "[nn][layers]") {
  const nn::Embedding table = home(nn::Embedding(500, 40));
  const Moments m = moments(table.weight);
  CHECK(std::abs(m.mean) < 0.04);
  CHECK(m.deviation * m.deviation == Approx(1).epsilon(0.05));
  const Tensor words = tensor(std::vector<std::int64_t>{3, 499, 3});
  const Tensor y = table(words);
  REQUIRE(y.shape() == Shape{3, 40});
  CHECK_SAME_BITS(y[0], table.weight.detach()[3]);
  CHECK_SAME_BITS(y[1], table.weight.detach()[499]);
  y.sum().backward();
  const Tensor grad = table.weight.grad();
  CHECK(grad[3][0].item<double>() == 2);
  CHECK(grad[499][39].item<double>() == 1);
  CHECK(grad.sum().item<double>() == 120);
  CHECK_THROWS_TEXT(ArgumentError, "Embedding: expected num_embeddings >= 0, got -1",
                    nn::Embedding(-1, 2));
  CHECK_THROWS_AS(awaited(table(tensor(std::vector<std::int64_t>{500}))), IndexError);
}

TEST_CASE("activations: compute what the functions compute", "[nn][layers]") {
  const Tensor x = random_tensor({4, 6});
  CHECK_SAME_BITS(nn::ReLU()(x), relu(x));
  CHECK_SAME_BITS(nn::Tanh()(x), tanh(x));
  CHECK_SAME_BITS(nn::Sigmoid()(x), sigmoid(x));
  CHECK_SAME_BITS(nn::GELU()(x), gelu(x));
  CHECK_SAME_BITS(nn::GELU("tanh")(x), gelu(x, "tanh"));
  CHECK_SAME_BITS(nn::Softplus(2, 1)(x), softplus(x, 2, 1));
  CHECK_SAME_BITS(nn::ELU(0.5)(x), elu(x, 0.5));
  CHECK_SAME_BITS(nn::CELU(0.5)(x), celu(x, 0.5));
  CHECK_SAME_BITS(nn::LeakyReLU(0.2)(x), leaky_relu(x, 0.2));
  CHECK_SAME_BITS(nn::Hardtanh(-0.5, 0.7)(x), hardtanh(x, -0.5, 0.7));
#define BRAID_CHECK_LAYER(Layer, op) CHECK_SAME_BITS(nn::Layer()(x), op(x));
  BRAID_ACTIVATION_LAYERS(BRAID_CHECK_LAYER)
  CHECK_THROWS_TEXT(ArgumentError, "GELU: expected approximate \"none\" or \"tanh\", got \"erf\"",
                    nn::GELU("erf"));
  CHECK_THROWS_TEXT(ArgumentError, "Hardtanh: expected min_val < max_val, got 1 and 1",
                    nn::Hardtanh(1, 1));
  CHECK_SAME_BITS(nn::Softmax(0)(x), softmax(x, 0));
  CHECK_SAME_BITS(nn::LogSoftmax()(x), log_softmax(x, 1));
  CHECK(nn::Identity()(x).id() == x.id());
  CHECK(nn::Flatten()(ones({2, 1, 3, 4})).shape() == Shape{2, 12});
  CHECK(nn::Flatten(0, 1)(ones({2, 1, 3})).shape() == Shape{2, 3});
}

TEST_CASE("Sequential: one layer after the other, fields by number", "[nn][layers]") {
  const nn::Sequential model = home(nn::Sequential{nn::Linear(4, 3), nn::ReLU(), nn::Linear(3, 2)});
  const Tensor x = random_tensor({5, 4});
  CHECK_SAME_BITS(model(x), std::get<2>(model.layers)(relu(std::get<0>(model.layers)(x))));
  CHECK(keys(named_parameters(model)) == Names{"0.weight", "0.bias", "2.weight", "2.bias"});
  nn::Sequential inner{nn::Sequential{nn::ReLU(), nn::Tanh()}};  // copy deduction: the inner type
  static_assert(std::same_as<decltype(inner), nn::Sequential<nn::ReLU, nn::Tanh>>);
  const nn::Sequential<> nothing;
  CHECK(nothing(x).id() == x.id());
  nn::Sequential nested =
      home(nn::Sequential{nn::Flatten(), nn::Sequential{nn::Linear(4, 2), nn::Softmax()}});
  CHECK(named_parameters(nested).at(0).first == "1.0.weight");
  CHECK(nested(ones({3, 2, 2})).shape() == Shape{3, 2});
  const auto copy = clone(model);
  CHECK(std::get<0>(copy.layers).weight.id() != std::get<0>(model.layers).weight.id());
  eval(nested);
  CHECK_FALSE(std::get<1>(std::get<1>(nested.layers).layers).training);
}

TEST_CASE("losses: the names of nn are the functions of braid", "[nn][losses]") {
  const Tensor x = random_tensor({3, 4}), labels = tensor(std::vector<std::int64_t>{0, 3, 1});
  CHECK_SAME_BITS(nn::cross_entropy(x, labels), braid::cross_entropy(x, labels));
  CHECK_SAME_BITS(nn::mse_loss(x, x * 2.0, nn::Reduction::sum),
                  braid::mse_loss(x, x * 2.0, Reduction::sum));
  const Tensor y = random_tensor({3, 4});
  CHECK_SAME_BITS(braid::huber_loss(x, y, {.delta = 0.5}), nn::huber_loss(x, y, {.delta = 0.5}));
  CHECK_SAME_BITS(braid::huber_loss(braid::sum_and_count, x, y).sum,
                  nn::huber_loss(nn::sum_and_count, x, y).sum);
  CHECK_SAME_BITS(braid::binary_cross_entropy_with_logits(x, y, BceWithLogitsOptions{}),
                  nn::binary_cross_entropy_with_logits(x, y));
  using namespace braid::nn;  // one function with two names is not ambiguous
  CHECK_SAME_BITS(l1_loss(x, y), nn::l1_loss(x, y));
}

TEST_CASE("a model in evaluation mode gives several threads the bits that it gives one",
          "[nn][layers][threads]") {
  struct Net : nn::Module {
    nn::Conv2d conv{1, 4, 3};
    nn::BatchNorm2d norm{4};
    nn::Dropout drop{0.5};
    nn::Linear fc{4 * 6 * 6, 3};
    Tensor operator()(const Tensor& x) const { return fc(drop(relu(norm(conv(x)))).flatten(1)); }
    BRAID_FIELDS(conv, norm, drop, fc)
  };
  Net net = home(Net{});
  eval(net);
  const NoGrad guard;
  std::vector<Tensor> inputs, alone;
  const std::int64_t many = here().is_cpu() ? 1000 : 7;  // enough for the helpers of the pool
  for (const std::int64_t n : {std::int64_t{1}, std::int64_t{5}, many, many - 1})
    inputs.push_back(random_tensor({n, 1, 8, 8}));
  for (const Tensor& x : inputs) alone.push_back(net(x));
  const Net& model = net;
  const auto call = [&](std::size_t first) {
    const NoGrad none;  // holds for its thread
    std::size_t same = 0;
    for (std::size_t k = 0; k < 20; ++k) {
      const std::size_t i = (first + k) % inputs.size();
      same += equal(model(inputs[i]), alone[i]) ? 1 : 0;
    }
    return same;
  };
  std::vector<std::future<std::size_t>> threads;
  for (std::size_t i = 0; i < 4; ++i) threads.push_back(std::async(std::launch::async, call, i));
  for (auto& thread : threads) CHECK(thread.get() == 20);
}

}  // namespace braid::test::on_device
