#include "transfer/pays.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <thread>

#include <braid/core/worker.hpp>

#include "support/timing.hpp"

namespace bench::transfer {
namespace {

using braid::Device;
using braid::Tensor;

/// A matrix product that can be repeated on one device.
class Product {
 public:
  Product(Device device, std::int64_t n)
      : a_(braid::rand({n, n}).to(device)), b_(braid::rand({n, n}).to(device)), device_(device) {}
  [[nodiscard]] double time(int count) const {
    return time_step(count, [&] {
      const Tensor c = matmul(a_, b_);
      if (device_.type() != braid::DeviceType::cpu) braid::synchronize(device_);
    });
  }

 private:
  Tensor a_, b_;
  Device device_;
};

// Runs both at the same time. Returns the mean of their times, or 0 if one fails.
double time_both(const Product& first, const Product& second, Device device, Device partner,
                 int count) {
  const Device devices[] = {device, partner};
  const Product* const products[] = {&first, &second};
  double us[2] = {0, 0};
  std::atomic<int> ready = 0;
  braid::run_on_devices(devices, [&](std::size_t i) {
    ready.fetch_add(1);
    while (ready.load() < 2) std::this_thread::yield();
    try {
      us[i] = products[i]->time(count);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a product on %s: %s\n", braid::str(devices[i]).c_str(), error.what());
    }
  });
  return us[0] > 0 && us[1] > 0 ? (us[0] + us[1]) / 2 : 0;
}

}  // namespace

Rates measure_rates(Device device, std::optional<Device> partner, bool emulated, int rounds) {
  const bool gpu = device.type() != braid::DeviceType::cpu;
  const std::int64_t n = emulated ? 64 : gpu ? 4096 : 1024;
  const int count = emulated ? 2 : 5;
  const double work =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  constexpr std::int64_t kHostSize = 1024;
  const Product one(device, n), two(partner.value_or(device), n), host(Device("cpu:0"), kHostSize);
  std::vector<std::function<double()>> contenders = {[&] { return one.time(count); },
                                                     [&] { return host.time(count); }};
  constexpr int kHandOvers = 200;
  if (partner) {
    contenders.emplace_back([&] { return time_both(one, two, device, *partner, count); });
    contenders.emplace_back([&] {
      const Device devices[] = {device, *partner};
      return time_step(kHandOvers, [&] { braid::run_on_devices(devices, [](std::size_t) {}); });
    });
  }
  const std::vector<Series> series = interleave(rounds, contenders);
  Rates rates;
  rates.alone = work / (series[0].time() * 1e-6);
  rates.host = 2.0 * kHostSize * kHostSize * kHostSize / (series[1].time() * 1e-6);
  if (partner) rates.hand_over = series[3].time() * 1e-6;
  if (partner && series[2].time() > 0)
    rates.slowdown = std::max(1.0, series[2].time() / series[0].time());
  return rates;
}

std::optional<double> work_per_byte(const Rates& rates, const Roads& roads, double gain) {
  // With w FLOP for each byte and m bytes, half the work takes h = w m / alone. One device takes 2
  // h. Two devices take m slope + slowdown h, which may be at most 2 h / gain.
  const double left = 2 / gain - rates.slowdown,
               slope = (roads.there.large.slope + roads.back.large.slope) / 2;
  if (left <= 0) return {};
  return rates.alone * slope / left;
}

std::optional<std::int64_t> rows_from(const Layer& layer, const Rates& rates, const Roads& roads,
                                      double gain) {
  const auto pays = [&](std::int64_t rows) {
    const double half = static_cast<double>(rows) / 2, h = half * layer.work / rates.alone;
    double moving = rates.hand_over + roads.there(half * layer.in);
    if (layer.out > 0) moving += roads.back(half * layer.out);
    // Adding two gradients reads and writes three times their bytes, a copy only twice: hence 1.5.
    if (layer.weights > 0)
      moving +=
          roads.there(layer.weights) + roads.back(layer.weights) + 1.5 * roads.local(layer.weights);
    return (moving + rates.slowdown * h) * gain <= 2 * h;
  };
  constexpr std::int64_t kMost = std::int64_t{1} << 24;
  std::int64_t good = 2;
  while (good <= kMost && !pays(good)) good *= 2;
  if (good > kMost) return {};
  std::int64_t fails = good / 2;
  while (good - fails > 2) {
    const std::int64_t middle = (fails + (good - fails) / 2) & ~std::int64_t{1};
    if (middle <= fails) break;
    (pays(middle) ? good : fails) = middle;
  }
  return good;
}

Layer linear_forward(double in, double out) {
  return {.work = 2 * in * out, .in = 4 * in, .out = 4 * out};
}

Layer mlp_step(const std::vector<double>& widths) {
  Layer layer{.in = 4 * (widths.front() + widths.back()), .out = 4 * widths.back()};
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    // Forward, gradient of the weights and gradient of the input; the first layer does not need the
    // last.
    layer.work += (i == 0 ? 4 : 6) * widths[i] * widths[i + 1];
    layer.weights += 4 * (widths[i] + 1) * widths[i + 1];
  }
  return layer;
}

}  // namespace bench::transfer
