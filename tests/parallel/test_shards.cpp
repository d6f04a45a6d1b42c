// DataParallelOptions::shards: the same bits for every number of devices.
#include <braid/nn/conv.hpp>
#include <braid/nn/dropout.hpp>
#include <braid/nn/embedding.hpp>
#include <braid/nn/losses.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/rnn.hpp>
#include <braid/nn/transformer.hpp>
#include <braid/parallel/data_parallel.hpp>

#include <functional>
#include <map>
#include <tuple>

#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/linear.hpp>
#include <braid/core/replicas.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;
using parallel::MergeBuffers;

namespace {

/// Everything that looks at the whole batch: statistics, masks, a weight that is used twice.
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

std::vector<Tensor> state_of(const auto& model) {
  std::vector<Tensor> list;
  for (const auto& [name, tensor] : state_dict(model)) list.push_back(tensor.clone());
  return list;
}

/// Parameters and buffers after some steps over n devices.
template <class M>
std::vector<Tensor> trained(
    const M& start, int n, DataParallelOptions options, const std::vector<Tensor>& batches,
    const std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>& make) {
  manual_seed(7);
  DataParallel model(clone(start), group(n), std::move(options));
  const std::unique_ptr<optim::Optimizer> optimizer = make(parameters(model));
  for (const Tensor& x : batches) {
    const Tensor y = model(x);
    optimizer->zero_grad();
    (y * y).mean().backward();
    optimizer->step();
  }
  return state_of(model);
}

const std::vector<std::pair<
    const char*, std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>>>&
optimizers() {
  static const std::vector<std::pair<
      const char*, std::function<std::unique_ptr<optim::Optimizer>(const std::vector<Tensor>&)>>>
      list = {
          {"SGD",
           [](const auto& p) {
             return std::make_unique<optim::SGD>(p, optim::SgdOptions{.lr = 0.05, .momentum = 0.9});
           }},
          {"AdamW", [](const auto& p) { return std::make_unique<optim::AdamW>(p); }},
          {"RMSprop", [](const auto& p) { return std::make_unique<optim::RMSprop>(p); }},
          {"Adagrad", [](const auto& p) { return std::make_unique<optim::Adagrad>(p); }},
          {"Adam",
           [](const auto& p) {
             return std::make_unique<optim::Adam>(p, optim::AdamOptions{.amsgrad = true});
           }},
          {"Lion", [](const auto& p) { return std::make_unique<optim::Lion>(p); }},
      };
  return list;
}

void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); ++k) CHECK_SAME_BITS(got[k], want[k]);
}

}  // namespace

TEST_CASE(
    "9.1: shards: the same bits for every number of devices: convolution, BatchNorm, dropout, "
    "uneven batches, all optimizers",
    "[parallel][shards]") {
  const Images start = home(Images{});
  const std::vector<Tensor> batches = {random_tensor({26, 1, 6, 6}, DType::float32, device(0), 1),
                                       random_tensor({7, 1, 6, 6}, DType::float32, device(0), 2)};
  for (const auto& [name, make] : optimizers()) {
    INFO(name);
    std::vector<Tensor> first;
    for (int n = 1; n <= device_count(); ++n) {
      INFO(n << " devices");
      const std::vector<Tensor> state =
          trained(start, n, {.shards = emulated() ? 10 : 24}, batches, make);
      if (n == 1) first = state;
      else check_same(state, first);
    }
  }
}

TEST_CASE(
    "9.2: shards: 20 steps of a multilayer perceptron and a Transformer layer end with the same "
    "bits",
    "[parallel][shards]") {
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
  const auto check = [](const auto& start) {
    std::vector<Tensor> batches, first;
    for (int step = 0; step < static_cast<int>(cut(20, 3)); ++step)
      batches.push_back(random_tensor({step % 3 == 2 ? 11 : 30, 4, 2}, DType::float32, device(0),
                                      static_cast<std::uint64_t>(step)));
    for (int n = 1; n <= device_count(); ++n) {
      INFO(n << " devices");
      const std::vector<Tensor> state =
          trained(start, n, {.shards = emulated() ? 10 : 24}, batches, optimizers().front().second);
      if (n == 1) first = state;
      else check_same(state, first);
    }
  };
  check(home(Perceptron{}));
  check(home(Attends{}));
}

