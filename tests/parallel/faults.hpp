#pragma once
// A model whose replicas throw where they are told to, and its training in every mode of
// DataParallel.
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/memory.hpp>
#include <braid/core/replicas.hpp>
#include <braid/nn/activations.hpp>
#include <braid/nn/dropout.hpp>
#include <braid/nn/norm.hpp>
#include <braid/nn/optim.hpp>
#include <braid/parallel/data_parallel.hpp>
#include <braid/parallel/local_update.hpp>

#include "group.hpp"

namespace braid::test {

/// Where a replica throws of its own accord.
enum class Place { nowhere, before_meeting, behind_meeting, wrong_output, backward };

/// What a test and the replicas share: where one of them throws, who is inside, and how often a
/// device had given memory.
struct Scene {
  Place place = Place::nowhere;
  int device = -1;
  std::atomic<int> inside{0};
  struct Allocations {
    // when the first replica on the device began, and when the last one ended
    std::uint64_t first = 0, last = 0;
  };
  std::mutex mutex;
  std::array<Allocations, 64> allocations{};

  [[nodiscard]] bool throws(Place here, Device on) const {
    return place == here && on.index() == device;
  }
};

/// A replica, or an op's backward of it, is at work.
class Visit {
 public:
  explicit Visit(Scene& scene) : scene_(scene) { ++scene_.inside; }
  ~Visit() { --scene_.inside; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Scene& scene_;
};

/// x itself, by an op whose backward is watched.
inline Tensor watched(const Tensor& x, Scene* scene) {
  if (!needs_grad({x})) return x;
  Tensor y;
  {
    const NoGrad guard;
    y = x.clone();
  }
  return record("watched", {x}, y, [scene](const Tensor& dy) {
    const Visit visit(*scene);
    if (scene->throws(Place::backward, dy.device())) throw std::out_of_range("thrown on purpose");
    // still there when another one throws
    if (scene->place == Place::backward)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    return Grads{dy};
  });
}

/// Weights, a buffer and random numbers, and replicas that wait for each other half way.
struct FaultyNet : nn::Module {
  nn::Linear fc1{6, 8};
  nn::BatchNorm1d norm{8};
  nn::Dropout drop{0.25};
  nn::Linear fc2{8, 3};
  Scene* scene;
  explicit FaultyNet(Scene* s) : scene(s) {}
  Tensor operator()(const Tensor& x) const {
    const Visit visit(*scene);
    const Device here = x.device();
    note(here, true);
    const auto fault = [&](Place place) {
      if (scene->throws(place, here)) throw std::out_of_range("thrown on purpose");
    };
    fault(Place::before_meeting);
    Tensor y = fc1(x);
    // for ever, if nobody said that a replica will not come
    if (ReplicaGroup* const all = replica_group()) (void)all->all_reduce(1.0);
    fault(Place::behind_meeting);
    // still there when another one throws
    if (scene->place == Place::behind_meeting)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    y = fc2(drop(relu(norm(watched(y, scene)))));
    note(here, false);
    return scene->throws(Place::wrong_output, here) ? y.narrow(1, 0, 2) : y;
  }
  void note(Device on, bool begins) const {
    const std::lock_guard lock(scene->mutex);
    Scene::Allocations& noted = scene->allocations.at(static_cast<std::size_t>(on.index()));
    const std::uint64_t now = memory_stats(on).allocations;
    if (begins && noted.first == 0) noted.first = now;
    if (!begins) noted.last = now;
  }
  BRAID_FIELDS(fc1, norm, drop, fc2)
};

struct Mode {
  const char* name;
  parallel::DataParallelOptions options;
  bool joined = true;  // model(x), else model.replicas(x)
};
/// The modes over n devices; with shards each device has two of them.
inline std::vector<Mode> modes(int n) {
  return {{"without a cache", {.cache = false}},
          {"cache", {}},
          {"local updates", {.update = parallel::Update::local}},
          {"buckets", {.bucket_bytes = 1}},
          {"shards", {.shards = 2 * n}},
          {"replicas", {}, false},
          {"merged buffers", {.merge_buffers = parallel::MergeBuffers::mean}}};
}

/// How often a device had given memory when a part of the step was over.
struct Marks {
  std::uint64_t begin = 0, outputs = 0, backward = 0, step = 0;
};

/// A model, its optimizer, and steps.
struct Program {
  parallel::DataParallel<FaultyNet> model;
  bool joined;
  std::unique_ptr<optim::AdamW> optimizer;
  std::optional<parallel::LocalUpdate<optim::AdamW>> local;
  std::shared_ptr<parallel::detail::LocalReplicas> copies;  // of local updates

  Program(const FaultyNet& start, int n, const Mode& mode)
      : model(clone(start), group(n), mode.options), joined(mode.joined) {
    const auto make = [](const std::vector<Tensor>& p) { return optim::AdamW(p, {.lr = 0.01}); };
    if (mode.options.update == parallel::Update::local) {
      local.emplace(model, make);
      copies = model.local_replicas();
    } else {
      optimizer.reset(new optim::AdamW(make(parameters(model))));
    }
  }
  /// Step number i on this batch; the random numbers are those of i. `marks` are those of device d.
  void step(const Tensor& x, std::uint64_t i, int d = 0, Marks* marks = nullptr) {
    const auto count = [&] { return memory_stats(device(d)).allocations; };
    Marks seen{.begin = count()};
    manual_seed(i);
    if (local) local->zero_grad();
    else optimizer->zero_grad();
    Tensor loss;
    if (joined) {
      const Tensor y = model(x);
      loss = (y * y).sum();
    } else {
      for (const Tensor& y : model.replicas(x)) {
        const Tensor part = (y * y).sum().to(device(0));
        loss = loss.defined() ? loss + part : part;
      }
    }
    seen.outputs = count();
    loss.backward();
    seen.backward = count();
    if (local) local->step();
    else optimizer->step();
    for (const Device on : devices()) synchronize(on);
    seen.step = count();
    if (marks) *marks = seen;
  }
  /// The parameters; with local updates those of every device, as they are.
  [[nodiscard]] std::vector<Tensor> weights() const {
    if (!copies) return parameters(model);
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& rank : copies->parameters())
      all.insert(all.end(), rank.begin(), rank.end());
    return all;
  }
};

}  // namespace braid::test
