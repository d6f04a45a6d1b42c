#include "transfer/moves.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>

#include <braid/core/error.hpp>

#include "support/timing.hpp"
#if BENCH_WITH_DRIVER
#include "transfer/driver.hpp"
#endif

namespace bench::transfer {
namespace {

using braid::Device;
using braid::DType;
using braid::Tensor;

// time of a turn, unless a single copy takes longer
constexpr double kTurnUs = 1e4;
constexpr int kMostMoves = 400;  // in a turn
// total size of the copies that are queued at the same time
constexpr std::size_t kQueuedBytes = std::size_t{256} << 20;
constexpr int kMostQueued = 16;

using Clock = std::chrono::steady_clock;
double micros(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Times `call`. The first call shows how long it takes; at least one more follows. The calls are
// timed in groups; the result is the median of the groups.
double time_calls(const std::function<void()>& call) {
  const auto first = Clock::now();
  call();
  const double us = std::max(micros(first), 0.02);
  const int moves =
                static_cast<int>(std::clamp(kTurnUs / us, 1.0, static_cast<double>(kMostMoves))),
            groups = std::min(moves, 20), each = moves / groups;
  std::vector<double> times;
  for (int g = 0; g < groups; ++g) {
    const auto start = Clock::now();
    for (int i = 0; i < each; ++i) call();
    times.push_back(micros(start) / each);
  }
  return median(std::move(times));
}

// Queues many copies, then waits for all of them.
Timed time_queued(const Way& way, std::size_t bytes) {
  const int depth = static_cast<int>(std::clamp<std::size_t>(kQueuedBytes / bytes, 2, kMostQueued));
  std::vector<double> whole, calls;
  way.move();
  way.wait();
  for (double spent = 0; whole.size() < 2 || (spent < kTurnUs && whole.size() < 25);) {
    const auto start = Clock::now();
    for (int i = 0; i < depth; ++i) way.move();
    calls.push_back(micros(start) / depth);
    way.wait();
    const double us = micros(start);
    whole.push_back(us / depth);
    spent += us;
  }
  return {median(std::move(whole)), median(std::move(calls))};
}

std::int64_t count_of(std::size_t bytes) {
  return static_cast<std::int64_t>(bytes / sizeof(float));
}

Tensor numbers(std::int64_t count, float first) {
  Tensor t = braid::empty({count});
  auto* const p = t.data<float>();
  for (std::int64_t i = 0; i < count; ++i) p[i] = first + static_cast<float>(i & 0xffffff);
  return t;
}

}  // namespace

Buffers::Buffers(const Ends& ends, std::size_t size) : bytes(size) {
  const std::int64_t count = count_of(size);
  host = numbers(count, 0);
  host_target = braid::zeros({count});
  first = host.to(ends.first);
  if (ends.two) second = braid::zeros({count}, {.device = ends.second});
#if BENCH_WITH_DRIVER
  if (!ends.queued()) return;
  pinned = transfer::pinned(count, ends.first);
  pinned.copy_(host);
  pinned_target = transfer::pinned(count, ends.first);
  pinned_target.zero_();
#endif
}

std::string Way::call_text() const {
  return call == Call::to ? "to" : call == Call::copy_ ? "copy_" : "driver";
}

std::string Way::text() const {
  const std::string what = call == Call::to      ? braid::str("x.to(", destination, ")")
                           : call == Call::copy_ ? braid::str("y.copy_(x), y on ", destination)
                                                 : std::string("cudaMemcpyAsync");
  return braid::str(direction, ", ", memory, ", ", mode, ": ", what, ", x on ", source.device());
}

Tensor Way::move() const {
  switch (call) {
    case Call::to: return source.to(destination, std::nullopt, true);
    case Call::copy_: target.copy_(source); return target;
    case Call::driver:
#if BENCH_WITH_DRIVER
      driver_copy(target, source);
      return target;
#endif
      break;
  }
  throw braid::Error("bench_transfer: this build has no CUDA runtime");
}

void Way::wait() const {
  for (const Device device : {source.device(), destination})
    if (device.type() != braid::DeviceType::cpu) braid::synchronize(device);
}

std::vector<Way> ways(const Ends& ends, const Buffers& b) {
  std::vector<Way> list;
  const auto add = [&](const char* direction, const char* memory, const char* mode, Call call,
                       const Tensor& from, const Tensor& to) {
    list.push_back({direction, memory, mode, call, from, to, to.device()});
  };
  if (!ends.queued()) {
    for (const Call call : {Call::to, Call::copy_}) {
      add("H2D", "pageable", "blocking", call, b.host, b.first);
      add("D2H", "pageable", "blocking", call, b.first, b.host_target);
      if (ends.two) add("D2D", "device", "blocking", call, b.first, b.second);
    }
    add("local", "device", "blocking", Call::to, b.first, b.first);
    return list;
  }
  for (const char* mode : {"blocking", "async"}) {
    add("H2D", "pageable", mode, Call::to, b.host, b.first);
    if (ends.two) add("D2D", "device", mode, Call::to, b.first, b.second);
    add("local", "device", mode, Call::to, b.first, b.first);
#if BENCH_WITH_DRIVER
    add("H2D", "pinned", mode, Call::to, b.pinned, b.first);
    add("H2D", "pageable", mode, Call::driver, b.host, b.first);
    add("H2D", "pinned", mode, Call::driver, b.pinned, b.first);
    add("D2H", "pageable", mode, Call::driver, b.first, b.host_target);
    add("D2H", "pinned", mode, Call::driver, b.first, b.pinned_target);
#endif
  }
  add("H2D", "pageable", "blocking", Call::copy_, b.host, b.first);
  add("D2H", "pageable", "blocking", Call::to, b.first, b.host_target);
  return list;
}

std::vector<Absent> absent_ways(const Ends& ends) {
  std::vector<Absent> list;
  if (!ends.queued()) {
    list.push_back(
        {"all", "pinned", "all",
         "the processor copies between CPU devices; no engine for copies needs pages that stay"});
    list.push_back(
        {"all", "all", "async", "the work of a CPU device is done when its call returns"});
  } else {
    list.push_back(
        {"D2H", "pageable", "async",
         "a copy to the host is done when its call returns (the driver's own call is measured)"});
  }
  if (!ends.two) list.push_back({"D2D", "device", "all", "there is one device"});
  return list;
}

std::string disagreement(const Way& way, const Buffers& b) {
  // First write other numbers to the destination: to the target, or to the memory that the next new
  // tensor will get.
  const std::int64_t count = count_of(b.bytes);
  const Tensor other = numbers(count, -3e7F);
  if (way.call == Call::to) (void)other.to(way.destination, std::nullopt, true);
  else way.target.copy_(other);
  way.wait();
  const Tensor arrived = way.move();
  if (way.call == Call::driver || way.mode == "async" ||
      way.destination.type() != braid::DeviceType::cpu)
    way.wait();
  const auto readable = [](const Tensor& t) {
    return t.device().type() == braid::DeviceType::cpu ? t : t.to("cpu:0");
  };
  const Tensor back = readable(arrived), want = readable(way.source);
  if (arrived.device() != way.destination)
    return braid::str("expected a tensor on ", way.destination, ", got one on ", arrived.device());
  if (back.numel() != count || want.numel() != count)
    return braid::str("expected ", count, " numbers, got ", back.numel(), " of ", want.numel());
  const auto *const got = back.data<float>(), *const sent = want.data<float>(),
                    *const start = b.host.data<float>();
  for (std::int64_t i = 0; i < count; ++i)
    if (std::memcmp(got + i, sent + i, sizeof(float)) != 0 ||
        std::memcmp(got + i, start + i, sizeof(float)) != 0)
      return braid::str("number ", i, " of ", count, ": expected ", start[i], ", got ", got[i]);
  return {};
}

Timed time_way(const Way& way) {
  if (way.mode == "async") return time_queued(way, way.source.storage()->bytes());
  const double us = time_calls([&] {
    way.move();
    way.wait();
  });
  return {us, us};
}

double time_memcpy(const Buffers& b) {
  void* const to = b.host_target.storage()->data();
  const void* const from = std::as_const(b.host).storage()->data();
  return time_calls([&] {
    std::memcpy(to, from, b.bytes);
    asm volatile("" : : "r"(to) : "memory");  // keeps the compiler from removing an unread copy
  });
}

}  // namespace bench::transfer
