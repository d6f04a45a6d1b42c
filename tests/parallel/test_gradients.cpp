// Values and gradients equal those of one device, for any number of devices.
#include "group.hpp"

namespace braid::test::on_device {

namespace {

struct Buffers : nn::Module {
  nn::Buffer t_rg, t_not_rg;
  Tensor operator()(const Tensor& x) const { return x * t_rg + t_not_rg; }
  BRAID_FIELDS(t_rg, t_not_rg)
};

/// Weights are packed in every call, so nothing needs re-flattening.
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

/// Four convolutions, each with a separate dtype.
struct Mixed : nn::Module {
  std::array<DType, 4> types;
  nn::Conv2d conv0, conv1, conv2, conv3;
  Mixed(const std::array<DType, 4>& t, std::int64_t width)
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

struct ConvNet : nn::Module {
  nn::Conv2d conv{2, 2, 2};
  nn::Linear fc{8, 2};
  Tensor operator()(const Tensor& x) const { return log_softmax(fc(relu(conv(x)).flatten(1)), 1); }
  BRAID_FIELDS(conv, fc)
};

/// One parameter that no replica uses, and one that only some replicas use.
struct Sometimes : nn::Module {
  nn::Parameter always{ones({1})}, some{ones({1})}, never{ones({1})};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = x * always;
    return always.device().index() % 2 == 1 ? y * some : y;
  }
  BRAID_FIELDS(always, some, never)
};

/// Keeps, or computes again, what its layers save.
struct Checkpointed : nn::Module {
  nn::Linear fc1{4, 16}, fc2{16, 2};
  nn::BatchNorm1d norm{16};
  nn::Dropout drop{0.5};
  bool again = false;
  Tensor operator()(const Tensor& x) const {
    const auto hidden = [this](const Tensor& t) { return drop(relu(norm(fc1(t)))); };
    return fc2(again ? checkpoint(hidden, x) : hidden(x));
  }
  BRAID_FIELDS(fc1, fc2, norm, drop, again)
};

template <class M> M in_double(M module) {
  to(module, device(0), DType::float64);
  return module;
}

/// The input is on the second device. Output and gradients with both device orders must equal those
/// of the module on that device.
template <class M> void check_against_one_device(M model, const Tensor& x) {
  to(model, x.device());
  const Tensor expected = model(x);
  square(expected).sum().backward();
  const std::vector<Tensor> expected_gradients = gradients_of(parameters(model));
  for (const std::vector<Device>& ids : orders()) {
    to(model, ids.front());
    zero_grad(model);
    const Tensor output = data_parallel(model, x, ids);
    square(output).sum().backward();
    CHECK(output.device() == ids.front());
    CHECK_CLOSE(output, expected, tolerance(DType::float32));
    for (const Tensor& g : gradients_of(parameters(model))) CHECK(g.device() == ids.front());
    check_close(gradients_of(parameters(model)), expected_gradients, {1e-5, 1e-5});
  }
  to(model, device(0));
  CHECK_CLOSE(data_parallel(model, x), expected, tolerance(DType::float32));
}

}  // namespace

ACCEPTANCE("T01: a buffer that requires a gradient, and one that does not") {
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
    CHECK(gradient_difference(function_of([&](const Tensor& rg) { return wrapped(rg)(x); }), {t}) ==
          "");
    const auto model = wrapped(t);
    CHECK(model.module.t_rg.requires_grad());
    CHECK_CLOSE(model(x), model.module(x), tolerance(DType::float64));
    model(x).sum().backward();
    CHECK_CLOSE(model.module.t_rg.grad(), x.sum(Shape{0}), tolerance(DType::float64));
    CHECK_FALSE(model.module.t_not_rg.grad().defined());
  }
}

ACCEPTANCE("T02: a bidirectional LSTM, first without gradients, then one step") {
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
      const auto y = model(x);
      CHECK_FALSE(std::get<0>(y).requires_grad());
      check_close(tree::leaves(y), tree::leaves(plain(x)), tolerance(DType::float64));
    }
    step(plain, ids.front());
    step(model, ids.front());
    REQUIRE(parameters(model).size() == 8);
    check_close(parameters(model), parameters(plain), {1e-10, 1e-12});
    for (std::size_t k = 0; k < 8; ++k)
      CHECK_FALSE(equal(parameters(model)[k], parameters(start)[k]));
  }
}

ACCEPTANCE("T12: an input on the second device, in both orders") {
  check_against_one_device(nn::Linear(10, 5),
                           random_tensor({20, 10}, DType::float32, device(up_to(2) - 1)));
}

TEST_CASE("gradients: an embedding's, dense, is that of one device", "[gradients]") {
  check_against_one_device(nn::Embedding(10, 5),
                           randint(0, 10, {20, 5}, {.device = device(up_to(2) - 1), .seed = 3}));
}

