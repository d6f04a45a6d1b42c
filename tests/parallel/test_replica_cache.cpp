// Copies of the weights that are kept on the devices between forwards. Results must not depend on
// the cache; only the number of moved bytes does.
#include "group.hpp"

namespace braid::test::on_device {

using parallel::ReplicateBytes;

namespace {

/// Weights without a buffer, so replicas write nothing.
struct Plain : nn::Module {
  nn::Linear fc1{4, 8}, fc2{8, 3};
  Tensor operator()(const Tensor& x) const { return fc2(tanh(fc1(x))); }
  BRAID_FIELDS(fc1, fc2)
};
constexpr std::size_t kBytes = sizeof(float) * (4 * 8 + 8 + 8 * 3 + 3);

struct Layers : nn::Module {
  std::vector<nn::Linear> layers;
  Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const nn::Linear& layer : layers) y = layer(y);
    return y;
  }
  BRAID_FIELDS(layers)
};

/// A replica's writes belong to its own call: seeing those of another call would double the factor.
struct Writes : nn::Module {
  nn::Linear fc{4, 3};
  nn::Buffer factor{ones({1})};
  Tensor operator()(const Tensor& x) const {
    const NoGrad guard;
    if (x.device() == device(0)) return fc(x);
    factor.mul_(2.0);
    return fc(x) * factor * 0.5;
  }
  BRAID_FIELDS(fc, factor)
};

/// Writes its weight in place. On another device this is a copy, which is then not used again.
struct WritesWeight : nn::Module {
  nn::Linear fc{4, 3, {.bias = false}};
  Tensor operator()(const Tensor& x) const {
    const NoGrad guard;
    if (x.device() == device(0)) return fc(x);
    Tensor weight = fc.weight;
    weight.mul_(2.0);
    return fc(x) * 0.5;
  }
  BRAID_FIELDS(fc)
};

struct Fails : nn::Module {
  nn::Linear fc{4, 3};
  bool fail = false;
  Tensor operator()(const Tensor& x) const {
    if (fail && fc.weight.device().index() == 1) throw ArgumentError("asked to fail");
    return fc(x);
  }
  BRAID_FIELDS(fc, fail)
};

int several() { return up_to(3); }
Tensor rows(std::uint64_t seed = 1) {
  return random_tensor({12, 4}, DType::float32, device(0), seed);
}

/// Returns the module's outputs for the chunks of a batch, computed in sequence. The products have
/// as many rows as those of the replicas, so they round alike for any weights.
template <class M> Tensor by_chunks(const M& module, const Tensor& x) {
  std::vector<Tensor> parts;
  for (const Tensor& part : chunk(x, several())) parts.push_back(module(part));
  return cat(parts);
}

template <class M> DataParallel<M> cached(M module, int n = several()) {
  return DataParallel<M>(home(std::move(module)), group(n));
}
/// The same model without a cache.
template <class M> DataParallel<M> uncached(const DataParallel<M>& model, int n = several()) {
  return DataParallel<M>(clone(model.module), group(n), DataParallelOptions{.cache = false});
}

template <class M> void check_values(const DataParallel<M>& model) {
  CHECK_CLOSE(model(rows()), by_chunks(model.module, rows()), (Tolerance{1e-6, 1e-7}));
}
/// Checks that the model computes what its module does, and how many bytes it reports as copied to
/// each other device.
template <class M>
void check_forward(const DataParallel<M>& model, std::size_t copied, std::size_t all = kBytes) {
  const std::size_t others = usize(several()) - 1;
  check_values(model);
  CHECK(model.replicate_bytes().copied == others * copied);
  CHECK(model.replicate_bytes().cached == others * (all - copied));
}

}  // namespace

TEST_CASE("cache: what has not changed is not copied again; every change is seen", "[cache]") {
  if (several() < 2) return;
  DataParallel model = cached(Plain{});
  check_forward(model, kBytes);
  check_forward(model, 0);
  unrecorded([&] { check_forward(model, 0); });
  check_forward(model, 0);
  const DataParallel without = uncached(model);
  (void)without(rows());
  CHECK(without.replicate_bytes() == ReplicateBytes{});
  // changes in place, by the optimizer, by loading, by moving, and through another handle
  constexpr std::size_t bias = 3 * sizeof(float);
  unrecorded([&] { model.module.fc2.bias.add_(1.0); });
  check_forward(model, bias);
  optim::SGD sgd(parameters(model), {.lr = 0.1});
  model(rows()).sum().backward();
  sgd.step();
  check_forward(model, kBytes);
  load_state_dict(model, state_dict(home(DataParallel(Plain{}, {}))));
  check_forward(model, kBytes);
  to(model, DType::float64);
  const Tensor x = rows().to(DType::float64);
  CHECK_CLOSE(model(x), model.module(x), (Tolerance{1e-12, 1e-13}));
  to(model, DType::float32);
  check_forward(model, kBytes);
  to(model, device(1));
  to(model, device(0));
  check_forward(model, kBytes);
  model.module.fc2.bias = nn::Parameter(full({3}, 2.0, {.device = device(0)}));
  check_forward(model, bias);
  if (device(0).type() != DeviceType::cpu) return;
  // A pointer from data<T>() may be written at any time.
  for (const float value : {7.0F, 8.0F}) {
    model.module.fc2.bias.data<float>()[1] = value;
    check_forward(model, bias);
  }
}

