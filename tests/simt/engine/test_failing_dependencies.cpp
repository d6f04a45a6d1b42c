// Makes each call fail that orders work between two streams. The work that the call was to order is
// then complete before anything else starts: there are no findings, and either the results are
// right or one of our exceptions says that they were not computed.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <braid/braid.hpp>
#include <braid/core/internal/backend.hpp>

#include "child.hpp"
#include "cuda/gate.hpp"
#include "findings.hpp"
#include "simt/runtime/control.hpp"
#include "support/check.hpp"
#include "support/on_device.hpp"

using namespace braid;

namespace {

constexpr std::int64_t kSmall = 1000, kLongerThanTheRing = 1'100'000;

/// Runs f, which may throw CudaError.
template <class F> void attempt(F&& f) {
  try {
    f();
  } catch (const CudaError&) {}
}

/// The second stream borrows a block from the first stream's cache and returns it; then the first
/// stream writes to it.
std::string borrow(Device device, const std::shared_ptr<Stream>& other) {
  synchronize(device);
  empty_cache(device);
  Tensor kept = ones({kSmall}, {.device = device}) + 1;
  const Tensor seen = kept.clone();
  kept = {};
  // so that there is no other memory
  set_memory_capacity(device, memory_stats(device).in_use + memory_stats(device).cached);
  Tensor borrowed;
  {
    // an idle stream would give the block away for good
    test::Gate gate(current_stream(device));
    const StreamGuard guard(other);
    borrowed = full({kSmall}, 3.0, {.device = device});
    gate.open();
    borrowed.add_(1);
    borrowed = {};
  }
  const Tensor next = full({kSmall}, 5.0, {.device = device});
  set_memory_capacity(device, 0);
  return sum(next).item<double>() == 5 * kSmall && sum(seen).item<double>() == 2 * kSmall
             ? ""
             : "borrowed memory: wrong numbers; ";
}

/// A second stream uses a block, which is freed on its own stream.
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

/// Copies from the host to a device, to another device, and back.
std::string copy_around(Device from, Device to) {
  const Tensor x = arange(kLongerThanTheRing, {.dtype = DType::float32});
  Tensor there = x.to(from).to(to);
  const Tensor again = there * 1;
  there = {};
  return equal(again.to(from).to(Device()), x) ? "" : "copies: wrong numbers; ";
}

/// A copy fails while its streams are blocked. Then the host fills every pinned piece, and the
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
  return "";  // an error would be a finding
}

/// Uploads use memory again whose readers are held up. A segment of the pool holds two of them, and
/// none is left from before, so that nothing is free beside the four that wait for their readers.
std::string upload_again(Device device) {
  constexpr std::int64_t half_segment = 250'000;
  empty_cache(device);
  std::vector<std::pair<double, Tensor>> doubled;
  {
    test::Gate gate(current_stream(device));
    const std::jthread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      gate.open();
    });
    for (int i = 1; i < 8; ++i) {
      const Tensor x = full({half_segment}, 1.0 * i);
      attempt(
          [&] { doubled.emplace_back(2.0 * i * kSmall, x.to(device).narrow(0, 0, kSmall) * 2); });
    }
  }
  for (const auto& [want, y] : doubled)
    if (sum(y).item<double>() != want) return "uploads: wrong numbers; ";
  return "";
}

/// Pinned memory is released while copies from it are held up, and the host writes to it again.
std::string upload_pinned(Device device) {
  std::vector<std::pair<double, Tensor>> doubled;
  {
    test::Gate gate(*device_context(device).backend->upload_stream());
    const std::jthread opener([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      gate.open();
    });
    for (int i = 1; i < 4; ++i) {
      const Tensor x = full({kSmall}, 1.0 * i).pin_memory();
      attempt([&] { doubled.emplace_back(2.0 * i * kSmall, x.to(device, true) * 2); });
    }
  }
  for (const auto& [want, y] : doubled)
    if (sum(y).item<double>() != want) return "pinned: wrong numbers; ";
  return "";
}

/// The first copy between two devices is preceded by a test copy. If that fails, the next attempt
/// is on other streams, which nothing orders after the first.
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

/// Makes each call of `function` in a part fail, one per run. CI samples those of a named function.
template <class F> std::string each_failing(const char* function, int& failures, F&& part) {
  std::string text;
  for (std::uint64_t k = 1; k < 200; ++k) {
    if (*function != '\0' && !test::in_part(k)) continue;
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
    // Calls of any name, with no wait between the attempts, and before anything else is copied.
    TryOut try_out(a, b);
    if (access) text += each_failing("", failures, try_out);
    for (const char* const function : {"cudaEventRecord", "cudaStreamWaitEvent"}) {
      const std::shared_ptr<Stream> side = make_stream(a);
      text += each_failing(function, failures, [&] { return borrow(a, side); });
      text += each_failing(function, failures, [&] { return use_elsewhere(a, side); });
      text += each_failing(function, failures, [&] { return copy_around(a, b); });
      text += each_failing(function, failures, [&] { return copy_held_up(a, b); });
      text += each_failing(function, failures, [&] { return upload_again(a); });
      text += each_failing(function, failures, [&] { return upload_pinned(a); });
    }
    for (const Device d : devices()) synchronize(d);
    text += test::findings();
    const int least = std::getenv("BRAID_TEST_PART") == nullptr ? 30 : 8;
    return str(text.empty() ? "nothing found" : text,
               failures > least ? ", calls failed" : str(", too few calls failed: ", failures));
  });
}

}  // namespace

TEST_CASE("stream dependencies that fail: streams of a device, and copies, over the bus or not",
          "[streams]") {
  CHECK(on_machine(true) == "nothing found, calls failed");
  CHECK(on_machine(false) == "nothing found, calls failed");
}
