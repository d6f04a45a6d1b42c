// A step in which a replica throws, in every part of the step, on every device, in every mode: the
// error says where, all replicas have ended when it comes, no parameter has changed, no gradient is
// there, and the next step is the one that would have been.
#include <iostream>
#include <map>

#include "faults.hpp"
#include "support/errors.hpp"
#include "support/sanitized.hpp"
#include "support/tensors.hpp"

namespace braid::test::on_device {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSeconds = 1;
constexpr int kTries = 5;

/// The parts of a step in which a device may have no memory.
enum Part { scatter, replicate, forward, gather, backward, update, kParts };
constexpr const char* kPartNames[] = {"scatter",         "replicate",           "forward",
                                      "gather and loss", "backward and reduce", "optimizer"};

/// A fault: a replica that throws of its own accord, or the device's k-th allocation.
struct Fault {
  const char* name;
  Place place = Place::nowhere;
  std::uint64_t allocation = 0;
  Part part = forward;
};

std::string differences(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  if (got.size() != want.size()) return str(got.size(), " tensors, not ", want.size());
  for (std::size_t k = 0; k < want.size(); ++k)
    if (const std::string found = test::same_bits(got[k], want[k]); !found.empty())
      return str("parameter ", k, ": ", found);
  return {};
}

/// A mode over n devices, with what a step of it is without a fault.
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
  /// The batch, not where device d's chunk has to be.
  [[nodiscard]] Tensor batch(int d) const { return x.to(device((d + 1) % n)); }
  [[nodiscard]] std::size_t replicas_each() const { return mode.options.shards > 0 ? 2 : 1; }

  /// The first and the last allocation of each part of a step on device d.
  [[nodiscard]] std::vector<Fault> allocations(int d) {
    const Device on = device(d);
    const Tensor input = batch(d);
    const std::uint64_t before = memory_stats(on).allocations;
    (void)parallel::detail::parts_of(tree::flatten(input), group(n), mode.options);
    const std::uint64_t scattered = memory_stats(on).allocations - before;
    Program program(start, n, mode);
    scene.allocations = {};
    Marks marks;
    program.step(input, 2, d, &marks);
    const Scene::Allocations& run = scene.allocations.at(static_cast<std::size_t>(d));
    const std::uint64_t ends[] = {scattered,
                                  run.first - marks.begin,
                                  run.last - marks.begin,
                                  marks.outputs - marks.begin,
                                  marks.backward - marks.begin,
                                  marks.step - marks.begin};
    std::vector<Fault> faults;
    std::uint64_t end = 0;
    for (int part = 0; part < kParts; ++part) {
      const std::uint64_t first = end + 1;
      end = std::max(end, ends[part]);
      if (first > end) continue;
      faults.push_back({kPartNames[part], Place::nowhere, first, static_cast<Part>(part)});
      if (first < end)
        faults.push_back({kPartNames[part], Place::nowhere, end, static_cast<Part>(part)});
    }
    return faults;
  }
};

/// Empty if the error is the fault's and says where it was.
std::string misnamed(const Setting& s, int d, const Fault& fault, const std::exception_ptr& error) {
  const auto replica_is_right = [&](const ReplicaError& e) {
    return e.device() == device(d) &&
           e.index() / s.replicas_each() == static_cast<std::size_t>(d) &&
           matches(e.what(), str("in replica ", e.index(), " on device ", device(d), ": "));
  };
  try {
    std::rethrow_exception(error);
  } catch (const ReplicaError& e) {
    if (!replica_is_right(e)) return str("another replica is named: ", e.what());
    if (fault.allocation == 0) {
      const bool right = e.cause<std::out_of_range>() != nullptr &&
                         matches(e.what(), "Caught std::out_of_range in*thrown on purpose");
      return right && fault.place != Place::wrong_output ? "" : str("another cause: ", e.what());
    }
    if (fault.part != forward && fault.part != backward)
      return str("no replica was at work: ", e.what());
    return e.cause<OutOfMemoryError>() && e.cause<OutOfMemoryError>()->device == device(d)
               ? ""
               : str("another cause: ", e.what());
  } catch (const OutOfMemoryError& e) {
    if (fault.part == forward) return str("no replica is named: ", e.what());
    return fault.allocation && e.device == device(d) && matches(e.what(), str(device(d)))
               ? ""
               : str("another device: ", e.what());
  } catch (const ShapeError& e) {  // of replica 0 all others are said to differ
    const std::size_t index =
        std::max<std::size_t>(1, static_cast<std::size_t>(d) * s.replicas_each());
    return fault.place == Place::wrong_output &&
                   matches(e.what(), str("Gather got an input of invalid size: got [*but expected "
                                         "[*(the output of replica ")) &&
                   (d == 0 || matches(e.what(), str("(the output of replica ", index, ")")))
               ? ""
               : str("another error: ", e.what());
  } catch (const std::exception& e) {
    return str("nothing is named: ", exception_type(error), ": ", e.what());
  }
}

/// One fault on device d, then the step that would have been. Empty, or what was wrong; `took` is
/// the time until the error came.
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

/// As with_fault; the error has to come within a second, in one of a few tries: a busy machine may
/// hold up some of them.
std::string in_time(Setting& s, int d, const Fault& fault, bool warm) {
  double took = 0;
  for (int i = 0; i < kTries; ++i) {
    if (std::string wrong = with_fault(s, d, fault, warm, took); !wrong.empty()) return wrong;
    if (took < kSeconds) return {};
  }
  return str("the error came after ", took, " s");
}

constexpr Fault kThrown[] = {{"forward", Place::before_meeting},
                             {"forward, behind a meeting", Place::behind_meeting},
                             {"gather", Place::wrong_output, 0, gather},
                             {"backward", Place::backward, 0, backward}};

}  // namespace

TEST_CASE("5.7, R5: a replica that throws, in each part of a step, on each device, in each mode",
          "[parallel][faults][errors]") {
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
        // those between differ in nothing; the plain build takes all
        if ((emulated() || BRAID_SANITIZED) && d != 0 && d != n - 1) continue;
        std::vector<Fault> faults(std::begin(kThrown), std::end(kThrown));
        for (const Fault& fault : setting.allocations(d)) faults.push_back(fault);
        for (const Fault& fault : faults) {
          if (fault.place == Place::wrong_output && !mode.joined) continue;
          for (const bool warm : {false, true}) {
            // its number is that of a first step
            if (warm && fault.allocation) continue;
            // many devices take turns
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
