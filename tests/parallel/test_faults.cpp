// A replica throws in every part of a step, on every device, in every mode. The error tells where.
// When it arrives, all replicas have ended, no parameter has changed and no gradient exists. The
// next step gives the same result as without the error.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <mutex>

#include <braid/nn/replica_group.hpp>

#include "group.hpp"
#include "support/sanitized.hpp"

namespace braid::test::on_device {

using parallel::ReplicatedOptimizer;

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSeconds = 1;
constexpr int kTries = 5;

/// Where a replica throws an injected fault.
enum class Place { nowhere, before_rendezvous, after_rendezvous, wrong_output, backward };

/// State shared by a test and the replicas: where one of them throws, how many are running, and how
/// many allocations each device has made.
struct Scene {
  Place place = Place::nowhere;
  int device = -1;
  std::atomic<int> inside{0};
  struct Allocations {
    // the count when the first replica on the device began, and when the last one ended
    std::uint64_t first = 0, last = 0;
  };
  std::mutex mutex;
  std::array<Allocations, 64> allocations{};

  [[nodiscard]] bool throws(Place here, Device on) const {
    return place == here && on.index() == device;
  }
  void fault(Place here, Device on) const {
    if (throws(here, on)) throw std::out_of_range("thrown on purpose");
  }
  /// Waits, so that this replica still runs when another one throws.
  void linger(Place here) const {
    if (place == here) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  void note(Device on, bool begins) {
    const std::lock_guard lock(mutex);
    Allocations& noted = allocations.at(usize(on.index()));
    const std::uint64_t now = memory_stats(on).allocations;
    if (begins && noted.first == 0) noted.first = now;
    if (!begins) noted.last = now;
  }
};

/// Counts a running replica, or the backward of one of its ops.
struct Visit {
  Scene& scene;
  explicit Visit(Scene& s) : scene(s) { ++scene.inside; }
  ~Visit() { --scene.inside; }
};

/// Returns x through an op whose backward is watched.
Tensor watched(const Tensor& x, Scene* scene) {
  if (!needs_grad({x})) return x;
  Tensor y;
  unrecorded([&] { y = x.clone(); });
  return record("watched", {x}, y, [scene](const Tensor& dy) {
    const Visit visit(*scene);
    scene->fault(Place::backward, dy.device());
    scene->linger(Place::backward);
    return Grads{dy};
  });
}

/// Weights, a buffer, random numbers, and a rendezvous of the replicas half way.
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
    scene->note(here, true);
    scene->fault(Place::before_rendezvous, here);
    Tensor y = fc1(x);
    // blocks forever if nothing reports that a replica will not arrive
    if (ReplicaGroup* const all = replica_group()) (void)all->all_reduce(1.0);
    scene->fault(Place::after_rendezvous, here);
    scene->linger(Place::after_rendezvous);
    y = fc2(drop(relu(norm(watched(y, scene)))));
    scene->note(here, false);
    return scene->throws(Place::wrong_output, here) ? y.narrow(1, 0, 2) : y;
  }
  BRAID_FIELDS(fc1, norm, drop, fc2)
};

/// The parts of a step in which a device may run out of memory.
enum Part { scatter, replicate, forward, gather, backward, update, kParts };
constexpr const char* kPartNames[] = {"scatter",         "replicate",           "forward",
                                      "gather and loss", "backward and reduce", "optimizer"};

/// A model, its optimizer, and steps.
struct Program {
  DataParallel<FaultyNet> model;
  bool joined;
  std::unique_ptr<optim::AdamW> optimizer;
  std::optional<ReplicatedOptimizer<optim::AdamW>> replicated;

  Program(const FaultyNet& start, int n, const Mode& mode)
      : model(wrapped(clone(start), group(n), mode)), joined(mode.joined) {
    const auto make = [](const std::vector<Tensor>& p) { return optim::AdamW(p, {.lr = 0.01}); };
    if (mode.replicated_optimizer) replicated.emplace(model, make);
    else optimizer.reset(new optim::AdamW(make(parameters(model))));
  }
  /// Runs step number i on this batch, with the random numbers of i. `ends` gets the number of
  /// allocations on device d after the outputs, the backward and the step.
  void step(const Tensor& x, std::uint64_t i, int d = 0, std::uint64_t* ends = nullptr) {
    const std::uint64_t begin = memory_stats(device(d)).allocations;
    const auto note = [&](Part part) {
      if (ends) ends[part] = memory_stats(device(d)).allocations - begin;
    };
    manual_seed(i);
    zero_grad(model);
    Tensor loss;
    if (joined) {
      loss = square(model(x)).sum();
    } else {
      for (const Tensor& y : model.replicas(x)) {
        const Tensor part = square(y).sum().to(device(0));
        loss = loss.defined() ? loss + part : part;
      }
    }
    note(gather);
    loss.backward();
    note(backward);
    if (replicated) replicated->step();
    else optimizer->step();
    for (const Device on : devices()) synchronize(on);
    note(update);
  }
  /// The parameters; with a replicated optimizer those of every device, without an update.
  [[nodiscard]] std::vector<Tensor> weights() const {
    if (!replicated) return parameters(model);
    std::vector<Tensor> all;
    for (const std::vector<Tensor>& rank : replicated->weights())
      all.insert(all.end(), rank.begin(), rank.end());
    return all;
  }
};

