// Copies of the weights that stay on the devices between forwards: nobody can tell, but by the
// bytes that move.
#include <braid/parallel/data_parallel.hpp>

#include <atomic>
#include <thread>

#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/ops/shape.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/optim.hpp>
#include <braid/nn/sequential.hpp>

#include "group.hpp"
#include "support/errors.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

using parallel::DataParallel;
using parallel::DataParallelOptions;
using parallel::ReplicateBytes;

namespace {

/// Weights without a buffer: nothing that a replica writes.
struct Plain : nn::Module {
  nn::Linear fc1{4, 8}, fc2{8, 3};
  Tensor operator()(const Tensor& x) const { return fc2(tanh(fc1(x))); }
  BRAID_FIELDS(fc1, fc2)
};
constexpr std::size_t kBytes = sizeof(float) * (4 * 8 + 8 + 8 * 3 + 3);

Tensor rows(std::uint64_t seed = 1) {
  return random_tensor({12, 4}, DType::float32, device(0), seed);
}

int several() { return std::min(3, device_count()); }

/// What the module gives for the chunks of a batch, one after the other: products of as many rows
/// as the replicas', so that they round alike for any weights.
template <class M> Tensor by_chunks(const M& module, const Tensor& x) {
  std::vector<Tensor> parts;
  for (const Tensor& part : chunk(x, several())) parts.push_back(module(part));
  return cat(parts);
}

/// The model computes what its module does, and says that as many bytes moved to each other device.
template <class M>
void check_forward(const DataParallel<M>& model, std::size_t copied, std::size_t cached) {
  const std::size_t others = static_cast<std::size_t>(several()) - 1;
  const Tensor y = model(rows());
  CHECK(allclose(y, by_chunks(model.module, rows()), 1e-6, 1e-7));
  CHECK(model.replicate_bytes().copied == others * copied);
  CHECK(model.replicate_bytes().cached == others * cached);
}

}  // namespace

TEST_CASE("4.15: what has not changed is not copied again", "[parallel][cache]") {
  if (several() < 2) return;
  const DataParallel model(home(Plain{}), group(several()));
  check_forward(model, kBytes, 0);
  check_forward(model, 0, kBytes);
  {
    const NoGrad guard;
    check_forward(model, 0, kBytes);
  }
  check_forward(model, 0, kBytes);
  const DataParallel without(clone(model.module), group(several()),
                             DataParallelOptions{.cache = false});
  (void)without(rows());
  CHECK(without.replicate_bytes() == ReplicateBytes{});
}

TEST_CASE(
    "4.15: every change is seen: in place, by the optimizer, by loading, by moving, by another "
    "handle",
    "[parallel][cache]") {
  if (several() < 2) return;
  DataParallel model(home(Plain{}), group(several()));
  check_forward(model, kBytes, 0);
  constexpr std::size_t bias = 3 * sizeof(float);
  {
    const NoGrad guard;
    model.module.fc2.bias.add_(1.0);
  }
  check_forward(model, bias, kBytes - bias);
  optim::SGD sgd(parameters(model), {.lr = 0.1});
  model(rows()).sum().backward();
  sgd.step();
  check_forward(model, kBytes, 0);
  load_state_dict(model, state_dict(home(DataParallel(Plain{}, {}))));
  check_forward(model, kBytes, 0);
  to(model, DType::float64);
  const Tensor y = model(rows().to(DType::float64));
  CHECK(allclose(y, model.module(rows().to(DType::float64)), 1e-12, 1e-13));
  to(model, DType::float32);
  check_forward(model, kBytes, 0);
  to(model, device(1));
  to(model, device(0));
  check_forward(model, kBytes, 0);
  model.module.fc2.bias = nn::Parameter(full({3}, 2.0, {.device = device(0)}));
  check_forward(model, bias, kBytes - bias);
  if (device(0).type() != DeviceType::cpu) return;
  // A pointer that was asked for may be written at any time.
  model.module.fc2.bias.data<float>()[1] = 7;
  check_forward(model, bias, kBytes - bias);
  model.module.fc2.bias.data<float>()[1] = 8;
  check_forward(model, bias, kBytes - bias);
}

TEST_CASE("4.15: a change of structure", "[parallel][cache]") {
  if (several() < 2) return;
  struct List : nn::Module {
    std::vector<nn::Linear> layers;
    Tensor operator()(const Tensor& x) const {
      Tensor y = x;
      for (const nn::Linear& layer : layers) y = layer(y);
      return y;
    }
    BRAID_FIELDS(layers)
  };
  DataParallel model(List{}, group(several()));
  for (int i = 0; i < 3; ++i) {
    model.module.layers.push_back(home(nn::Linear(4, 4)));
    check_forward(model, 80 * static_cast<std::size_t>(i + 1), 0);
  }
  std::swap(model.module.layers[0], model.module.layers[2]);
  check_forward(model, 160, 80);
  model.module.layers.pop_back();
  check_forward(model, 160, 0);
}

