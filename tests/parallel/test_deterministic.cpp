// DeterministicDataParallel: the same bits for every number of devices.
#include <algorithm>

#include "group.hpp"

namespace braid::test::on_device {

using parallel::MergeBuffers;

namespace {

/// Everything that depends on the whole batch: statistics, masks, a weight that is used twice.
struct Images : nn::Module {
  nn::Conv2d conv{1, 3, 3};
  nn::BatchNorm2d norm{3};
  nn::Dropout dropout{0.3};
  nn::Linear fc{3 * 4 * 4, 4};
  nn::BatchNorm1d last{4};
  Tensor operator()(const Tensor& x) const {
    return last(fc(dropout(relu(norm(conv(x)))).flatten(1)));
  }
  BRAID_FIELDS(conv, norm, dropout, fc, last)
};

/// Sequences [time, batch], split along dim 1.
struct Words : nn::Module {
  nn::Embedding embedding{11, 6};
  nn::LSTM lstm{6, 5};
  nn::Dropout dropout{0.2};
  nn::Linear decoder{5, 11};
  Tensor operator()(const Tensor& tokens) const {
    return decoder(dropout(lstm(embedding(tokens)).output));
  }
  BRAID_FIELDS(embedding, lstm, dropout, decoder)
};

struct Perceptron : nn::Module {
  nn::Linear fc1{8, 16}, fc2{16, 5};
  Tensor operator()(const Tensor& x) const { return fc2(relu(fc1(x.flatten(1)))); }
  BRAID_FIELDS(fc1, fc2)
};

struct Attends : nn::Module {
  nn::TransformerEncoderLayer layer{
      8, 2, {.dim_feedforward = 12, .dropout = 0.1, .batch_first = true}};
  Tensor operator()(const Tensor& x) const {
    return layer(x.reshape({-1, 4, 2}).flatten(1).reshape({-1, 1, 8})).flatten(1);
  }
  BRAID_FIELDS(layer)
};

/// A result used three times, a strided weight, a field that forward writes.
struct Uses : nn::Module {
  nn::Parameter weight{random_tensor({40, 5}, DType::float32, {}, 8).t()};
  Tensor noted = zeros({40}), scale = random_tensor({15}, DType::float32, {}, 10);
  Tensor operator()(const Tensor& x) const {
    unrecorded([&] { noted.mul_(0.5).add_(x.detach().mean({0})); });
    const Tensor h = tanh(matmul(x, weight.t()));
    return cat({h, h, h}, 1) * scale + noted.sum();
  }
  BRAID_FIELDS(weight, noted, scale)
};

/// An argument without dimensions, and a buffer that replicas write.
struct Scaled : nn::Module {
  nn::Linear fc{3, 2};
  nn::Buffer seen{zeros({3})};
  Tensor operator()(const Tensor& x, const Tensor& scale) const {
    unrecorded([&] { seen.mul_(0.5).add_(x.detach().mean({0})); });
    return fc(x) * scale;
  }
  BRAID_FIELDS(fc, seen)
};

using Optimizer = std::unique_ptr<optim::Optimizer>;
using MakeOptimizer = std::function<Optimizer(const std::vector<Tensor>&)>;
template <class O, class Options> MakeOptimizer maker(Options options) {
  return [options](const std::vector<Tensor>& p) { return std::make_unique<O>(p, options); };
}
MakeOptimizer sgd() { return maker<optim::SGD>(optim::SgdOptions{.lr = 0.05, .momentum = 0.9}); }

/// Checks that parameters and buffers after a step with each batch have the same bits over any
/// number of devices.
template <class M>
void check_training(const M& start, const DeterministicOptions& options,
                    const std::vector<Tensor>& batches, const MakeOptimizer& make) {
  check_same_over_counts([&](int n) {
    manual_seed(7);
    DeterministicDataParallel model(clone(start), group(n), options);
    const Optimizer optimizer = make(parameters(model));
    for (const Tensor& x : batches) {
      const Tensor y = model(x);
      optimizer->zero_grad();
      (y * y).mean().backward();
      optimizer->step();
    }
    std::vector<Tensor> state;
    for (const auto& [name, tensor] : state_dict(model)) state.push_back(tensor.clone());
    return state;
  });
}

}  // namespace

TEST_CASE("deterministic: the same bits: images, uneven batches, all optimizers",
          "[deterministic]") {
  const Images start = home(Images{});
  const std::vector<Tensor> batches = {random_tensor({26, 1, 6, 6}, DType::float32, device(0), 1),
                                       random_tensor({7, 1, 6, 6}, DType::float32, device(0), 2)};
  const std::pair<const char*, MakeOptimizer> optimizers[] = {
      {"SGD", sgd()},
      {"AdamW", maker<optim::AdamW>(optim::AdamWOptions{})},
      {"RMSprop", maker<optim::RMSprop>(optim::RMSpropOptions{})},
      {"Adagrad", maker<optim::Adagrad>(optim::AdagradOptions{})},
      {"Adam", maker<optim::Adam>(optim::AdamOptions{.amsgrad = true})},
      {"Lion", maker<optim::Lion>(optim::LionOptions{})}};
  for (const auto& [name, make] : optimizers) {
    INFO(name);
    check_training(start, {.virtual_replicas = emulated() ? 10 : 24}, batches, make);
  }
}

TEST_CASE("deterministic: the same bits: 20 steps of perceptron and Transformer",
          "[deterministic]") {
  std::vector<Tensor> batches;
  for (int step = 0; step < static_cast<int>(cut(20, 3)); ++step)
    batches.push_back(random_tensor({step % 3 == 2 ? 11 : 30, 4, 2}, DType::float32, device(0),
                                    static_cast<std::uint64_t>(step)));
  const int count = emulated() ? 10 : 24;
  check_training(home(Perceptron{}), {.virtual_replicas = count}, batches, sgd());
  check_training(home(Attends{}), {.virtual_replicas = count}, batches, sgd());
}

TEST_CASE("deterministic: the same bits along dim 1, with an embedding and an LSTM",
          "[deterministic]") {
  std::vector<Tensor> batches;
  for (const std::int64_t rows : {13, 3, 1}) {
    manual_seed(static_cast<std::uint64_t>(rows));
    batches.push_back(randint(0, 11, {4, rows}, {.device = device(0)}));
  }
  check_training(home(Words{}), {.virtual_replicas = 8, .dim = 1}, batches, sgd());
}

TEST_CASE("deterministic: the same bits: strided weight, fields, sums of chunks",
          "[deterministic]") {
  Uses start;
  to(start, device(0));
  REQUIRE_FALSE(start.weight.is_contiguous());
  const Tensor x = random_tensor({19, 40}, DType::float32, device(0), 9);
  check_same_over_counts([&](int n) -> std::vector<Tensor> {
    Uses module = clone(start);
    module.noted = start.noted.clone();
    const DeterministicDataParallel model(std::move(module), group(n),
                                          DeterministicOptions{.virtual_replicas = 7});
    const Tensor out = model(x);
    (out * out).sum().backward();
    return {out, model.module.weight.grad(), model.module.noted};
  });
  // along dim 1, where chunks on the first device are not contiguous
  const Made sums = home(Made([](const Tensor& weight, const Tensor& part) {
    return part * weight * (part.sum() + part.sum({0}) + part.mean({1}, true));
  }));
  const Tensor wide = random_tensor({37, 50}, DType::float32, device(0), 12).requires_grad_(),
               dy = random_tensor({37, 50}, DType::float32, device(0), 13);
  check_same_over_counts([&](int n) -> std::vector<Tensor> {
    const DeterministicDataParallel model(clone(sums), group(n),
                                          DeterministicOptions{.virtual_replicas = 3, .dim = 1});
    wide.set_grad({});
    model(wide).backward(dy);
    return {model.module.weight.grad(), wide.grad()};
  });
  // the gradient of an input without dimensions, and merged buffers
  const Scaled scaled = home(Scaled{});
  const Tensor rows = random_tensor({17, 3}, DType::float32, device(0), 4);
  for (const MergeBuffers rule : {MergeBuffers::replica0, MergeBuffers::mean})
    check_same_over_counts([&](int n) -> std::vector<Tensor> {
      const DeterministicDataParallel model(
          clone(scaled), group(n),
          DeterministicOptions{.virtual_replicas = 9, .merge_buffers = rule});
      const Tensor scale = tensor(1.7, {.device = device(0)}).requires_grad_();
      const Tensor y = model(rows, scale);
      (y * y).sum().backward();
      return {scale.grad(), model.module.seen};
    });
}

TEST_CASE("deterministic: replicas compute what one device computes, with its statistics",
          "[deterministic]") {
  Images plain = home(Images{});
  to(plain, DType::float64);
  plain.dropout.p = 0;
  DeterministicDataParallel model(clone(plain), group(up_to(3)),
                                  DeterministicOptions{.virtual_replicas = 5});
  const Tensor x = random_tensor({12, 1, 6, 6}, DType::float64, device(0), 3),
               x2 = x.detach().clone();
  x.requires_grad_();
  x2.requires_grad_();
  const Tensor y = model(x), expected = plain(x2);
  CHECK_CLOSE(y, expected, (Tolerance{1e-9, 1e-10}));
  (y * y * y).sum().backward();
  (expected * expected * expected).sum().backward();
  CHECK_CLOSE(x.grad(), x2.grad(), (Tolerance{1e-7, 1e-9}));
  check_close(gradients_of(parameters(model)), gradients_of(parameters(plain)), {1e-7, 1e-8});
  const nn::BatchNorm2d& norm = model.module.norm;
  CHECK_CLOSE(norm.running_mean, plain.norm.running_mean, (Tolerance{1e-10, 1e-11}));
  CHECK_CLOSE(norm.running_var, plain.norm.running_var, (Tolerance{1e-10, 1e-11}));
  CHECK(norm.num_batches_tracked.item<int>() == 1);
  // Evaluation, and the gradient of a gradient.
  eval(model);
  eval(plain);
  CHECK_CLOSE(model(x), plain(x2), (Tolerance{1e-9, 1e-10}));
  check_close(penalty_gradients(model, x, {x}, {model.module.conv.weight}),
              penalty_gradients(plain, x2, {x2}, {plain.conv.weight}), {1e-7, 1e-8});
}

TEST_CASE("deterministic: min(virtual replicas, rows) by the balanced rule, in order",
          "[deterministic]") {
  const Made places = home(Made([](const Tensor&, const Tensor& x) {
    return std::tuple(full({1}, static_cast<double>(x.size(0)), {.device = x.device()}),
                      full({1}, static_cast<double>(x.device().index()), {.device = x.device()}));
  }));
  using List = std::vector<double>;
  for (int n = 1; n <= device_count(); ++n) {
    const DeterministicDataParallel model(clone(places), group(n),
                                          DeterministicOptions{.virtual_replicas = 6});
    const auto [rows, where] = model(ones({14, 2}));
    CHECK(numbers(rows) == List{3, 3, 2, 2, 2, 2});
    const List index = numbers(where);
    CHECK(std::is_sorted(index.begin(), index.end()));
    std::map<double, int> owned;
    for (const double i : index) ++owned[i];
    for (const auto& [i, count] : owned) CHECK((count == 6 / n || count == 6 / n + 1));
    CHECK(owned.size() == usize(std::min(n, 6)));
    CHECK(numbers(std::get<0>(model(ones({4, 2})))) == List{1, 1, 1, 1});
    CHECK(model.replicas(ones({14, 2})).size() == 6);
  }
}

TEST_CASE("deterministic: one that fails is named, and the next call works", "[deterministic]") {
  struct Fails : nn::Module {
    nn::BatchNorm1d norm{2};
    int mark = -1;  // the value in the rows of the failing replica
    bool after = false;
    Tensor operator()(const Tensor& x) const {
      const bool fails = static_cast<int>(x.max().item<double>()) == mark;
      if (fails && !after) throw ArgumentError("asked to fail");
      const Tensor y = norm(x);
      if (fails) throw ArgumentError("asked to fail");
      return y;
    }
    BRAID_FIELDS(norm, mark, after)
  };
  const Tensor x = arange(0, 12, 1, {.device = device(0), .dtype = DType::float32}).reshape({6, 2});
  for (int n = 1; n <= up_to(4); ++n) {
    DeterministicDataParallel model(home(Fails{}), group(n),
                                    DeterministicOptions{.virtual_replicas = 6});
    const Tensor before = model.module.norm.running_mean.clone();
    for (int replica = 0; replica < 6; ++replica) {
      model.module.mark = 2 * replica + 1;
      for (const bool after : {false, true}) {
        model.module.after = after;
        CHECK_THROWS_TEXT(
            ReplicaError,
            str("Caught ArgumentError in replica ", replica, " on device *: asked to fail"),
            model(x));
        if (!after) CHECK_SAME_BITS(model.module.norm.running_mean, before);
      }
      model.module.norm.running_mean.copy_(before);
    }
    model.module.mark = -1;
    CHECK(model(x).shape() == Shape{6, 2});
  }
}

TEST_CASE("deterministic: what cannot be is refused", "[deterministic][errors]") {
  const auto make = [](parallel::DeviceList on, DeterministicOptions options) {
    return DeterministicDataParallel(home(nn::Linear(2, 2)), std::move(on), std::move(options));
  };
  CHECK_THROWS_TEXT(ArgumentError,
                    "DeterministicDataParallel: expected virtual_replicas >= 1, got 0",
                    make(group(1), {.virtual_replicas = 0}));
  CHECK_THROWS_TEXT(
      ArgumentError,
      "DeterministicDataParallel: expected a device at least for 4 virtual replicas, got none",
      make({}, {.virtual_replicas = 4}));
  CHECK_THROWS_TEXT(DeviceError, "DeterministicDataParallel: expected each device once*",
                    make({device(0), device(0)}, {}));
  const auto model = make(group(1), {.virtual_replicas = 4});
  CHECK(model(ones({0, 2})).shape() == Shape{0, 2});
  // A copy has the same options, a moved one them too.
  const auto copy = model;
  CHECK(copy.replicas(ones({8, 2})).size() == 4);
  const parallel::DataParallel<nn::Linear> base = make(group(1), {.virtual_replicas = 3});
  CHECK(base.replicas(ones({8, 2})).size() == 3);
}

}  // namespace braid::test::on_device