/// An injected fault: a replica that throws, or the device's k-th allocation.
struct Fault {
  const char* name;
  Place place = Place::nowhere;
  std::uint64_t allocation = 0;
  Part part = forward;
};
constexpr Fault kThrown[] = {{"forward", Place::before_rendezvous},
                             {"forward, after a rendezvous", Place::after_rendezvous},
                             {"gather", Place::wrong_output, 0, gather},
                             {"backward", Place::backward, 0, backward}};

std::string differences(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  if (got.size() != want.size()) return str(got.size(), " tensors, not ", want.size());
  for (std::size_t k = 0; k < want.size(); ++k)
    if (const std::string found = test::same_bits(got[k], want[k]); !found.empty())
      return str("parameter ", k, ": ", found);
  return {};
}

/// A mode over n devices, with the results of a step without a fault.
struct Setting {
  Scene scene;
  FaultyNet start;
  int n;
  Mode mode;
  Tensor x;
  // [warm]: the parameters after the step that will fail
  std::map<bool, std::vector<Tensor>> expected;

  Setting(int count, const Mode& m)
      : start(home(FaultyNet(&scene))),
        n(count),
        mode(m),
        x(random_tensor({4 * n, 6}, DType::float32, device(0), 3)) {
    for (const bool warm : {false, true}) {
      Program program(start, n, mode);
      if (warm) program.step(x, 1);
      program.step(x, 2);
      expected[warm] = copies_of(program.weights());
    }
  }
  /// The batch, on a device other than the one where device d's chunk must be.
  [[nodiscard]] Tensor batch(int d) const { return x.to(device((d + 1) % n)); }
  [[nodiscard]] std::size_t replicas_each() const { return mode.virtual_replicas > 0 ? 2 : 1; }

  /// The first and the last allocation of each part of a step on device d.
  [[nodiscard]] std::vector<Fault> allocations(int d) {
    const Device on = device(d);
    const Tensor input = batch(d);
    const std::uint64_t before = memory_stats(on).allocations;
    const tree::Flat flat = tree::flatten(input);
    if (mode.virtual_replicas == 0) (void)parallel::detail::scatter_leaves(flat, group(n), {});
    else
      (void)parallel::detail::scatter_to_virtual_replicas(flat, group(n),
                                                          usize(mode.virtual_replicas), {});
    std::uint64_t ends[kParts] = {memory_stats(on).allocations - before};
    Program program(start, n, mode);
    scene.allocations = {};
    const std::uint64_t begin = memory_stats(on).allocations;
    program.step(input, 2, d, ends);
    const Scene::Allocations& run = scene.allocations.at(usize(d));
    ends[replicate] = run.first - begin;
    ends[forward] = run.last - begin;
    std::vector<Fault> faults;
    std::uint64_t end = 0;
    for (int part = 0; part < kParts; ++part) {
      const std::uint64_t first = end + 1;
      end = std::max(end, ends[part]);
      for (const std::uint64_t k : std::set<std::uint64_t>{first, end})
        if (first <= end)
          faults.push_back({kPartNames[part], Place::nowhere, k, static_cast<Part>(part)});
    }
    return faults;
  }
};

/// Returns an empty text if the error belongs to the fault and tells where it was.
std::string misnamed(const Setting& s, int d, const Fault& fault, const std::exception_ptr& error) {
  const auto unless = [](bool right, const char* text, const std::exception& e) {
    return right ? std::string() : str(text, ": ", e.what());
  };
  try {
    std::rethrow_exception(error);
  } catch (const ReplicaError& e) {
    if (e.device() != device(d) || e.index() / s.replicas_each() != usize(d) ||
        !matches(e.what(), str("in replica ", e.index(), " on device ", device(d), ": ")))
      return str("another replica is named: ", e.what());
    if (fault.allocation == 0)
      return unless(e.cause<std::out_of_range>() != nullptr && fault.place != Place::wrong_output &&
                        matches(e.what(), "Caught std::out_of_range in*thrown on purpose"),
                    "another cause", e);
    if (fault.part != forward && fault.part != backward)
      return str("no replica was at work: ", e.what());
    return unless(e.cause<OutOfMemoryError>() && e.cause<OutOfMemoryError>()->device == device(d),
                  "another cause", e);
  } catch (const OutOfMemoryError& e) {
    if (fault.part == forward) return str("no replica is named: ", e.what());
    return unless(fault.allocation && e.device == device(d) && matches(e.what(), str(device(d))),
                  "another device", e);
  } catch (const ShapeError& e) {  // a fault in replica 0 makes the others differ
    const std::string index = d == 0 ? std::string() : str(usize(d) * s.replicas_each(), ")");
    return unless(fault.place == Place::wrong_output &&
                      matches(e.what(), str("Gather got an input of invalid size: got [*but "
                                            "expected [*(the output of replica ",
                                            index)),
                  "another error", e);
  } catch (const std::exception& e) {
    return str("nothing is named: ", exception_type(error), ": ", e.what());
  }
}

