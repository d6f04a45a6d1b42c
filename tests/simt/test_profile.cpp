// Counts of bank conflicts and uncoalesced accesses, by source line.
#include "kernels.hpp"
#include "simt/profiler.hpp"
#include "support.hpp"

namespace braid::simt_tests {

namespace {

/// Checks the cost of a line: the number of accesses, the cost of each, and the ideal cost of each.
void expect(const simt::Profile& profile, const std::string& mark, bool shared,
            std::uint64_t accesses, double each, double ideal) {
  INFO(mark);
  const std::vector<int> lines = marked_lines("kernels.cu", mark);
  REQUIRE(lines.size() == 1);
  const simt::ProfileLine at = profile.at("kernels.cu", lines[0], shared);
  CHECK(at.accesses == accesses);
  CHECK(at.each() == each);
  CHECK(at.ideal_each() == ideal);
}

}  // namespace

TEST_CASE("simt: wavefronts of shared memory and sectors of global, in every order", "[profile]") {
  SIMT_CHECKED_OR_RETURN();
  const DeviceArray<float> in(normal(1024, 1)), out(1024);
  const dim3 threads(32, 8);
  in_all_orders([&] {
    {
      const simt::Profile profile;
      run(transpose<32>, 1, threads, 0, in, out);
      expect(profile, "transpose_load", true, 32, 32, 1);
      expect(profile, "transpose_store", true, 32, 1, 1);
      expect(profile, "transpose_out", false, 32, 4, 4);
      CHECK(profile.table().find("<--") != std::string::npos);
    }
    {
      const simt::Profile profile;
      run(transpose<33>, 1, threads, 0, in, out);
      expect(profile, "transpose_load", true, 32, 1, 1);
      CHECK(profile.table().find("<--") == std::string::npos);
    }
    const simt::Profile profile;
    run(transpose_naive, 1, threads, 0, in, out);
    expect(profile, "naive_in", false, 32, 4, 4);
    expect(profile, "naive_out", false, 32, 32, 4);
    run(copy_vectors, 1, 32, 0, in, out);  // one access of 16 bytes each
    expect(profile, "load4", false, 1, 16, 16);
    expect(profile, "store4", false, 1, 16, 16);
    run(copy_shared_vectors, 1, 32, 0, out);
    expect(profile, "shared_store4", true, 1, 4, 4);
    run(broadcast, 1, 32, 0, out);  // lanes that read one word share a wavefront
    expect(profile, "broadcast", true, 1, 1, 1);
  });
}

}  // namespace braid::simt_tests
