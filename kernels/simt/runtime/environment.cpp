#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include <braid/core/error.hpp>

#include "simt/runtime/error_names.hpp"
#include "simt/runtime/state.hpp"

// The runtime's variables: BRAID_SIMT_DEVICES, _MEMORY, _STREAM_ORDER, _REPORTS and _FAIL. Those of
// kernels are in simt/config.cpp.
namespace braid::simt {
namespace detail {
namespace {

constexpr std::size_t kDefaultMemory = std::size_t{8} << 30;
constexpr int kDefaultDevices = 2;

[[noreturn]] void bad(const char* name, std::string_view expected, std::string_view got) {
  throw ArgumentError(str(name, ": expected ", expected, ", got '", got, "'"));
}

std::uint64_t number(const char* name, std::string_view text, std::string_view expected,
                     std::string_view whole) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) bad(name, expected, whole);
  return value;
}

std::size_t bytes_of(const char* name, std::string_view text) {
  const std::string_view whole = text;
  int shift = 0;
  if (!text.empty()) switch (text.back()) {
      case 'K': shift = 10; break;
      case 'M': shift = 20; break;
      case 'G': shift = 30; break;
      default: break;
    }
  if (shift) text.remove_suffix(1);
  constexpr const char* kForm = "bytes, or a number with K, M or G";
  const std::uint64_t value = number(name, text, kForm, whole);
  if (value > std::numeric_limits<std::size_t>::max() >> shift)
    bad(name, "bytes that fit 64 bits", whole);
  return static_cast<std::size_t>(value) << shift;
}

// Splits `a:b:c` at the colons.
std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> list;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    list.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return list;
}

constexpr const char *kFail = "BRAID_SIMT_FAIL", *kOrder = "BRAID_SIMT_STREAM_ORDER";

FailingCall parse_injection(std::string_view text) {
  constexpr std::string_view kForm = "k:code[:persistent][:function]";
  const auto list = parts(text);
  if (list.size() < 2 || list.size() > 4) bad(kFail, kForm, text);
  FailingCall injection;
  injection.k = number(kFail, list[0], kForm, text);
  if (!find_error(list[1], injection.code))
    bad(kFail, "the name or number of a CUDA error", list[1]);
  for (std::size_t i = 2; i < list.size(); ++i) {
    if (list[i] == "persistent") injection.persistent = true;
    else injection.function = list[i];
  }
  return injection;
}

std::pair<StreamOrder, std::uint64_t> parse_order(std::string_view text) {
  constexpr std::string_view kForm = "fifo, reverse or random[:seed]";
  if (text == "fifo") return {StreamOrder::fifo, 1};
  if (text == "reverse") return {StreamOrder::reverse, 1};
  const auto list = parts(text);
  if (list[0] != "random" || list.size() > 2) bad(kOrder, kForm, text);
  return {StreamOrder::random, list.size() == 2 ? number(kOrder, list[1], kForm, text) : 1};
}

}  // namespace

void Runtime::read_environment() {
  const auto env = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string_view(value ? value : "");
  };
  std::uint64_t count = kDefaultDevices;
  if (const auto text = env("BRAID_SIMT_DEVICES"); !text.empty())
    count = number("BRAID_SIMT_DEVICES", text, "a number of devices", text);
  if (count > kMostDevices)
    bad("BRAID_SIMT_DEVICES", str("at most ", kMostDevices), std::to_string(count));
  // of each device; the last value applies to all that follow
  std::vector<std::size_t> bytes{kDefaultMemory};
  if (const auto text = env("BRAID_SIMT_MEMORY"); !text.empty()) {
    bytes.clear();
    for (const std::string_view part : parts(text))
      bytes.push_back(bytes_of("BRAID_SIMT_MEMORY", part));
  }
  if (const auto text = env(kOrder); !text.empty()) {
    const auto [chosen, seed] = parse_order(text);
    injection.order = chosen;
    injection.random.seed(seed);
  }
  if (const auto text = env("BRAID_SIMT_REPORTS"); text == "collect")
    reports.mode = ReportMode::collect;
  else if (!text.empty() && text != "sticky") bad("BRAID_SIMT_REPORTS", "sticky or collect", text);
  if (const auto text = env(kFail); !text.empty()) injection.failing = parse_injection(text);
  for (std::size_t i = 0; i < count; ++i) add_device(bytes[std::min(i, bytes.size() - 1)]);
}

}  // namespace detail

void set_stream_order(std::string_view text) {
  const auto [order, seed] = detail::parse_order(text);
  set_stream_order(order, seed);
}

void fail_call(std::string_view text) {
  const auto i = detail::parse_injection(text);
  fail_call(i.k, i.code, i.persistent, i.function);
}

}  // namespace braid::simt
