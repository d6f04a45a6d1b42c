// Barriers of some threads of a block, and threads that are delayed between barriers.
#include <algorithm>
#include <cmath>

#include "kernels.hpp"
#include "support.hpp"

namespace braid::simt_tests {

namespace {

/// Runs `body` in all orders of threads, with delays and without.
template <class Body> void in_all_orders_and_delays(Body body) {
  const KeepConfig keep;
  for (const std::uint32_t delay : {0u, 1u, 20u}) {
    INFO("delay " << delay);
    simt::Config config = simt::config();
    config.delay = delay;
    simt::set_config(config);
    in_all_orders(body);
  }
}

/// Adds 64 numbers of each tile in float, in reverse order.
std::vector<float> sums_of_tiles(const std::vector<float>& in, int tiles) {
  std::vector<float> sums(64);
  for (std::size_t i = 0; i < static_cast<std::size_t>(tiles); ++i)
    for (std::size_t k = 0; k < 64; ++k) sums[k] += in[64 * i + 63 - k];
  return sums;
}

}  // namespace

TEST_CASE("simt: rings of a warp that copies and two that add", "[barriers]") {
  in_all_orders_and_delays([] {
    for (const int tiles : {1, 2, 3, 9}) {
      INFO(tiles << " tiles");
      const auto in = normal(64 * static_cast<std::size_t>(tiles), 5);
      const DeviceArray<float> from(in), by_mbarrier(64), by_named(64);
      run(mbarrier_ring, 1, 96, 0, from.data(), by_mbarrier.data(), tiles);
      run(named_barrier_ring, 1, 96, 0, from.data(), by_named.data(), tiles);
      CHECK(by_mbarrier.get() == sums_of_tiles(in, tiles));
      CHECK(by_named.get() == sums_of_tiles(in, tiles));
    }
  });
}

TEST_CASE("simt: an mbarrier orders single bytes, and its waits pass through warps", "[barriers]") {
  in_all_orders_and_delays([] {
    const DeviceArray<float> halves(32), lanes(32);
    run(halves_of_words, 1, 96, 0, halves.data());
    run(one_lane_waits, 1, 64, 0, lanes.data());
    const std::vector<float> sums = halves.get(), read = lanes.get();
    for (std::size_t i = 0; i < 32; ++i) {
      CHECK(sums[i] == static_cast<float>(32 - i + 64 - i));
      CHECK(read[i] == static_cast<float>(63 - i));
    }
  });
}

TEST_CASE("simt: a delayed thread lets others run between barriers", "[barriers]") {
  SIMT_CHECKED_OR_RETURN();
  const KeepConfig keep;
  simt::set_order(simt::Order::random, 3);
  for (const std::uint32_t delay : {0u, 10u}) {
    simt::Config config = simt::config();
    config.delay = delay;
    simt::set_config(config);
    const DeviceArray<unsigned> counter(std::vector<unsigned>{0}), turns(64 * 50);
    run(take_turns, 1, 64, 0, counter.data(), turns.data());
    std::vector<unsigned> taken = turns.get();
    int together = 0;  // threads that took all their turns one after the other
    for (std::size_t t = 0; t < 64; ++t) together += taken[50 * t + 49] == taken[50 * t] + 49;
    INFO("delay " << delay << ": " << together << " threads took their turns together");
    CHECK((delay == 0 ? together == 64 : together == 0));
    std::sort(taken.begin(), taken.end());
    for (unsigned i = 0; i < 64 * 50; ++i) REQUIRE(taken[i] == i);
  }
}

}  // namespace braid::simt_tests
