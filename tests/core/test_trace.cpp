// Tests of spans: what is recorded, by which thread, in which order, and nothing without a
// recording.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <braid/core/internal/device_clock.hpp>

#include "shorthand.hpp"

namespace braid::test::on_device {

using trace::Phase;
using trace::Record;
using trace::Recording;
using trace::Span;

namespace {

const Device kHost;
constexpr Phase kScatter("scatter"), kReplicate("replicate"), kGather("gather");
std::vector<Device> default_list() { return {best_device()}; }
std::vector<Record> named(const std::vector<Record>& records, const std::string& name) {
  std::vector<Record> found;
  std::copy_if(records.begin(), records.end(), std::back_inserter(found),
               [&](const Record& r) { return r.name == name; });
  return found;
}

}  // namespace

TEST_CASE("trace: a span has its name, phase, device, replica, step, bytes and time", "[trace]") {
  Recording recording(default_list());
  { const Span before("before", Phase::compute, kHost); }
  CHECK(recording.begin_step() == 0);
  {
    Span outer("outer", kGather, kHost, 3);
    outer.add_bytes(100);
    outer.add_bytes(20);
    outer.add_kept_bytes(7);
    const Span inner("inner", kScatter, kHost);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK(recording.begin_step() == 1);
  {
    const Device group[] = {kHost, best_device()};
    trace::GroupSpan all("all", kReplicate, group);
    all.add_bytes(1, 5, 6, 7);
    all.add_bytes(2, 5, 6, 7);  // no device of the group
  }
  const std::vector<Record> records = recording.records();
  CHECK(recording.dropped() == 0);
  REQUIRE(records.size() == 5);
  const Record before = records[0], outer = records[1], inner = records[2];
  CHECK(std::string(before.name) == "before");
  CHECK(before.step == -1);
  CHECK(std::string(outer.name) == "outer");
  CHECK(outer.step == 0);
  CHECK(outer.phase == kGather);
  CHECK(outer.device == kHost);
  CHECK(outer.rank == 3);
  CHECK(outer.bytes == 120);
  CHECK(outer.kept_bytes == 7);
  CHECK(outer.clock == trace::Clock::host);
  CHECK(std::string(inner.name) == "inner");
  CHECK(inner.rank == -1);
  CHECK((outer.begin <= inner.begin && inner.end <= outer.end));
  CHECK((outer.end - outer.begin >= 2'000'000 && outer.end - outer.begin < 10'000'000'000));
  const std::vector<Record> all = named(records, "all");
  REQUIRE(all.size() == 2);
  for (const Record& r : all) {
    const std::uint64_t share = r.rank == 1 ? 1 : 0;
    CHECK(r.step == 1);
    CHECK(r.bytes == 5 * share);
    CHECK(r.cached_bytes == 6 * share);
    CHECK(r.kept_bytes == 7 * share);
  }
  CHECK(std::string(kGather.name()) == "gather");
  CHECK(std::string(Phase().name()) == "other");
  CHECK((Phase("step") == Phase::step && Phase::step != Phase::compute));
}

TEST_CASE(
    "trace: nothing is recorded while no recording lives, and what one saw the next does not see",
    "[trace]") {
  CHECK_FALSE(trace::enabled());
  { const Span lost("lost", Phase::compute, kHost); }
  {
    Recording first(default_list());
    CHECK(trace::enabled());
    { const Span span("first", Phase::compute, kHost); }
    CHECK_THROWS_TEXT(Error, "trace::Recording: expected no other recording*got one that is on",
                      Recording(default_list()));
    CHECK(trace::enabled());
    CHECK(first.records().size() == 1);
    CHECK_FALSE(trace::enabled());
    const Span late("late", Phase::compute, kHost);
    CHECK(first.records().size() == 1);
  }
  CHECK_THROWS_TEXT(DeviceError, "device: expected one of*got cpu:99",
                    Recording(std::vector<Device>{Device("cpu:99")}));
  Recording second(default_list());
  CHECK(second.records().empty());
}

TEST_CASE("trace: a span that is open when the recording ends is left out, in the next one too",
          "[trace]") {
  auto first = std::make_unique<Recording>(default_list());
  auto open = std::make_unique<Span>("open", Phase::compute, kHost);
  first.reset();
  Recording second(default_list());
  { const Span kept("kept", Phase::compute, kHost); }
  open.reset();
  const std::vector<Record> records = second.records();
  REQUIRE(records.size() == 1);
  CHECK(std::string(records[0].name) == "kept");
}

TEST_CASE("trace: threads record at the same time, also those that have ended", "[trace]") {
  constexpr int kThreads = 4, kSpans = 3000;  // more than one chunk of a buffer
  Recording recording(default_list());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < kSpans; ++i) const Span span("work", Phase::compute, kHost, t);
    });
  for (std::thread& t : threads) t.join();
  const std::vector<Record> records = recording.records();
  CHECK(records.size() == kThreads * kSpans);
  CHECK(std::is_sorted(records.begin(), records.end(),
                       [](const Record& a, const Record& b) { return a.begin < b.begin; }));
  for (int t = 0; t < kThreads; ++t) {
    std::vector<std::int32_t> of;
    for (const Record& r : records)
      if (r.rank == t) of.push_back(r.thread);
    CHECK(of.size() == kSpans);
    CHECK(std::all_of(of.begin(), of.end(),
                      [&](std::int32_t thread) { return thread == of.front(); }));
  }
}

TEST_CASE("trace: spans beyond a thread's room are counted, not kept", "[trace]") {
  constexpr std::uint64_t kRoom = 262'144, kMore = 10;
  Recording recording(default_list());
  for (std::uint64_t i = 0; i < kRoom + kMore; ++i) const Span span("many", Phase::compute, kHost);
  CHECK(recording.records().size() == kRoom);
  CHECK(recording.dropped() == kMore);
}

TEST_CASE("trace: a work span is one span from wait to wait, and ends where its last piece did",
          "[trace]") {
  Recording recording(default_list());
  {
    trace::WorkSpan work("work", Phase::compute, kHost);
    work.pause();  // not started yet
    work.resume();
    work.resume();  // continues
    work.mark();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // a wait
    work.pause();
    work.resume();
    work.mark();
  }
  const std::vector<Record> records = recording.records();
  REQUIRE(records.size() == 2);
  CHECK(records[1].begin - records[0].end >= 20'000'000);
}

TEST_CASE(
    "trace: a span on a device with a clock of its own has that clock's time, and the memory its "
    "tensors have grown by",
    "[trace]") {
  Recording recording(default_list());
  Tensor kept;
  {
    const Span span("ones", Phase::compute, best_device(), 0, Span::Memory::yes);
    kept = ones({1024, 1024}, {.device = best_device()}) + 1.0;
  }
  const std::vector<Record> records = named(recording.records(), "ones");
  REQUIRE(records.size() == 1);
  CHECK(records[0].clock ==
        (device_clock(best_device()) ? trace::Clock::device : trace::Clock::host));
  CHECK(records[0].end > records[0].begin);
  CHECK(records[0].memory >= 4 * 1024 * 1024);
  CHECK(records[0].memory < 2 * 4 * 1024 * 1024 + 4096);
  CHECK(device_clock(Device("cpu:0")) == nullptr);
}

TEST_CASE("trace: backward is one span of its device", "[trace]") {
  Tensor x = ones({3}, {.device = best_device()});
  x.requires_grad_();
  Recording recording(default_list());
  (x * 2.0).sum().backward();
  const std::vector<Record> records = named(recording.records(), "backward");
  REQUIRE(records.size() == 1);
  CHECK(records[0].device == best_device());
  CHECK(records[0].phase == Phase::compute);
}

}  // namespace braid::test::on_device