TEST_CASE("4.15: buffers that replicas write are fresh in every forward", "[parallel][cache]") {
  if (several() < 2) return;
  DataParallel model(home(Net{}), group(several())),
      plain(clone(model.module), group(several()), DataParallelOptions{.cache = false});
  for (std::uint64_t step = 0; step < 4; ++step) {
    CHECK_SAME_BITS(model(rows(step)), plain(rows(step)));
    CHECK_SAME_BITS(model.module.seen, plain.module.seen);
  }
  DataParallel normed(nn::Sequential(home(nn::BatchNorm1d(4))), group(several())),
      fresh(clone(normed.module), group(several()), DataParallelOptions{.cache = false});
  for (std::uint64_t step = 0; step < 3; ++step) {
    train(normed);
    train(fresh);
    CHECK_SAME_BITS(normed(rows(step)), fresh(rows(step)));
    eval(normed);
    eval(fresh);
    CHECK_SAME_BITS(normed(rows(step + 9)), fresh(rows(step + 9)));
  }
}

TEST_CASE("4.15: a graph keeps the weights that it was made with", "[parallel][cache]") {
  if (several() < 2) return;
  DataParallel model(home(nn::Sequential(nn::Linear(4, 6), nn::BatchNorm1d(6), nn::Linear(6, 2))),
                     group(several())),
      plain(clone(model.module), group(several()), DataParallelOptions{.cache = false});
  // Evaluation, then training, whose replicas write the buffers that the first graph has saved.
  std::vector<Tensor> gradients;
  for (DataParallel<nn::Sequential<nn::Linear, nn::BatchNorm1d, nn::Linear>>* each :
       {&model, &plain}) {
    eval(*each);
    const Tensor first = each->operator()(rows());
    train(*each);
    const Tensor second = each->operator()(rows(2));
    (first.sum() + (second * second).sum()).backward();
    gradients.push_back(std::get<0>(each->module.layers).weight.grad());
  }
  CHECK_SAME_BITS(gradients[0], gradients[1]);
}

TEST_CASE("4.15: training with and without is the same to the bit, with batches of any size",
          "[parallel][cache]") {
  for (int n = 1; n <= std::min(5, device_count()); ++n) {
    DataParallel model(home(Net{}), group(n)),
        plain(clone(model.module), group(n), DataParallelOptions{.cache = false});
    optim::SGD sgd(parameters(model), {.lr = 0.05, .momentum = 0.9}),
        other(parameters(plain), {.lr = 0.05, .momentum = 0.9});
    for (const std::int64_t size : {12, 3, 1, 12, 7, 2, 12}) {
      const Tensor x = rows(static_cast<std::uint64_t>(size)).narrow(0, 0, size);
      for (auto* each : {&model, &plain}) {
        zero_grad(*each);
        const Tensor y = (*each)(x);
        (y * y).sum().backward();
      }
      sgd.step();
      other.step();
      (void)model(x);  // a forward more finds everything in place
    }
    CHECK_SAME_BITS(model.module.fc1.weight, plain.module.fc1.weight);
    CHECK_SAME_BITS(model.module.fc2.bias, plain.module.fc2.bias);
  }
}

TEST_CASE(
    "4.15: a copy of the wrapper has copies of its own, and calls at the same time do not share",
    "[parallel][cache]") {
  if (several() < 2) return;
  DataParallel model(home(Net{}), group(several()));
  (void)model(rows());
  const DataParallel copy = model;
  CHECK(copy.replicate_bytes() == ReplicateBytes{});
  CHECK(allclose(copy(rows()), model(rows()), 0, 0));
  if (device(0).type() != DeviceType::cpu) return;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  // what a replica writes is its own call's: another one's would double it
  struct Writes : nn::Module {
    nn::Linear fc{4, 3};
    nn::Buffer factor{ones({1})};
    Tensor operator()(const Tensor& x) const {
      const NoGrad guard;
      if (x.device() == device(0)) return fc(x);
      factor.mul_(2.0);
      const Tensor y = fc(x) * factor * 0.5;
      return y;
    }
    BRAID_FIELDS(fc, factor)
  };
  const DataParallel quiet(Writes{}, group(several()));
  const Tensor right = by_chunks(quiet.module.fc, rows()).detach();
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) wrong += !allclose(quiet(rows()), right, 1e-6, 1e-7);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("4.15: what is sent to one device is sent to all, and counted so", "[parallel][cache]") {
  if (device_count() < 3) return;
  DataParallel model(home(Plain{}), group(3));
  check_forward(model, kBytes, 0);
  {
    const NoGrad guard;
    for (const Tensor& p : parameters(model)) p.mul_(0.5);
  }
  const Tensor few = random_tensor({2, 4}, DType::float32, device(0), 3);  // for two of the devices
  CHECK(allclose(model(few), model.module(few), 1e-6, 1e-6));
  CHECK(model.replicate_bytes().copied == kBytes);
  check_forward(model, kBytes, 0);  // the third has none of them
  check_forward(model, 0, kBytes);
}

TEST_CASE("4.15: a forward that fails leaves nothing wrong behind", "[parallel][cache][errors]") {
  if (several() < 2) return;
  struct Fails : nn::Module {
    nn::Linear fc{4, 3};
    bool fail = false;
    Tensor operator()(const Tensor& x) const {
      if (fail && fc.weight.device().index() == 1) throw ArgumentError("asked to fail");
      return fc(x);
    }
    BRAID_FIELDS(fc, fail)
  };
  DataParallel model(home(Fails{}), group(several()));
  (void)model(rows());
  {
    const NoGrad guard;
    model.module.fc.weight.mul_(2.0);
  }
  model.module.fail = true;
  CHECK_THROWS_AS(model(rows()), ReplicaError);
  model.module.fail = false;
  CHECK(allclose(model(rows()), by_chunks(model.module, rows()), 1e-6, 1e-7));
}

}  // namespace braid::test::on_device