TEST_CASE(
    "9.1: shards: one result used three times, a strided weight, a field that forward writes: the "
    "same bits still",
    "[parallel][shards]") {
  struct Uses : nn::Module {
    nn::Parameter weight{random_tensor({40, 5}, DType::float32, {}, 8).t()};
    Tensor noted = zeros({40}), scale = random_tensor({15}, DType::float32, {}, 10);
    Tensor operator()(const Tensor& x) const {
      {
        const NoGrad guard;
        noted.mul_(0.5).add_(x.detach().mean({0}));
      }
      const Tensor h = tanh(matmul(x, weight.t()));
      return cat({h, h, h}, 1) * scale + noted.sum();
    }
    BRAID_FIELDS(weight, noted, scale)
  };
  Uses start;
  to(start, device(0));
  REQUIRE_FALSE(start.weight.is_contiguous());
  const Tensor x = random_tensor({19, 40}, DType::float32, device(0), 9);
  Tensor y, gradient, noted;
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    Uses module = clone(start);
    const Tensor field = start.noted.clone();
    module.noted = field;
    const DataParallel model(std::move(module), group(n), DataParallelOptions{.shards = 7});
    const Tensor out = model(x);
    (out * out).sum().backward();
    if (n == 1) {
      y = out.detach();
      gradient = model.module.weight.grad();
      noted = model.module.noted.clone();
    }
    CHECK_SAME_BITS(out.detach(), y);
    CHECK_SAME_BITS(model.module.weight.grad(), gradient);
    CHECK_SAME_BITS(model.module.noted, noted);
  }
}

TEST_CASE(
    "9.1: shards: sums over a chunk and over its gradient along dim 1, whose memory has gaps on "
    "the first device",
    "[parallel][shards]") {
  struct Sums : nn::Module {
    nn::Parameter weight{ones({1})};
    Tensor operator()(const Tensor& x) const {
      return x * weight * (x.sum() + x.sum({0}) + x.mean({1}, true));
    }
    BRAID_FIELDS(weight)
  };
  const Sums start = home(Sums{});
  const Tensor x = random_tensor({37, 50}, DType::float32, device(0), 12).requires_grad_(),
               out = random_tensor({37, 50}, DType::float32, device(0), 13);
  Tensor gradient, of_x;
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const DataParallel model(clone(start), group(n), DataParallelOptions{.dim = 1, .shards = 3});
    x.set_grad({});
    const Tensor y = model(x);
    y.backward(out);
    if (n == 1) {
      gradient = model.module.weight.grad();
      of_x = x.grad();
    }
    CHECK_SAME_BITS(model.module.weight.grad(), gradient);
    CHECK_SAME_BITS(x.grad(), of_x);
  }
}

TEST_CASE("9.1: shards: the same bits along dim 1, with an embedding and an LSTM",
          "[parallel][shards]") {
  const Words start = home(Words{});
  std::vector<Tensor> batches;
  for (const std::int64_t rows : {13, 3, 1}) {
    manual_seed(static_cast<std::uint64_t>(rows));
    batches.push_back(randint(0, 11, {4, rows}, {.device = device(0)}));
  }
  std::vector<Tensor> first;
  for (int n = 1; n <= device_count(); ++n) {
    INFO(n << " devices");
    const std::vector<Tensor> state =
        trained(start, n, {.dim = 1, .shards = 8}, batches, optimizers().front().second);
    if (n == 1) first = state;
    else check_same(state, first);
  }
}

TEST_CASE("9.1: shards compute what one device computes, statistics of the whole batch included",
          "[parallel][shards]") {
  const Images start = home(Images{});
  Images plain = clone(start);
  to(plain, DType::float64);
  plain.dropout.p = 0;
  DataParallel model(clone(plain), group(std::min(3, device_count())),
                     DataParallelOptions{.shards = 5});
  const Tensor x = random_tensor({12, 1, 6, 6}, DType::float64, device(0), 3),
               x2 = x.detach().clone();
  x.requires_grad_();
  x2.requires_grad_();
  const Tensor y = model(x), expected = plain(x2);
  CHECK(allclose(y, expected, 1e-9, 1e-10));
  (y * y * y).sum().backward();
  (expected * expected * expected).sum().backward();
  CHECK(allclose(x.grad(), x2.grad(), 1e-7, 1e-9));
  const std::vector<Tensor> got = parameters(model), want = parameters(plain);
  for (std::size_t k = 0; k < want.size(); ++k)
    CHECK(allclose(got[k].grad(), want[k].grad(), 1e-7, 1e-8));
  CHECK(allclose(model.module.norm.running_mean, plain.norm.running_mean, 1e-10, 1e-11));
  CHECK(allclose(model.module.norm.running_var, plain.norm.running_var, 1e-10, 1e-11));
  CHECK(model.module.norm.num_batches_tracked.item<int>() == 1);
  // In evaluation, and the gradient of a gradient.
  eval(model);
  eval(plain);
  CHECK(allclose(model(x), plain(x2), 1e-9, 1e-10));
  const auto penalty = [](const auto& net, const Tensor& in, const Tensor& weight) {
    const Tensor out = net(in);
    const std::vector<Tensor> roots{(out * out).sum()}, leaves{in};
    const Tensor g = grad(roots, leaves, {}, true, true)[0];
    const std::vector<Tensor> second{(g * g).sum()}, weights{weight};
    return grad(second, weights, {}, false, false)[0];
  };
  CHECK(allclose(penalty(model, x, model.module.conv.weight), penalty(plain, x2, plain.conv.weight),
                 1e-7, 1e-8));
}

