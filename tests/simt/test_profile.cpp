// Bank conflicts and uncoalesced accesses as numbers, by source line.
#include "operation_kernels.hpp"
#include "profile_kernels.hpp"
#include "simt/launch.hpp"
#include "simt/profiler.hpp"
#include "support.hpp"
#include "support/catch.hpp"

namespace braid::simt_tests {

namespace {

simt::ProfileLine at(const simt::Profile& profile, const std::string& mark, bool shared) {
  const std::vector<int> lines = marked_lines("profile_kernels.cu", mark);
  REQUIRE(lines.size() == 1);
  return profile.at("profile_kernels.cu", lines[0], shared);
}

struct Matrix {
  DeviceArray<float> in{normal(1024, 1)}, out{1024};
};

}  // namespace

TEST_CASE("simt: a column of a 32x32 tile takes 32 wavefronts, of a 32x33 tile one",
          "[simt][profile]") {
  SIMT_CHECKED_OR_RETURN();
  const Matrix m;
  {
    const simt::Profile profile;
    transpose_32(m.in.data(), m.out.data());
    const simt::ProfileLine load = at(profile, "transpose_load", true);
    CHECK(load.accesses == 32);
    CHECK(load.each() == 32.0);
    CHECK(load.ideal_each() == 1.0);
    CHECK(at(profile, "transpose_store", true).each() == 1.0);
    CHECK(at(profile, "transpose_out", false).each() == 4.0);
    CHECK(profile.table().find("<--") != std::string::npos);
  }
  {
    const simt::Profile profile;
    transpose_33(m.in.data(), m.out.data());
    const simt::ProfileLine load = at(profile, "transpose_load", true);
    CHECK(load.accesses == 32);
    CHECK(load.each() == 1.0);
    CHECK(profile.table().find("<--") == std::string::npos);
  }
}

TEST_CASE("simt: a column of global memory takes 32 sectors, a row 4", "[simt][profile]") {
  SIMT_CHECKED_OR_RETURN();
  const Matrix m;
  const simt::Profile profile;
  transpose_naive(m.in.data(), m.out.data());
  CHECK(at(profile, "naive_in", false).each() == 4.0);
  CHECK(at(profile, "naive_out", false).each() == 32.0);
  CHECK(at(profile, "naive_out", false).ideal_each() == 4.0);
}

TEST_CASE("simt: load4 and store4 count as one access of 16 bytes", "[simt][profile]") {
  SIMT_CHECKED_OR_RETURN();
  const Matrix m;
  const simt::Profile profile;
  copy_vectors(m.in.data(), m.out.data());
  for (const char* mark : {"load4", "store4"}) {
    INFO(mark);
    CHECK(at(profile, mark, false).accesses == 1);
    CHECK(at(profile, mark, false).each() == 16.0);
    CHECK(at(profile, mark, false).ideal_each() == 16.0);
  }
  copy_shared_vectors(m.out.data());
  CHECK(at(profile, "shared_store4", true).accesses == 1);
  CHECK(at(profile, "shared_store4", true).each() == 4.0);
  CHECK(at(profile, "shared_store4", true).ideal_each() == 4.0);
}

TEST_CASE("simt: lanes that read one word share a wavefront", "[simt][profile]") {
  SIMT_CHECKED_OR_RETURN();
  const Matrix m;
  const simt::Profile profile;
  broadcast(m.out.data());
  CHECK(at(profile, "broadcast", true).accesses == 1);
  CHECK(at(profile, "broadcast", true).each() == 1.0);
}

TEST_CASE("simt: the order of threads does not change a profile", "[simt][profile]") {
  SIMT_CHECKED_OR_RETURN();
  const Matrix m;
  in_all_orders([&](const std::string& order) {
    INFO(order);
    const simt::Profile profile;
    transpose_32(m.in.data(), m.out.data());
    CHECK(at(profile, "transpose_load", true).each() == 32.0);
  });
}

}  // namespace braid::simt_tests