TEST_CASE("cache: a change of structure", "[cache]") {
  if (several() < 2) return;
  DataParallel model = cached(Layers{});
  for (std::size_t i = 1; i <= 3; ++i) {
    model.module.layers.push_back(home(nn::Linear(4, 4)));
    check_forward(model, 80 * i, 80 * i);
  }
  std::swap(model.module.layers[0], model.module.layers[2]);
  check_forward(model, 160, 240);
  model.module.layers.pop_back();
  check_forward(model, 160, 160);
}

TEST_CASE("cache: written buffers are fresh; a graph keeps its weights", "[cache]") {
  if (several() < 2) return;
  const DataParallel model = cached(Net{}), plain = uncached(model);
  for (std::uint64_t step = 0; step < 4; ++step) {
    CHECK_SAME_BITS(model(rows(step)), plain(rows(step)));
    CHECK_SAME_BITS(model.module.seen, plain.module.seen);
  }
  DataParallel normed = cached(nn::Sequential(nn::BatchNorm1d(4))), fresh = uncached(normed);
  for (std::uint64_t step = 0; step < 3; ++step) {
    train(normed);
    train(fresh);
    CHECK_SAME_BITS(normed(rows(step)), fresh(rows(step)));
    eval(normed);
    eval(fresh);
    CHECK_SAME_BITS(normed(rows(step + 9)), fresh(rows(step + 9)));
  }
  // Evaluation, then training, where replicas write the buffers that the first graph has saved.
  DataParallel kept =
      cached(nn::Sequential(nn::Linear(4, 6), nn::BatchNorm1d(6), nn::Linear(6, 2)));
  DataParallel kept_plain = uncached(kept);
  for (auto* each : {&kept, &kept_plain}) {
    eval(*each);
    const Tensor first = (*each)(rows());
    train(*each);
    const Tensor second = (*each)(rows(2));
    (first.sum() + (second * second).sum()).backward();
  }
  check_same(gradients_of(parameters(kept)), gradients_of(parameters(kept_plain)));
}

TEST_CASE("cache: training with and without is the same to the bit", "[cache]") {
  for (int n = 1; n <= up_to(5); ++n) {
    DataParallel model = cached(Net{}, n), plain = uncached(model, n);
    optim::SGD sgd(parameters(model), {.lr = 0.05, .momentum = 0.9}),
        other(parameters(plain), {.lr = 0.05, .momentum = 0.9});
    for (const std::int64_t size : {12, 3, 1, 12, 7, 2, 12}) {
      const Tensor x = rows(static_cast<std::uint64_t>(size)).narrow(0, 0, size);
      for (auto* each : {&model, &plain}) {
        zero_grad(*each);
        square((*each)(x)).sum().backward();
      }
      sgd.step();
      other.step();
      (void)model(x);  // another forward finds everything in place
    }
    check_same(parameters(model), parameters(plain));
  }
}

TEST_CASE("cache: a copy of a weight that its replica has written is copied again", "[cache]") {
  if (several() < 2) return;
  const DataParallel model = cached(WritesWeight{});
  const Tensor right = by_chunks(model.module.fc, rows()).detach();
  for (int step = 0; step < 3; ++step) CHECK_CLOSE(model(rows()), right, (Tolerance{1e-6, 1e-7}));
}

TEST_CASE("cache: a copy has its own; calls at the same time do not share", "[cache]") {
  if (several() < 2) return;
  const DataParallel model = cached(Net{});
  (void)model(rows());
  const DataParallel copy = model;
  CHECK(copy.replicate_bytes() == ReplicateBytes{});
  CHECK_CLOSE(copy(rows()), model(rows()), (Tolerance{0, 0}));
  if (device(0).type() != DeviceType::cpu) return;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  const DataParallel quiet = cached(Writes{});
  const Tensor right = by_chunks(quiet.module.fc, rows()).detach();
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) wrong += !allclose(quiet(rows()), right, 1e-6, 1e-7);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("cache: what is sent to one device is sent to all, and counted so", "[cache]") {
  if (device_count() < 3) return;
  DataParallel model = cached(Plain{});
  check_forward(model, kBytes);
  unrecorded([&] {
    for (const Tensor& p : parameters(model)) p.mul_(0.5);
  });
  const Tensor few = random_tensor({2, 4}, DType::float32, device(0), 3);  // for two of the devices
  CHECK_CLOSE(model(few), model.module(few), (Tolerance{1e-6, 1e-6}));
  CHECK(model.replicate_bytes().copied == kBytes);
  check_forward(model, kBytes);  // the third device has none of them
  check_forward(model, 0);
}

TEST_CASE("cache: a forward that fails leaves nothing wrong behind", "[cache][errors]") {
  if (several() < 2) return;
  DataParallel model = cached(Fails{});
  (void)model(rows());
  unrecorded([&] { model.module.fc.weight.mul_(2.0); });
  model.module.fail = true;
  CHECK_THROWS_AS(model(rows()), ReplicaError);
  model.module.fail = false;
  check_values(model);
}

}  // namespace braid::test::on_device
