#include <algorithm>
#include <cstdlib>
#include <string>

#include <braid/core/device.hpp>
#include <braid/core/error.hpp>
#include <braid/kernels/isa.hpp>

#include "cpu/runtime/isa.hpp"
#include "support/check.hpp"
#include "support/child.hpp"

using braid::cpu::choose_isa;

TEST_CASE("isa: the best one unless another is forced", "[kernels][isa]") {
  const auto names = braid::kernels::isa_names();
  REQUIRE_FALSE(names.empty());
  CHECK(choose_isa(nullptr).name == names.back());
  CHECK(choose_isa("").name == names.back());
  for (auto name : names) {
    const auto& isa = choose_isa(std::string(name).c_str());
    CHECK(isa.name == name);
    CHECK(isa.supported());
    CHECK(isa.kernels->gemm != nullptr);
    CHECK(isa.kernels->unary != nullptr);
    CHECK(isa.kernels->adam != nullptr);
  }
}

TEST_CASE("isa: each has its own kernels", "[kernels][isa]") {
  const auto& all = braid::cpu::compiled_isas();
  for (std::size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i].kernels->gemm != all[i - 1].kernels->gemm);
    CHECK(all[i].kernels->unary != all[i - 1].kernels->unary);
  }
}

TEST_CASE("isa: the environment decides in this process", "[kernels][isa]") {
  const char* forced = std::getenv("BRAID_ISA");
  const std::string expected(forced && *forced ? std::string_view(forced)
                                               : braid::kernels::isa_names().back());
  CHECK(braid::kernels::isa_name() == expected);
}

TEST_CASE("isa: an unknown name is refused with the names there are", "[kernels][isa][errors]") {
  for (const char* wrong : {"avx", "AVX2", "avx2 ", "neon9"}) {
    try {
      (void)choose_isa(wrong);
      FAIL("expected DeviceError for " << wrong);
    } catch (const braid::DeviceError& error) {
      const std::string text = error.what();
      CHECK(text.find("BRAID_ISA: expected one of ") == 0);
      CHECK(text.find(std::string("got '") + wrong + "'") != std::string::npos);
      for (const auto& isa : braid::cpu::compiled_isas())
        CHECK(text.find(isa.name) != std::string::npos);
    }
  }
}

TEST_CASE("isa: one that the processor lacks is refused", "[kernels][isa][errors]") {
  for (const auto& isa : braid::cpu::compiled_isas()) {
    if (isa.supported()) {
      CHECK_NOTHROW((void)choose_isa(std::string(isa.name).c_str()));
    } else {
      CHECK_THROWS_AS((void)choose_isa(std::string(isa.name).c_str()), braid::DeviceError);
    }
  }
}

TEST_CASE("child: the environment names no instruction set", "[.child][isa]") {
  for (int use = 0; use < 2; ++use) {  // the second use throws too
    try {
      (void)braid::device_count(braid::DeviceType::cpu);
      FAIL("expected DeviceError");
    } catch (const braid::DeviceError& error) {
      CHECK(std::string(error.what()).find("BRAID_ISA: expected one of ") == 0);
    }
    CHECK_THROWS_AS((void)braid::kernels::isa_name(), braid::DeviceError);
  }
}
TEST_CASE("isa: a wrong environment is an error at the first use of a device",
          "[kernels][isa][errors]") {
  CHECK_CHILD("BRAID_ISA=mmx", "[.child][isa]");
}