TEST_CASE(
    "9.1: shards: min(shards, rows) of them by the balanced rule, consecutive ones on a device",
    "[parallel][shards]") {
  struct Where : nn::Module {
    nn::Parameter weight{ones({1})};
    std::tuple<Tensor, Tensor> operator()(const Tensor& x) const {
      return {full({1}, static_cast<double>(x.size(0)), {.device = x.device()}),
              full({1}, x.device().index(), {.device = x.device()})};
    }
    BRAID_FIELDS(weight)
  };
  using List = std::vector<double>;
  for (int n = 1; n <= device_count(); ++n) {
    const DataParallel model(home(Where{}), group(n), DataParallelOptions{.shards = 6});
    const auto [rows, where] = model(ones({14, 2}));
    CHECK(numbers(rows) == List{3, 3, 2, 2, 2, 2});
    const List index = numbers(where);
    CHECK(std::is_sorted(index.begin(), index.end()));
    std::map<double, int> owned;
    for (const double i : index) ++owned[i];
    for (const auto& [i, count] : owned) CHECK((count == 6 / n || count == 6 / n + 1));
    CHECK(owned.size() == static_cast<std::size_t>(std::min(n, 6)));
    CHECK(numbers(std::get<0>(model(ones({4, 2})))) == List{1, 1, 1, 1});
    CHECK(model.replicas(ones({14, 2})).size() == 6);
  }
}

TEST_CASE(
    "9.1: shards: the gradient of an input without dimensions, and merged buffers, are the same "
    "bits too",
    "[parallel][shards]") {
  struct Scaled : nn::Module {
    nn::Linear fc{3, 2};
    nn::Buffer seen{zeros({3})};
    Tensor operator()(const Tensor& x, const Tensor& scale) const {
      const NoGrad guard;
      seen.mul_(0.5).add_(x.detach().mean({0}));
      const GradMode on(true);
      return fc(x) * scale;
    }
    BRAID_FIELDS(fc, seen)
  };
  const Scaled start = home(Scaled{});
  const Tensor x = random_tensor({17, 3}, DType::float32, device(0), 4);
  for (const MergeBuffers rule : {MergeBuffers::replica0, MergeBuffers::mean}) {
    Tensor gradient, seen;
    for (int n = 1; n <= device_count(); ++n) {
      const DataParallel model(clone(start), group(n),
                               DataParallelOptions{.merge_buffers = rule, .shards = 9});
      const Tensor scale = tensor(1.7, {.device = device(0)}).requires_grad_();
      const Tensor y = model(x, scale);
      (y * y).sum().backward();
      if (n == 1) {
        gradient = scale.grad();
        seen = model.module.seen.clone();
      }
      CHECK_SAME_BITS(scale.grad(), gradient);
      CHECK_SAME_BITS(model.module.seen, seen);
    }
  }
}

TEST_CASE(
    "9.1: shards: a shard that fails is named, those that wait for it end, and the next call works",
    "[parallel][shards][errors]") {
  struct Fails : nn::Module {
    nn::BatchNorm1d norm{2};
    int mark = -1;  // in the rows of the shard that fails
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
  for (int n = 1; n <= std::min(4, device_count()); ++n) {
    DataParallel model(home(Fails{}), group(n), DataParallelOptions{.shards = 6});
    const Tensor before = model.module.norm.running_mean.clone();
    for (int shard = 0; shard < 6; ++shard) {
      model.module.mark = 2 * shard + 1;
      for (const bool after : {false, true}) {
        model.module.after = after;
        CHECK_THROWS_TEXT(
            ReplicaError,
            str("Caught ArgumentError in replica ", shard, " on device *: asked to fail"),
            model(x));
        if (!after) CHECK_SAME_BITS(model.module.norm.running_mean, before);
      }
      model.module.norm.running_mean.copy_(before);
    }
    model.module.mark = -1;
    CHECK(model(x).shape() == Shape{6, 2});
  }
}

TEST_CASE("9.1: shards: what cannot be is refused", "[parallel][shards][errors]") {
  const auto make = [](parallel::DeviceList on, DataParallelOptions options) {
    return DataParallel(home(nn::Linear(2, 2)), std::move(on), std::move(options));
  };
  CHECK_THROWS_TEXT(ArgumentError, "DataParallel: expected shards >= 0, got -1",
                    make(group(1), {.shards = -1}));
  CHECK_THROWS_TEXT(ArgumentError,
                    "DataParallel: expected a device at least for 4 shards, got none",
                    make({}, {.shards = 4}));
  CHECK_THROWS_TEXT(ArgumentError, "DataParallel: expected shards or chunk sizes or weights",
                    make(group(1), {.chunk_sizes = {3}, .shards = 4}));
  CHECK_THROWS_TEXT(ArgumentError, "DataParallel: expected shards or chunk sizes or weights",
                    make(group(1), {.weights = {1}, .shards = 4}));
  CHECK(
      DataParallel(home(nn::Linear(2, 2)), group(1), DataParallelOptions{.shards = 4})(ones({0, 2}))
          .shape() == Shape{0, 2});
}

}  // namespace braid::test::on_device
