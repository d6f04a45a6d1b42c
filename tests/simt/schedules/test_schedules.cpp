// Trains two steps over three devices under a thousand orders of the devices' streams. The
// parameters have the same bits in each, and the checker finds nothing. Unordered operations run in
// every order here. A race is found even if it did no harm in a run, because the checker compares
// which operations are ordered, not when they happened to run.
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <braid/braid.hpp>

#include "simt/engine/findings.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"
#include "support/on_device.hpp"

using namespace braid;
using parallel::DataParallelOptions;

namespace {

// This binary uses three emulated devices.
const bool ready = [] {
  setenv("BRAID_SIMT_DEVICES", "3", 1);
  for (const char* const name :
       {"BRAID_DEVICE", "BRAID_CUDA_DEVICES_PER_GPU", "BRAID_COMMUNICATOR"})
    unsetenv(name);
  return true;
}();

constexpr std::uint64_t kSchedules = 1000;
constexpr std::int64_t kRows = 13;  // 5, 5 and 3

struct Net : nn::Module {
  nn::Linear fc1{6, 8};
  nn::BatchNorm1d norm{8};
  nn::Dropout drop{0.25};
  nn::Linear fc2{8, 3};
  Tensor operator()(const Tensor& x) const { return fc2(drop(relu(norm(fc1(x))))); }
  BRAID_FIELDS(fc1, norm, drop, fc2)
};

struct Mode {
  const char* name;
  DataParallelOptions options;
  bool host = true;  // the batch is on the host, otherwise on the second device
  int devices = 3;
  // weight decay in the loss: adds a second part, from the first device, to each gradient
  double decay = 0;
};
std::vector<Mode> modes() {
  return {{"plain", {}},
          {"buckets", {.bucket_bytes = 1}, false},
          {"local updates", {.update = parallel::Update::local}},
          {"shards", {.shards = 6}, false},
          {"shards on one device", {.shards = 6}, true, 1, 0.1}};
}

/// Returns the bytes of all parameters and buffers after two steps from `start`.
std::string trained(const Net& start, const Mode& mode, const Tensor& batch, const Tensor& labels) {
  manual_seed(7);
  const std::vector<Device> all = devices();
  parallel::DataParallel<Net> model(
      clone(start), std::vector<Device>(all.begin(), all.begin() + mode.devices), mode.options);
  const auto train = [&](auto& optimizer) {
    for (int step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      Tensor loss = cross_entropy(model(batch), labels);
      if (mode.decay > 0)
        loss = loss + (model.module.fc1.weight * model.module.fc1.weight).sum() * mode.decay;
      loss.backward();
      optimizer.step();
    }
  };
  const auto make = [](const std::vector<Tensor>& p) {
    return optim::SGD(p, {.lr = 0.1, .momentum = 0.9});
  };
  if (mode.options.update == parallel::Update::local) {
    parallel::LocalUpdate optimizer(model, make);
    train(optimizer);
  } else {
    auto optimizer = make(parameters(model));
    train(optimizer);
  }
  std::string bytes;
  const auto add = [&](const Tensor& t) {
    const Tensor here = t.detach().to(Device());
    const char* const data =
        static_cast<const char*>(here.storage()->data()) +
        here.storage_offset() * static_cast<std::int64_t>(size_of(here.dtype()));
    bytes.append(data, static_cast<std::size_t>(here.numel()) * size_of(here.dtype()));
  };
  for (const auto& [name, tensor] : state_dict(model)) add(tensor);
  if (mode.options.update == parallel::Update::local)
    for (const std::vector<Tensor>& rank : model.local_replicas()->parameters())
      for (const Tensor& p : rank) add(p);
  return bytes;
}

}  // namespace

TEST_CASE("schedules: the same bits in 1000 orders of streams, and no finding", "[schedules]") {
  REQUIRE((ready && devices().size() == 3));
  simt::set_report_mode(simt::ReportMode::collect);
  manual_seed(1);
  Net start;
  to(start, best_device());
  const Tensor batch = randn({kRows, 6}), labels = remainder(arange(kRows), 3).to(best_device());
  const std::vector<Mode> all = modes();
  std::vector<std::string> first;
  std::vector<Tensor> batches;
  for (const Mode& mode : all) {
    batches.push_back(mode.host ? batch : batch.to(Device("cuda:1")));
    first.push_back(trained(start, mode, batches.back(), labels));  // the oldest operation first
  }
  CHECK(test::findings() == "");
  std::set<std::uint64_t> orders;
  std::uint64_t tried = 0;
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= kSchedules && wrong < 5; ++seed) {
    if (!test::in_part(seed)) continue;
    ++tried;
    const std::size_t i = seed % all.size();
    simt::set_stream_order(simt::StreamOrder::random, seed);
    const bool same = trained(start, all[i], batches[i], labels) == first[i];
    const std::string found = test::findings();
    orders.insert(simt::schedule());
    INFO(all[i].name << ", seed " << seed);
    CHECK(same);
    CHECK(found == "");
    wrong += !same || !found.empty();
  }
  simt::set_stream_order(simt::StreamOrder::fifo);
  simt::set_report_mode(simt::ReportMode::sticky);
  CHECK(orders.size() > tried * 9 / 10);  // the seeds did choose different orders
  if (wrong != 0) return;
  std::string names;
  for (const Mode& mode : all) names += str(names.empty() ? "" : ", ", mode.name);
  std::cout << "SHOWS: " << tried << " schedules of streams on " << devices().size() << " devices, "
            << orders.size() << " of them different (" << names
            << "): all parameters equal to the last bit, no finding\n";
}
