// Captured steps on CUDA: how many launches they are, their memory, streams and failures.
#include <thread>

#include "cuda_support.hpp"
#include "support/errors.hpp"

#if defined(BRAID_CUDA_SIMT)
#include "simt/runtime/control.hpp"
#endif

using namespace braid;
using namespace braid::test;

namespace {

struct Mlp : nn::Module {
  nn::Linear fc1, fc2, fc3;
  Mlp()
      : fc1(8, 16, {.device = cuda_device(0)}),
        fc2(16, 16, {.device = cuda_device(0)}),
        fc3(16, 4, {.device = cuda_device(0)}) {}
  Tensor operator()(const Tensor& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
  BRAID_FIELDS(fc1, fc2, fc3)
};

Tensor batch_of(int i) {
  return randn({6, 8}, {.device = cuda_device(0), .seed = static_cast<std::uint64_t>(i)});
}

/// A training step of a small network; everything that it uses.
struct Training {
  Mlp net;
  optim::AdamW adam{parameters(net), {.lr = 0.01}};
  Tensor operator()(const Tensor& x) {
    adam.zero_grad();
    const Tensor loss = square(net(x)).mean();
    loss.backward();
    adam.step(optim::clip_grad_norm(parameters(net), 1.0).factor);
    return loss;
  }
  auto captured() {
    return training::captured_step([this](const Tensor& x) { return (*this)(x); });
  }
  [[nodiscard]] std::vector<double> weights() const {
    std::vector<double> all;
    for (const Tensor& p : parameters(net))
      for (const double x : p.to_vector<double>()) all.push_back(x);
    return all;
  }
};

/// Returns whether the device records steps: not with BRAID_CUDA_CACHE=0.
bool records() {
  auto step = training::captured_step([](const Tensor& x) { return x * 2; }, {.warm_up = 1});
  for (int i = 0; i < 2; ++i) (void)step(batch_of(i));
  return step.recorded();
}

/// What a call that fails must leave as it was.
struct State {
  std::vector<double> weights;
  std::int64_t steps;
  std::uint64_t version;
  RandomState random = random_state();
  const TensorImpl* gradient;  // no handle: with one, the step would not be replayed
  explicit State(const Training& t)
      : weights(t.weights()),
        steps(t.adam.steps(0)),
        version(t.net.fc1.weight.version()),
        gradient(t.net.fc1.weight.grad().id()) {}
  friend bool operator==(const State& a, const State& b) {
    return a.weights == b.weights && a.steps == b.steps && a.version == b.version &&
           a.random == b.random && a.gradient == b.gradient;
  }
};

}  // namespace

#if defined(BRAID_CUDA_SIMT)
TEST_CASE("captured step: a step of three layers is one launch", "[captured_step]") {
  NEEDS_DEVICES(1);
  manual_seed(0);
  Training training;
  auto step = training.captured();
  for (int i = 0; i < 4; ++i) (void)step(batch_of(i));
  if (!step.recorded()) return;  // BRAID_CUDA_CACHE=0
  const Tensor x = batch_of(4);
  const auto before = [](const char* name) { return simt::calls(name); };
  const std::uint64_t kernels = before("cudaLaunchKernel"), graphs = before("cudaGraphLaunch"),
                      copies = before("cudaMemcpyAsync"), allocated = before("cudaMalloc");
  (void)step(x);
  CHECK(simt::calls("cudaGraphLaunch") - graphs == 1);
  CHECK(simt::calls("cudaLaunchKernel") - kernels == 0);
  CHECK(simt::calls("cudaMemcpyAsync") - copies == 3);  // the batch, the table, the result
  CHECK(simt::calls("cudaMalloc") - allocated == 0);
}

TEST_CASE("captured step: a call of CUDA that fails", "[captured_step][errors]") {
  NEEDS_DEVICES(1);
  const bool recorded = records();
  for (const char* const function :
       {"cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiate", "cudaGraphLaunch",
        "cudaLaunchKernel", "cudaThreadExchangeStreamCaptureMode"}) {
    INFO(function);
    manual_seed(0);
    Training training, other;
    load_state_dict(other.net, state_dict(training.net));
    auto step = training.captured();
    for (int i = 0; i < 2; ++i) (void)step(batch_of(i)), (void)other(batch_of(i));
    synchronize(cuda_device(0));
    simt::fail_call(1, cudaErrorInvalidValue, false, function);
    bool thrown = false;
    try {
      (void)step(batch_of(2));
    } catch (const CudaError&) {
      thrown = true;
    } catch (const CaptureError&) {
      thrown = true;
    }
    const bool failed = simt::failed_call();
    simt::fail_call(0, cudaSuccess);
    CHECK(failed == (recorded || function == std::string("cudaLaunchKernel")));
    CHECK(failed == thrown);
    if (thrown) CHECK(training.weights() == other.weights());
    for (int i = thrown ? 2 : 3; i < 5; ++i) (void)step(batch_of(i));
    for (int i = 2; i < 5; ++i) (void)other(batch_of(i));
    CHECK(training.weights() == other.weights());
    CHECK(training.adam.steps(0) == 5);
  }
}

TEST_CASE("captured step: a replay that fails changes nothing", "[captured_step][errors]") {
  NEEDS_DEVICES(1);
  if (!records()) return;
  const Device device = cuda_device(0);
  for (const char* const function : {"cudaGraphLaunch", "cudaMemcpyAsync", "an allocation"}) {
    INFO(function);
    manual_seed(0);
    Training training, other;
    load_state_dict(other.net, state_dict(training.net));
    const auto noisy = [device](Training& t, const Tensor& x) {
      return t(x) + randn({}, {.device = device});
    };
    auto step = training::captured_step([&](const Tensor& x) { return noisy(training, x); });
    const RandomState first = random_state();
    for (int i = 0; i < 4; ++i) (void)step(batch_of(i));
    const State before(training);
    const Tensor x = batch_of(4);
    if (function == std::string("an allocation")) fail_allocation(device, 1, false);
    else simt::fail_call(1, cudaErrorInvalidValue, false, function);
    bool failed = false;
    try {
      (void)step(x);
    } catch (const CudaError&) {
      failed = true;
    } catch (const OutOfMemoryError&) {
      failed = true;
    }
    fail_allocation(device, 0, false);
    simt::fail_call(0, cudaSuccess);
    CHECK(failed);
    CHECK(State(training) == before);
    const double last = step(x).item<double>();
    CHECK(step.replays() == 2);
    set_random_state(first);
    for (int i = 0; i < 4; ++i) (void)noisy(other, batch_of(i));
    CHECK(noisy(other, x).item<double>() == last);
    CHECK(training.weights() == other.weights());
  }
}
#endif

TEST_CASE("captured step: its memory is its own, and is returned", "[captured_step]") {
  NEEDS_DEVICES(1);
  manual_seed(0);
  const Device device = cuda_device(0);
  Training training;
  for (int i = 0; i < 2; ++i) (void)training(batch_of(i));
  training.adam.zero_grad();
  synchronize(device);
  empty_cache(device);
  const MemoryStats stats = memory_stats(device);
  const std::size_t before = stats.in_use;
  {
    auto step = training.captured();
    for (int i = 0; i < 4; ++i) (void)step(batch_of(i));
    if (step.recorded()) CHECK(memory_stats(device).in_use > before);
    // plain work between replays gets other memory than the graph's
    const Tensor kept = ones({64, 64}, {.device = device});
    for (int i = 4; i < 6; ++i) (void)step(batch_of(i));
    CHECK(kept.sum().item<double>() == 64 * 64);
    empty_cache(device);
    (void)step(batch_of(6));
  }
  // the gradients are tensors of the graph, and outlive it
  {
    const Tensor gradient = training.net.fc1.weight.grad();
    REQUIRE(gradient.defined());
    const std::vector<double> values = gradient.to_vector<double>();
    for (int i = 0; i < 3; ++i) {
      const Tensor other = zeros({16, 8}, {.device = device});
      CHECK(gradient.to_vector<double>() == values);
    }
  }
  training.adam.zero_grad();
  synchronize(device);
  empty_cache(device);
  CHECK(memory_stats(device).in_use == before);
  CHECK(memory_stats(device).cached <= stats.cached);
}

TEST_CASE("captured step: memory that runs out while it is recorded", "[captured_step][errors]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  std::uint64_t needed = 0;  // allocations of the call that records
  int failures = 0;
  const bool recorded = records();
  for (std::uint64_t k = 0; k < 60; k += k == 0 ? 1 : 7) {
    manual_seed(0);
    Training training, other;
    load_state_dict(other.net, state_dict(training.net));
    auto step = training.captured();
    for (int i = 0; i < 2; ++i) (void)step(batch_of(i)), (void)other(batch_of(i));
    const Tensor x = batch_of(2);
    const State before(training);
    const std::uint64_t allocations = memory_stats(device).allocations;
    fail_allocation(device, k, false);
    bool thrown = false;
    try {
      (void)step(x);
    } catch (const OutOfMemoryError&) {
      thrown = true;
    }
    fail_allocation(device, 0, false);
    if (k == 0) needed = memory_stats(device).allocations - allocations;  // nothing failed
    CHECK(thrown == (k != 0 && k <= needed));
    failures += thrown;
    if (thrown && recorded) CHECK(State(training) == before);
    if (thrown) (void)step(batch_of(2));
    (void)other(batch_of(2));
    for (int i = 3; i < 5; ++i) (void)step(batch_of(i)), (void)other(batch_of(i));
    CHECK(training.weights() == other.weights());
  }
  CHECK(failures > 3);
}

TEST_CASE("captured step: calls on several streams", "[captured_step]") {
  NEEDS_DEVICES(1);
  manual_seed(0);
  Training training, other;
  load_state_dict(other.net, state_dict(training.net));
  auto step = training.captured();
  const auto side = make_stream(cuda_device(0));
  Stream& own = current_stream(cuda_device(0));
  for (int i = 0; i < 9; ++i) {
    if (i < 3 || i % 2 == 0) {
      (void)step(batch_of(i));
    } else {
      side->wait_for(own);
      {
        const StreamGuard guard(side);
        (void)step(batch_of(i));
      }
      own.wait_for(*side);
    }
    (void)other(batch_of(i));
  }
  CHECK(training.weights() == other.weights());
}

TEST_CASE("captured step: streams that nothing else orders", "[captured_step]") {
  NEEDS_DEVICES(1);
  manual_seed(0);
  const Device device = cuda_device(0);
  Training training, other;
  load_state_dict(other.net, state_dict(training.net));
  const auto side = make_stream(device);
  std::vector<Tensor> batches;
  for (int i = 0; i < 10; ++i) batches.push_back(batch_of(i));
  synchronize(device);
  {
    auto step = training.captured();
    for (int i = 0; i < 10; ++i) {
      if (i < 3 || i % 2 == 0) {
        (void)step(batches[static_cast<std::size_t>(i)]);
      } else {
        const StreamGuard guard(side);
        (void)step(batches[static_cast<std::size_t>(i)]);
      }
    }
  }
  training.adam.zero_grad();
  // the device's own stream uses the memory of the graph, whose last run was on the other stream
  std::vector<Tensor> filled;
  for (int i = 0; i < 60; ++i) filled.push_back(full({16, 1 << (i % 5)}, i, {.device = device}));
  synchronize(device);
  for (const Tensor& x : batches) (void)other(x);
  CHECK(training.weights() == other.weights());
  for (int i = 0; i < 60; ++i)
    CHECK(filled[static_cast<std::size_t>(i)].sum().item<double>() == 16.0 * (1 << (i % 5)) * i);
}

TEST_CASE("captured step: its gradients are used on a stream after it is gone", "[captured_step]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  const auto side = make_stream(device);
  Tensor weight = ones({256, 256}, {.device = device}).requires_grad_(), sum;
  const Tensor x = full({256, 256}, 3.0, {.device = device});
  synchronize(device);
  {
    const StreamGuard guard(side);
    {
      auto step = training::captured_step([&](const Tensor& y) {
        weight.set_grad({});
        (weight * y).sum().backward();
      });
      for (int i = 0; i < 4; ++i) step(x);
    }
    sum = weight.grad() + 1;  // reads the gradient on this stream
    weight.set_grad({});
  }
  // the device's own stream may have the gradient's memory again
  std::vector<Tensor> filled;
  for (int i = 0; i < 30; ++i) filled.push_back(full({256, 256}, 7.0, {.device = device}));
  side->synchronize();
  synchronize(device);
  CHECK(sum.sum().item<double>() == 256 * 256 * 4);
}

TEST_CASE("captured step: recorded and replayed on two streams, its memory used on a third",
          "[captured_step]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  const auto first = make_stream(device), second = make_stream(device);
  const Tensor x = full({256, 256}, 3.0, {.device = device});
  Tensor y;
  synchronize(device);
  {
    auto step = training::captured_step([](const Tensor& batch) { return (batch * 2).sum(); });
    for (int i = 0; i < 4; ++i) {
      const StreamGuard guard(i < 3 ? first : second);
      y = step(x);
    }
  }
  // the device's own stream has the graph's memory again, and nothing else orders it
  std::vector<Tensor> filled;
  for (int i = 0; i < 30; ++i) filled.push_back(full({256, 256}, 7.0, {.device = device}));
  second->synchronize();
  current_stream(device).wait_for(*second);
  CHECK(y.item<double>() == 256 * 256 * 6);
}

TEST_CASE("captured step: two of them, on two streams at the same time", "[captured_step]") {
  NEEDS_DEVICES(1);
  manual_seed(0);
  const Device device = cuda_device(0);
  Training first, second, other;
  for (Training* training : {&second, &other})
    load_state_dict(training->net, state_dict(first.net));
  const std::shared_ptr<Stream> streams[] = {make_stream(device), make_stream(device)};
  std::vector<Tensor> batches;
  for (int i = 0; i < 6; ++i) batches.push_back(batch_of(i));
  synchronize(device);
  {
    auto left = first.captured(), right = second.captured();
    for (const Tensor& x : batches) {
      {
        const StreamGuard guard(streams[0]);
        (void)left(x);
      }
      const StreamGuard guard(streams[1]);
      (void)right(x);
    }
    CHECK(left.replays() == right.replays());
  }
  for (const auto& stream : streams) stream->synchronize();
  for (const Tensor& x : batches) (void)other(x);
  CHECK(first.weights() == other.weights());
  CHECK(second.weights() == other.weights());
}

TEST_CASE("captured step: recorded on one stream, replayed on another", "[captured_step]") {
  NEEDS_DEVICES(1);
  manual_seed(0);
  const Device device = cuda_device(0);
  Training training, other;
  load_state_dict(other.net, state_dict(training.net));
  const auto first = make_stream(device), second = make_stream(device);
  std::vector<Tensor> batches;
  for (int i = 0; i < 6; ++i) batches.push_back(batch_of(i));
  synchronize(device);
  {
    auto step = training.captured();
    for (std::size_t i = 0; i < 6; ++i) {
      const StreamGuard guard(i < 3 ? first : second);
      (void)step(batches[i]);
    }
  }
  // the first stream has the memory of the input and of the table again: nothing else orders it
  // after the last run, which was on the second
  std::vector<Tensor> filled;
  {
    const StreamGuard guard(first);
    for (int i = 0; i < 40; ++i) filled.push_back(full({6, 1 << (i % 6)}, i, {.device = device}));
    filled.push_back(full({1 << 14}, 1, {.device = device}));
  }
  first->synchronize();
  second->synchronize();
  training.adam.zero_grad();
  for (const Tensor& x : batches) (void)other(x);
  CHECK(training.weights() == other.weights());
  for (int i = 0; i < 40; ++i)
    CHECK(filled[static_cast<std::size_t>(i)].sum().item<double>() == 6.0 * (1 << (i % 6)) * i);
}

TEST_CASE("captured step: DataParallel on one device, and on two", "[captured_step]") {
  NEEDS_DEVICES(2);
  for (int count = 1; count <= (records() ? 2 : 1); ++count) {
    INFO(count);
    manual_seed(0);
    std::vector<Device> devices;
    for (int i = 0; i < count; ++i) devices.push_back(cuda_device(i));
    parallel::DataParallel<Mlp> model(Mlp(), devices);
    optim::SGD sgd(parameters(model), {.lr = 0.1});
    auto step = training::captured_step([&](const Tensor& x) {
      sgd.zero_grad();
      const Tensor loss = square(model(x)).mean();
      loss.backward();
      sgd.step();
      return loss;
    });
    for (int i = 0; i < 2; ++i) (void)step(batch_of(i));
    Mlp other;
    load_state_dict(other, state_dict(model.module));
    if (count == 2) {
      CHECK_THROWS_TEXT(CaptureError, "captured_step: expected a step on", (void)step(batch_of(2)));
    } else {
      optim::SGD plain(parameters(other), {.lr = 0.1});
      for (int i = 2; i < 6; ++i) {
        (void)step(batch_of(i));
        plain.zero_grad();
        square(other(batch_of(i))).mean().backward();
        plain.step();
      }
      CHECK(step.replays() == (step.recorded() ? 3 : 0));
    }
    CHECK(model.module.fc1.weight.to_vector<double>() == other.fc1.weight.to_vector<double>());
  }
}

TEST_CASE("captured step: other threads use the device meanwhile", "[captured_step]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  auto step = training::captured_step([&](const Tensor& x) {
    double sum = 0;
    std::thread loader([&] {  // as a loader that prepares the next batch
      sum = ones({1 << 20}, {.device = device}).sum().item<double>();
      empty_cache(device);
    });
    loader.join();
    CHECK(sum == 1 << 20);
    return x * 2;
  });
  for (int i = 0; i < 5; ++i)
    CHECK(step(full({3}, i, {.device = device})).to_vector<double>() ==
          std::vector<double>(3, 2.0 * i));
}

TEST_CASE("captured step: a cache that is emptied in the step", "[captured_step]") {
  NEEDS_DEVICES(1);
  const Device device = cuda_device(0);
  Tensor other;
  auto step = training::captured_step([&](const Tensor& x) {
    const Tensor y = x * 2;
    set_memory_capacity(device, 1);  // so that the memory of `other` is not to be cached
    other = {};
    set_memory_capacity(device, 0);
    empty_cache(device);
    return y + 1;
  });
  for (int i = 0; i < 5; ++i) {
    other = ones({1 << 20}, {.device = device});
    CHECK(step(full({3}, i, {.device = device})).to_vector<double>() ==
          std::vector<double>(3, 2.0 * i + 1));
  }
  CHECK(step.replays() == (step.recorded() ? 2 : 0));
}