ACCEPTANCE("T18: a gradient penalty") {
  for (const std::vector<Device>& ids : orders()) {
    const DataParallel model(placed_on(nn::Linear(4, 1), ids.front()), ids);
    const Tensor x = ones({2, 4}, {.requires_grad = true}).to(ids.front());
    const Tensor y = model(x);
    const Tensor dx = grad(std::vector<Tensor>{y}, std::vector<Tensor>{x},
                           std::vector<Tensor>{ones_like(y)}, true, true)[0];
    CHECK(equal(dx[0], model.module.weight[0].detach()));
    dx.mean().backward();
    REQUIRE(parameters(model).size() == 2);
    CHECK(numbers(model.module.weight.grad()) == std::vector<double>(4, 0.25));
    // PyTorch gives 0: here a parameter that is in no gradient gets none
    CHECK_FALSE(model.module.bias.grad().defined());
  }
}

ACCEPTANCE("T30: four convolutions in mixed types") {
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
    const Mixed plain = home(Mixed(types, width));
    const DataParallel model(clone(plain), devices());
    optim::SGD optimizer(parameters(plain), {.lr = 0.1}), split(parameters(model), {.lr = 0.1});
    for (int iteration = 0; iteration < 2; ++iteration) {  // the second starts without gradients
      nn::mse_loss(plain(x).to(single), target).backward();
      nn::mse_loss(model(x).to(single), target).backward();
      REQUIRE(parameters(model).size() == 8);
      for (const Tensor& p : parameters(model)) {
        CHECK(p.grad().dtype() == p.dtype());
        CHECK(p.grad().strides() == p.strides());
      }
      check_close(gradients_of(parameters(model)), gradients_of(parameters(plain)), {tol, tol});
      optimizer.step();
      split.step();
      optimizer.zero_grad();
      split.zero_grad();
    }
  }
}

ACCEPTANCE("C9: a convolution and a layer train as on one device") {
  const int steps = static_cast<int>(cut(20, 3));
  for (const std::vector<Device>& ids : orders())
    for (const DType type : {DType::float32, DType::float64}) {
      ConvNet start;
      to(start, ids.front(), type);
      ConvNet plain = clone(start), split = clone(start);
      DataParallel wrapped(clone(start), ids);
      const auto step = [](const auto& module, const Tensor& output) {
        optim::SGD optimizer(parameters(module), {.lr = 0.1});
        nn::mse_loss(output, zeros_like(output)).backward();
        optimizer.step();  // the gradients are not removed, so they accumulate
      };
      for (int i = 0; i < (type == DType::float32 ? 3 : steps); ++i) {
        const Tensor x = random_tensor({type == DType::float32 ? cut(16, 4) : 11, 2, 3, 3}, type,
                                       ids.front(), static_cast<std::uint64_t>(i + 1));
        step(plain, plain(x));
        step(split, data_parallel(split, x, ids));
        step(wrapped, wrapped(x));
      }
      const Tolerance close =
          type == DType::float32 ? Tolerance{1e-5, 1e-6} : Tolerance{1e-10, 1e-10};
      check_close(parameters(split), parameters(plain), close);
      check_close(parameters(wrapped), parameters(plain), close);
      for (std::size_t k = 0; k < 4; ++k)
        CHECK_FALSE(equal(parameters(plain)[k], parameters(start)[k]));
    }
}

TEST_CASE("gradients: 2175 … 2295 and 30, exactly, over any devices", "[gradients]") {
  const Tensor x = counting({30, 5});
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const DataParallel model(home(nn::Linear(5, 2)), group(n));
    for (int repeat = 1; repeat <= 2; ++repeat) {  // they accumulate
      model(x).sum().backward();
      std::vector<double> expected;
      for (int row = 0; row < 2; ++row)
        for (const double g : {2175.0, 2205.0, 2235.0, 2265.0, 2295.0})
          expected.push_back(repeat * g);
      CHECK(numbers(model.module.weight.grad()) == expected);
      CHECK(numbers(model.module.bias.grad()) == std::vector<double>(2, repeat * 30.0));
      CHECK(model.module.weight.grad().device() == device(0));
    }
  }
}

TEST_CASE("gradients: a penalty on the parameters' gradient, through every bucket", "[gradients]") {
  const auto plain = in_double(nn::Sequential{nn::Linear(6, 6), nn::Tanh(), nn::Linear(6, 3)});
  const Tensor x = random_tensor({7, 6}, DType::float64).requires_grad_();
  const std::vector<Tensor> expected =
      penalty_gradients(plain, x, parameters(plain), parameters(plain));
  for (int n = 1; n <= device_count(); ++n)
    for (const std::size_t bytes : {parallel::kBucketBytes, std::size_t{64}}) {
      const DataParallel model(clone(plain), group(n), DataParallelOptions{.bucket_bytes = bytes});
      check_close(penalty_gradients(model, x, parameters(model), parameters(model)), expected,
                  {1e-10, 1e-10});
    }
}

