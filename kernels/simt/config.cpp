#include "simt/config.hpp"

#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

#include <braid/core/error.hpp>

namespace braid::simt {

namespace {

std::uint64_t number(const char* name, std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || text.size() > 18)
    throw ArgumentError(str(name, ": expected a whole number, got '", text, "'"));
  for (const char c : text) {
    if (c < '0' || c > '9')
      throw ArgumentError(str(name, ": expected a whole number, got '", text, "'"));
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::string_view text_of(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

Config from_environment() {
  Config c;
  const std::string_view order = text_of("BRAID_SIMT_ORDER");
  if (order == "reverse") c.order = Order::reverse;
  else if (order.substr(0, 6) == "random" && (order.size() == 6 || order[6] == ':')) {
    c.order = Order::random;
    if (order.size() > 6) c.seed = number("BRAID_SIMT_ORDER", order.substr(7));
  } else if (!order.empty() && order != "forward") {
    throw ArgumentError(
        str("BRAID_SIMT_ORDER: expected forward, reverse or random[:seed], got '", order, "'"));
  }
  if (const auto text = text_of("BRAID_SIMT_DELAY"); !text.empty()) {
    const std::uint64_t delay = number("BRAID_SIMT_DELAY", text);
    if (delay > 1'000'000'000)
      throw ArgumentError(str("BRAID_SIMT_DELAY: expected at most 1000000000, got ", delay));
    c.delay = static_cast<std::uint32_t>(delay);
  }
  if (const auto text = text_of("BRAID_SIMT_WORKERS"); !text.empty())
    c.workers = static_cast<int>(number("BRAID_SIMT_WORKERS", text));
  if (c.workers < 1 || c.workers > 1024)
    throw ArgumentError(str("BRAID_SIMT_WORKERS: expected 1 to 1024, got ", c.workers));
  const std::string_view async = text_of("BRAID_SIMT_ASYNC");
  if (async == "early") c.late_async = false;
  else if (!async.empty() && async != "late")
    throw ArgumentError(str("BRAID_SIMT_ASYNC: expected early or late, got '", async, "'"));
  const std::string_view mma = text_of("BRAID_SIMT_MMA");
  if (mma == "cut") c.mma_cuts = true;
  else if (!mma.empty() && mma != "nearest")
    throw ArgumentError(str("BRAID_SIMT_MMA: expected nearest or cut, got '", mma, "'"));
  if (const auto text = text_of("BRAID_SIMT_CHECK"); !text.empty())
    c.checks = number("BRAID_SIMT_CHECK", text) != 0;
  if (const auto text = text_of("BRAID_SIMT_PROGRESS_LIMIT"); !text.empty())
    c.progress_limit = number("BRAID_SIMT_PROGRESS_LIMIT", text);
  return c;
}

std::mutex mutex;

Config& shared() {
  static Config c = from_environment();
  return c;
}

}  // namespace

Config config() {
  const std::lock_guard lock(mutex);
  return shared();
}

void set_config(const Config& c) {
  if (c.workers < 1)
    throw ArgumentError(str("set_config: expected at least 1 worker, got ", c.workers));
  const std::lock_guard lock(mutex);
  shared() = c;
}

void set_order(Order order, std::uint64_t seed) {
  const std::lock_guard lock(mutex);
  shared().order = order;
  shared().seed = seed;
}

void set_checks(bool on) {
  const std::lock_guard lock(mutex);
  shared().checks = on;
}

void set_workers(int workers) {
  if (workers < 1) throw ArgumentError(str("set_workers: expected at least 1, got ", workers));
  const std::lock_guard lock(mutex);
  shared().workers = workers;
}

}  // namespace braid::simt
