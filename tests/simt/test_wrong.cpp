// Every mistake is reported, in every order of threads, with what it is, in which kernel, on which
// variable and on which line; the kernels without the mistake are not.
#include <algorithm>

#include "edge_kernels.hpp"
#include "operation_kernels.hpp"
#include "simt/launch.hpp"
#include "support.hpp"
#include "support/catch.hpp"
#include "wrong_kernels.hpp"

namespace braid::simt_tests {

const std::vector<WrongKernel>& wrong_kernels() {
#define SIMT_ROW(name, finding, variable) \
  {#name, simt::Finding::finding, variable, &wrong_##name, &twin_##name},
  static const std::vector<WrongKernel> list = {SIMT_FOR_EACH_WRONG_KERNEL(SIMT_ROW)};
#undef SIMT_ROW
  return list;
}

namespace {

struct Memory {
  DeviceArray<float> out{std::vector<float>(64, 0.0f)}, in{normal(64, 3)}, matrices{3 * 64 * 64};
  DeviceArray<unsigned> counter{std::vector<unsigned>{0}};
  float host[64] = {};  // on the stack of the test
  [[nodiscard]] Buffers buffers() const {
    return {out.data(), in.data(), host, matrices.data(), counter.data()};
  }
};

void short_patience() {
  simt::Config c = simt::config();
  c.spin_limit = 1 << 16;
  c.progress_limit = 1 << 20;
  simt::set_config(c);
}

void expect_report(const WrongKernel& k) {
  const Memory memory;
  bool reported = false;
  try {
    k.wrong(memory.buffers());
  } catch (const simt::Error& e) {
    reported = true;
    INFO(e.what());
    CHECK(to_string(e.finding()) == std::string(to_string(k.finding)));
    CHECK(e.details.kernel == "braid::simt_tests::wrong::" + std::string(k.name));
    CHECK(e.details.variable == k.variable);
    const std::vector<int> lines = marked_lines("wrong_kernels.cu", k.name);
    REQUIRE_FALSE(lines.empty());
    CHECK(e.details.file == "wrong_kernels.cu");
    CHECK(std::count(lines.begin(), lines.end(), e.details.line) == 1);
    if (e.details.other_line != 0) {
      CHECK(e.details.other_file == "wrong_kernels.cu");
      CHECK(std::count(lines.begin(), lines.end(), e.details.other_line) == 1);
    }
    const std::string text = e.what();
    CHECK(text.rfind(e.details.kernel + " block (", 0) == 0);
    CHECK(text.find("wrong_kernels.cu:" + std::to_string(e.details.line)) != std::string::npos);
  }
  CHECK(reported);
}

}  // namespace

TEST_CASE("simt: every wrong kernel is reported, in every order", "[simt][wrong]") {
  SIMT_CHECKED_OR_RETURN();
  const KeepConfig keep;
  short_patience();
  in_all_orders([](const std::string& order) {
    for (const WrongKernel& k : wrong_kernels()) {
      INFO(k.name << ", order " << order);
      expect_report(k);
    }
  });
}

TEST_CASE("simt: reports are made outside the checker", "[simt][wrong]") {
  CHECK(text_of_the_host("a", 'b') == "abb");
}

TEST_CASE("simt: no corrected twin is reported, in any order", "[simt][wrong]") {
  SIMT_CHECKED_OR_RETURN();
  const KeepConfig keep;
  short_patience();
  in_all_orders([](const std::string& order) {
    for (const WrongKernel& k : wrong_kernels()) {
      INFO(k.name << ", order " << order);
      const Memory memory;
      CHECK_NOTHROW(k.twin(memory.buffers()));
    }
  });
}

TEST_CASE("simt: after a finding the next kernel runs as if nothing had been", "[simt][wrong]") {
  SIMT_CHECKED_OR_RETURN();
  const KeepConfig keep;
  short_patience();
  for (const WrongKernel& k : wrong_kernels()) {
    INFO(k.name);
    const Memory memory;
    CHECK_THROWS_AS(k.wrong(memory.buffers()), simt::Error);
    const Memory fresh;
    CHECK_NOTHROW(k.twin(fresh.buffers()));
  }
}

TEST_CASE("simt: without checks too a wait by votes and barriers ends", "[simt][wrong]") {
  const KeepConfig keep;
  short_patience();
  simt::set_checks(false);
  const Memory memory;
  for (const auto wrong : {&wrong_spin_on_vote, &wrong_spin_on_barrier, &wrong_spin_on_lock}) {
    try {
      wrong(memory.buffers());
      FAIL("no error");
    } catch (const simt::Error& e) {
      CHECK(e.finding() == simt::Finding::spin_wait);
    }
  }
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("simt: an integer division by zero names its thread and line", "[simt][wrong]") {
  const DeviceArray<int> out(32);
  for (int again = 0; again < 2; ++again) {
    CHECK_NOTHROW(divide(out.data(), 2));
    try {
      divide(out.data(), 0);
      FAIL("no error");
    } catch (const simt::Error& e) {
      INFO(e.what());
      CHECK(e.finding() == simt::Finding::exception);
      CHECK(e.details.line == marked_lines("edge_kernels.cu", "divide").at(0));
    }
  }
}
#endif

}  // namespace braid::simt_tests