TEST_CASE("gradients: numeric ones, and of gradients, through DataParallel", "[gradients]") {
  for (int n = 2; n <= up_to(3); ++n) {
    const auto f = [n](const Tensor& w, const Tensor& b, const Tensor& x) {
      struct Layer : nn::Module {
        Tensor w, b;
        Tensor operator()(const Tensor& in) const { return tanh(linear(in, w, b)); }
        BRAID_FIELDS(w, b)
      } layer;
      layer.w = w, layer.b = b;
      return data_parallel(layer, x, group(n));
    };
    CHECK_GRAD(f, random_tensor({2, 3}, DType::float64, {}, 1).requires_grad_(),
               random_tensor({2}, DType::float64, {}, 2).requires_grad_(),
               random_tensor({4, 3}, DType::float64, device(n - 1), 3).requires_grad_());
  }
}

TEST_CASE("gradients: of any batch on any devices, as of one device", "[gradients]") {
  const auto plain = in_double(nn::Sequential{nn::Linear(5, 7), nn::ReLU(), nn::Linear(7, 3)});
  for (const std::int64_t batch : {1, 2, 3, 7, 10, 17}) {
    const Tensor x =
        random_tensor({batch, 5}, DType::float64, {}, static_cast<std::uint64_t>(batch));
    const Tensor labels = randint(0, 3, {batch}, {.seed = 3});
    zero_grad(plain);
    const Tensor loss = nn::cross_entropy(plain(x), labels);
    loss.backward();
    for (int n = 1; n <= device_count(); ++n) {
      const DataParallel model(clone(plain), group(n));
      const Tensor split_loss = nn::cross_entropy(model(x), labels);
      CHECK_CLOSE(split_loss, loss, tolerance(DType::float64));
      split_loss.backward();
      check_close(gradients_of(parameters(model)), gradients_of(parameters(plain)),
                  tolerance(DType::float64));
    }
  }
}

TEST_CASE("gradients: none of a parameter that is frozen or that no replica used", "[gradients]") {
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(Sometimes{}), group(n));
    model(ones({2 * n, 1})).sum().backward();
    CHECK(numbers(model.module.always.grad())[0] == 2.0 * n);
    if (n > 1) CHECK(numbers(model.module.some.grad())[0] == 2.0 * (n / 2));
    CHECK_FALSE(model.module.never.grad().defined());
    DataParallel frozen(home(Net{}), group(n));
    requires_grad_(frozen.module.fc1, false);
    frozen(ones({9, 4})).sum().backward();
    CHECK_FALSE(frozen.module.fc1.weight.grad().defined());
    CHECK(numbers(frozen.module.fc2.bias.grad()) == std::vector<double>(3, 9.0));
  }
}

TEST_CASE("gradients: the same bits in every run", "[gradients]") {
  const Tensor x = random_tensor({64, 20});
  const std::int64_t width = cut(600, 130);
  DataParallel model(
      home(nn::Sequential{nn::Linear(20, width), nn::ReLU(), nn::Linear(width, width), nn::Tanh(),
                          nn::Linear(width, 1)}));
  std::vector<Tensor> first;
  for (int run = 0; run < 5; ++run) {
    zero_grad(model);
    model(x).sum().backward();
    if (run == 0) first = gradients_of(parameters(model));
    check_same(gradients_of(parameters(model)), first);
  }
}

TEST_CASE("gradients: a weight changed between forward and backward is noticed", "[gradients]") {
  const DataParallel model(home(nn::Sequential{nn::Linear(4, 4), nn::Linear(4, 1)}));
  const Tensor y = model(ones({device_count() * 2, 4})).sum();
  unrecorded([&] { std::get<1>(model.module.layers).weight.mul_(2.0); });
  if (device_count() == 1) {
    CHECK_THROWS_TEXT(AutogradError, "changed in place", y.backward());
    return;
  }
  CHECK_THROWS_TEXT(ReplicaError,
                    here("Caught AutogradError in replica 0 on device cpu:0: *changed in place"),
                    y.backward());
}

TEST_CASE("gradients: checkpoint inside of replicas changes no bit; around them it is refused",
          "[gradients]") {
  const Tensor x = random_tensor({8 * device_count(), 4});
  std::vector<Tensor> kept;
  for (const bool again : {false, true}) {
    manual_seed(1);
    DataParallel model(home(Checkpointed()), group(device_count()));
    model.module.again = again;
    model(x).sum().backward();
    std::vector<Tensor> all = gradients_of(parameters(model));
    for (const Tensor& b : buffers(model)) all.push_back(b);
    if (again) check_same(all, kept);
    else kept = std::move(all);
    CHECK_THROWS_TEXT(AutogradError, "DataParallel: expected a call outside of checkpoint",
                      (void)checkpoint(model, x));
  }
}

}  // namespace braid::test::on_device