/// Injects one fault on device d, then repeats the step. Returns an empty text or what was wrong;
/// `took` is the time until the error arrived.
std::string with_fault(Setting& s, int d, const Fault& fault, bool warm, double& took) {
  Program program(s.start, s.n, s.mode);
  const Tensor input = s.batch(d);
  if (warm) program.step(input, 1);
  const std::vector<Tensor> before = copies_of(program.weights());
  std::exception_ptr error;
  s.scene.device = d;
  s.scene.place = fault.place;
  fail_allocation(device(d), fault.allocation);
  const Clock::time_point begin = Clock::now();
  int inside = 0;
  try {
    program.step(input, 2);
  } catch (...) {
    inside = s.scene.inside;
    error = std::current_exception();
  }
  took = std::chrono::duration<double>(Clock::now() - begin).count();
  fail_allocation(device(d), 0);
  s.scene.place = Place::nowhere;
  if (!error) return "nothing was thrown";
  if (inside != 0) return str(inside, " replicas were still at work");
  if (std::string wrong = misnamed(s, d, fault, error); !wrong.empty()) return wrong;
  if (const std::string wrong = differences(program.weights(), before); !wrong.empty())
    return str("after the error, ", wrong);
  if (fault.part != update)
    for (const Tensor& p : program.weights())
      if (p.grad().defined()) return "after the error, a gradient is there";
  program.step(input, 2);
  if (const std::string wrong = differences(program.weights(), s.expected[warm]); !wrong.empty())
    return str("after the next step, ", wrong);
  return {};
}

/// Like with_fault. The error must arrive within a second in one of several tries, because a busy
/// machine may delay some of them.
std::string in_time(Setting& s, int d, const Fault& fault, bool warm) {
  double took = 0;
  for (int i = 0; i < kTries; ++i) {
    if (std::string wrong = with_fault(s, d, fault, warm, took); !wrong.empty()) return wrong;
    if (took < kSeconds) return {};
  }
  return str("the error came after ", took, " s");
}

}  // namespace

TEST_CASE("faults: in each part of a step, on each device, in each mode", "[faults]") {
  std::map<std::string, int> counts;
  std::string sizes;
  int cases = 0;
  for (const int n : {2, 4, 8}) {
    if (n > device_count()) break;
    sizes += str(sizes.empty() ? "" : ", ", n);
    for (const Mode& mode : modes(n)) {
      Setting setting(n, mode);
      const std::vector<std::size_t> before = in_use();
      for (int d = 0; d < n; ++d) {
        // the devices between them behave alike; the plain build tests all
        if ((emulated() || BRAID_SANITIZED) && d != 0 && d != n - 1) continue;
        std::vector<Fault> faults(std::begin(kThrown), std::end(kThrown));
        for (const Fault& fault : setting.allocations(d)) faults.push_back(fault);
        for (const Fault& fault : faults) {
          if (fault.place == Place::wrong_output && !mode.joined) continue;
          for (const bool warm : {false, true}) {
            // the allocation number is that of a first step
            if (warm && fault.allocation) continue;
            // with many devices the warm and cold cases alternate
            if (n > 4 && !fault.allocation && warm != (d % 2 != 0)) continue;
            INFO(n << " devices, " << mode.name << ": " << device(d) << " fails in " << fault.name
                   << ", allocation " << fault.allocation << (warm ? ", second step" : ""));
            CHECK(in_time(setting, d, fault, warm) == "");
            ++cases;
            ++counts[str(fault.allocation ? "no memory in " : "thrown in ", fault.name)];
          }
        }
      }
      CHECK(in_use() == before);
    }
  }
  if (cases == 0) return;
  for (const char* const part : kPartNames) CHECK(counts[str("no memory in ", part)] > 0);
  std::string text;
  for (const auto& [name, count] : counts) text += str(text.empty() ? "" : ", ", count, " ", name);
  std::cout << "SHOWS: " << cases << " faults of replicas on " << sizes << " devices in "
            << modes(2).size() << " modes: " << text << '\n';
}

}  // namespace braid::test::on_device
