// Every mistake is reported, under every order of threads, with its kind, kernel, variable and
// line. The corrected kernels are not reported.
#include <algorithm>
#include <span>
#include <vector>

#include "kernels.hpp"
#include "support.hpp"
#include "wrong_kernels.hpp"

namespace braid::simt_tests {

namespace {

struct Memory {
  DeviceArray<float> out{std::vector<float>(64, 0.0f)}, in{normal(64, 3)}, matrices{3 * 64 * 64};
  DeviceArray<unsigned> counter{std::vector<unsigned>{0}};
  float host[64] = {};  // on the stack of the test
  [[nodiscard]] Buffers buffers() const { return {out, in, host, matrices, counter}; }
};

/// Makes the emulation give up waits early.
struct ShortPatience : KeepConfig {
  ShortPatience() {
    simt::Config c = simt::config();
    c.spin_limit = 1 << 16;
    c.progress_limit = 1 << 20;
    simt::set_config(c);
  }
};

void expect_report(const WrongKernel& k, const std::string& source) {
  const Memory memory;
  bool reported = false;
  try {
    run_wrong(k, memory.buffers());
  } catch (const simt::Error& e) {
    reported = true;
    INFO(e.what());
    const auto& d = e.details;
    const std::vector<int> lines = marked_lines(source, k.name);
    const auto marked = [&](const std::string& file, int line) {
      return file == source && std::count(lines.begin(), lines.end(), line) == 1;
    };
    CHECK(to_string(d.finding) == std::string(to_string(k.finding)));
    CHECK(d.kernel == "braid::simt_tests::wrong::" + std::string(k.name));
    CHECK(d.variable == k.variable);
    CHECK(marked(d.file, d.line));
    CHECK((d.other_line == 0 || marked(d.other_file, d.other_line)));
    const std::string text = e.what();
    CHECK(text.rfind(d.kernel + " block (", 0) == 0);
    CHECK(text.find(source + ":" + std::to_string(d.line)) != std::string::npos);
  }
  CHECK(reported);
}

struct Source {
  const char* file;
  std::span<const WrongKernel> kernels;
  std::size_t count;
};
std::vector<Source> sources() {
  return {{"wrong_kernels.cu", wrong_kernels(), 44}, {"barrier_kernels.cu", wrong_barriers(), 13}};
}

}  // namespace

TEST_CASE("simt: every wrong kernel is reported in every order, corrected none is", "[wrong]") {
  SIMT_CHECKED_OR_RETURN();
  const ShortPatience patience;
  for (const Source& source : sources()) {
    CHECK(source.kernels.size() == source.count);
    in_all_orders([&] {
      for (const WrongKernel& k : source.kernels) {
        INFO(k.name);
        expect_report(k, source.file);
      }
      for (const WrongKernel& k : source.kernels) {
        INFO(k.name);
        const Memory memory;
        CHECK_NOTHROW(run_wrong(k, memory.buffers(), true));
      }
    });
  }
}

TEST_CASE("simt: reports are made outside the checker", "[wrong]") {
  CHECK(text_of_the_host("a", 'b') == "abb");
}

TEST_CASE("simt: after a finding the next kernel runs as if nothing had been", "[wrong]") {
  SIMT_CHECKED_OR_RETURN();
  const ShortPatience patience;
  for (const Source& source : sources())
    for (const WrongKernel& k : source.kernels) {
      INFO(k.name);
      const Memory memory, fresh;
      CHECK_THROWS_AS(run_wrong(k, memory.buffers()), simt::Error);
      CHECK_NOTHROW(run_wrong(k, fresh.buffers(), true));
    }
}

TEST_CASE("simt: without checks too a wait by votes and barriers ends", "[wrong]") {
  const ShortPatience patience;
  simt::set_checks(false);
  const Memory memory;
  int ended = 0;
  for (const std::string name : {"spin_on_vote", "spin_on_barrier", "spin_on_lock"})
    for (const WrongKernel& k : wrong_kernels())
      if (k.name == name)
        ended +=
            details_of([&] { run_wrong(k, memory.buffers()); }).finding == simt::Finding::spin_wait;
  CHECK(ended == 3);
}

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("simt: an integer division by zero names its thread and line", "[wrong]") {
  const DeviceArray<int> out(32);
  for (int again = 0; again < 2; ++again) {
    CHECK_NOTHROW(run(divide, 1, 32, 0, out, 2));
    const auto d = details_of([&] { run(divide, 1, 32, 0, out, 0); });
    CHECK(d.finding == simt::Finding::exception);
    CHECK(d.line == marked_lines("kernels.cu", "divide").at(0));
  }
}
#endif

}  // namespace braid::simt_tests
