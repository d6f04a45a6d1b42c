// The calls that hand work from one stream to another fail, each in turn. What was to be ordered by
// them is then over before anyone goes on: nothing is found, and numbers are right or an exception
// of ours says that they were not made.
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <braid/braid.hpp>

#include "child.hpp"
#include "cuda/gate.hpp"
#include "findings.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"

using namespace braid;

namespace {

constexpr std::int64_t kSmall = 1000, kLongerThanTheRing = 1'100'000;

/// Runs f, which may fail.
template <class F> void attempt(F&& f) {
  try {
    f();
  } catch (const CudaError&) {}
}

/// A block of the first stream's cache is lent to the second one, which gives it back; then the
/// first one writes to it.
std::string lend(Device device, const std::shared_ptr<Stream>& other) {
  synchronize(device);
  empty_cache(device);
  Tensor kept = ones({kSmall}, {.device = device}) + 1;
  const Tensor seen = kept.clone();
  kept = {};
  // so there is no other memory
  set_memory_capacity(device, memory_stats(device).in_use + memory_stats(device).cached);
  Tensor lent;
  {
    // a stream that has nothing to do would give the block away for good
    test::Gate gate(current_stream(device));
    const StreamGuard guard(other);
    lent = full({kSmall}, 3.0, {.device = device});
    gate.open();
    lent.add_(1);
    lent = {};
  }
  const Tensor next = full({kSmall}, 5.0, {.device = device});
  set_memory_capacity(device, 0);
  return sum(next).item<double>() == 5 * kSmall && sum(seen).item<double>() == 2 * kSmall
             ? ""
             : "lent memory: wrong numbers; ";
}

/// A block is used by a second stream and freed on its own.
std::string use_elsewhere(Device device, const std::shared_ptr<Stream>& other) {
  Tensor x = ones({kSmall}, {.device = device}), y;
  {
    other->wait_for(current_stream(device));
    const StreamGuard guard(other);
    y = x * 2;
    record_stream(x, *other);
  }
  x = {};
  const Tensor next = full({kSmall}, 7.0, {.device = device});
  other->synchronize();
  return sum(y).item<double>() == 2 * kSmall && sum(next).item<double>() == 7 * kSmall
             ? ""
             : "memory used elsewhere: wrong numbers; ";
}

/// From the host, between devices and back.
std::string copy_around(Device from, Device to) {
  const Tensor x = arange(kLongerThanTheRing, {.dtype = DType::float32});
  Tensor there = x.to(from).to(to);
  const Tensor again = there * 1;
  there = {};
  return equal(again.to(from).to(Device()), x) ? "" : "copies: wrong numbers; ";
}

/// A copy fails while its streams are held up; then the host fills every pinned piece, and the
/// memory of the source is used again.
std::string copy_held_up(Device from, Device to) {
  Tensor x = ones({kSmall}, {.device = from});
  const Tensor after = ones({kLongerThanTheRing});
  {
    test::Gate at_source(current_stream(from)), at_target(current_stream(to));
    const std::jthread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      at_source.open();
      at_target.open();
    });
    attempt([&] { (void)x.to(to); });
    x = {};
    const Tensor next = full({kSmall}, 7.0, {.device = from});
    attempt([&] { const Tensor a = after.to(from), b = after.to(to); });
  }
  return "";  // what can go wrong is a finding
}

/// The first copy between two devices is tried out before; where that fails, the next try is one of
/// other streams, which nothing orders behind it.
class TryOut {
 public:
  TryOut(Device from, Device to) : x_(full({kSmall}, 3.0, {.device = from})) {
    for (int i = 0; i < 100; ++i) streams_.push_back({make_stream(from), make_stream(to)});
    synchronize(from);
  }
  std::string operator()() {
    const auto& [source, target] = streams_.at(next_++);
    const StreamGuard source_guard(source), target_guard(target);
    const Tensor y = x_.to(target->device());
    record_stream(x_, *source);
    return sum(y).item<double>() == 3 * kSmall ? "" : "tried out: wrong numbers; ";
  }

 private:
  Tensor x_;
  std::vector<std::pair<std::shared_ptr<Stream>, std::shared_ptr<Stream>>> streams_;
  std::size_t next_ = 0;
};

/// Fails each call of `function` that a part makes in turn.
template <class F> std::string each_failing(const char* function, int& failures, F&& part) {
  std::string text;
  for (std::uint64_t k = 1; k < 200; ++k) {
    simt::fail_call(k, cudaErrorInvalidValue, false, function);
    std::string wrong;
    attempt([&] { wrong = part(); });
    const bool reached = simt::failed_call();
    simt::fail_call(0, cudaSuccess);
    failures += reached;
    for (const Device d : devices()) set_memory_capacity(d, 0);
    wrong += test::findings();
    if (!wrong.empty()) text += str(function, " ", k, ": ", wrong);
    if (!reached) return text;
  }
  return text + "there is no end to the calls";
}

std::string on_machine(bool access) {
  return test::in_child(2, [access] {
    simt::set_peer_access_supported(access);
    simt::set_report_mode(simt::ReportMode::collect);
    const Device a("cuda:0"), b("cuda:1");
    std::string text;
    int failures = 0;
    for (const Device d : {a, b}) (void)full({kSmall}, 1.0, {.device = d});
    // A call of any name, without a wait between the tries, and before anything else was copied.
    TryOut try_out(a, b);
    if (access) text += each_failing("", failures, try_out);
    for (const char* const function : {"cudaEventRecord", "cudaStreamWaitEvent"}) {
      const std::shared_ptr<Stream> side = make_stream(a);
      text += each_failing(function, failures, [&] { return lend(a, side); });
      text += each_failing(function, failures, [&] { return use_elsewhere(a, side); });
      text += each_failing(function, failures, [&] { return copy_around(a, b); });
      text += each_failing(function, failures, [&] { return copy_held_up(a, b); });
    }
    for (const Device d : devices()) synchronize(d);
    text += test::findings();
    return str(text.empty() ? "nothing found" : text,
               failures > 30 ? ", calls failed" : str(", too few calls failed: ", failures));
  });
}

}  // namespace

TEST_CASE("handovers that fail: streams of a device, and copies, over the bus or not",
          "[streams]") {
  CHECK(on_machine(true) == "nothing found, calls failed");
  CHECK(on_machine(false) == "nothing found, calls failed");
}
