// Votes, shuffles and atomics, against what the programming guide says each lane gets.
#include "conformance.hpp"
#include "simt/half.hpp"
#include "support/catch.hpp"
#include "warp_kernels.hpp"

namespace braid::simt_tests {

TEST_CASE("conformance: votes, shuffles and atomics", "[conformance][warp]") {
  NEEDS_GPU();
  in_all_orders([](const std::string& order) {
    INFO(order);
    const DeviceArray<std::uint32_t> v(8);
    votes(v.data());
    CHECK(v.get() == std::vector<std::uint32_t>{0xaaaaaaaau, 1, 1, 0, 0x44444444u, 16, 1, 0});
    const DeviceArray<int> s(160);
    shuffles(s.data());
    const auto got = s.get();
    int wrong = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const int l = static_cast<int>(lane);
      wrong += got[lane] != 103;
      wrong += got[32 + lane] != 100 + (l < 2 ? l : l - 2);
      wrong += got[64 + lane] != 100 + ((l & 15) + 4 < 16 ? l + 4 : l);
      wrong += got[96 + lane] != 100 + (l ^ 8);
      wrong += got[128 + lane] != 100 + ((l & ~7) | 1);
    }
    CHECK(wrong == 0);
    const DeviceArray<unsigned> a(std::vector<unsigned>(10, 5));
    atomics(a.data());
    CHECK(a.get() ==
          std::vector<unsigned>{69, 5u - 64, 31, 0, 4, 255, 5, (5 + 64) % 41, 5 + 41 * 2 - 64, 77});
    const DeviceArray<simt::half_t> h(std::vector<simt::half_t>{simt::half_t(0.0f)});
    half_atomics(h.data());
    CHECK(float(h.get()[0]) == 32.0f);
  });
}

}  // namespace braid::simt_tests
