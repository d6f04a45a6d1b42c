// Blocks that communicate through flags: correct kernels are not reported and compute the right
// numbers in every order; mistakes are reported, or change the result, in the orders that can show
// them.
#include <algorithm>
#include <vector>

#include "flag_kernels.hpp"
#include "kernels.hpp"
#include "support.hpp"

namespace braid::simt_tests {

namespace {

using Numbers = std::vector<unsigned>;

struct Memory {
  Numbers input = Numbers(kFlagNumbers);
  DeviceArray<unsigned> in{kFlagNumbers}, out{Numbers(kFlagNumbers)}, parts{kFlagNumbers},
      flags{Numbers(kFlagBlocks)}, counter{Numbers(1)};
  DeviceArray<std::uint64_t> words{std::vector<std::uint64_t>(kFlagBlocks)};
  Memory() {
    std::mt19937 random(5);
    for (unsigned& x : input) x = static_cast<unsigned>(random() % 1000 + 1);
    in.set(input);
  }
};

Numbers expected(FlagResult result, const Numbers& in, unsigned launch) {
  Numbers out(kFlagNumbers);
  unsigned sum = 0;
  switch (result) {
    case FlagResult::scan:
      for (unsigned i = 0; i < kFlagNumbers; ++i) out[i] = sum += in[i];
      break;
    case FlagResult::column_sums:
      for (unsigned i = 0; i < kFlagNumbers; ++i) out[i % kFlagThreads] += in[i];
      for (unsigned i = 0; i < kFlagThreads; ++i) out[i] += launch;
      break;
    case FlagResult::between_warps:
      for (unsigned i = 0; i < kFlagBlocks; ++i) out[i] = 2 * in[i] + launch;
      break;
    case FlagResult::in_turn:
      out[0] = launch;
      for (unsigned i = 1; i < kFlagBlocks; ++i) out[0] = 3 * out[0] + in[i];
      break;
    case FlagResult::unchecked: break;
  }
  return out;
}

/// Runs the kernel twice on the same buffers. Returns whether both results are right.
bool right_twice(const FlagKernel& k) {
  Memory m;
  bool right = true;
  for (const unsigned launch : {0u, 1u}) {
    m.out.set(Numbers(kFlagNumbers));
    run_flags(k, {m.in, m.out, m.parts, m.flags, m.words, m.counter, launch});
    if (k.result != FlagResult::unchecked)
      right = right && m.out.get() == expected(k.result, m.input, launch);
  }
  return right;
}

bool happens(const FlagKernel& k) {
  const simt::Order order = simt::config().order;
  return k.when == FlagKernel::always ||
         (k.when == FlagKernel::not_forward && order != simt::Order::forward) ||
         order == simt::Order::random;
}

void be_impatient() {
  simt::Config c = simt::config();
  c.spin_limit = 1 << 14;
  c.progress_limit = 1 << 20;
  simt::set_config(c);
}

}  // namespace

TEST_CASE("simt: blocks that communicate through flags are right in every order", "[flags]") {
  const KeepConfig keep;
  be_impatient();
  for (const FlagKernel& k : right_flags()) {
    INFO(k.name);
    in_all_orders([&] { CHECK(right_twice(k)); });
    for (const std::uint64_t seed : {1u, 2u, 3u, 4u, 5u, 6u}) {
      simt::Config c = simt::config();
      c.order = simt::Order::random, c.seed = seed, c.delay = 20;
      simt::set_config(c);
      CHECK(right_twice(k));
    }
    simt::set_order(simt::Order::forward);
  }
}

TEST_CASE("simt: flags work without checks, and between host threads", "[flags]") {
  const KeepConfig keep;
  simt::set_checks(false);
  for (const int workers : {1, 3}) {
    simt::set_workers(workers);
    for (const FlagKernel& k : right_flags()) {
      INFO(k.name);
      in_all_orders([&] { CHECK(right_twice(k)); });
    }
  }
  simt::set_workers(1);
  be_impatient();
  for (const FlagKernel& k : wrong_flags())
    if (k.finding == simt::Finding::spin_wait) {
      INFO(k.name);
      in_all_orders([&] {
        if (happens(k))
          CHECK(details_of([&] { right_twice(k); }).finding == simt::Finding::spin_wait);
      });
    }
}

TEST_CASE("simt: mistakes with flags are reported", "[flags]") {
  SIMT_CHECKED_OR_RETURN();
  const KeepConfig keep;
  be_impatient();
  int reported = 0;
  for (const FlagKernel& k : wrong_flags()) {
    const std::vector<int> lines = marked_lines("flag_kernels.cu", k.mark);
    in_all_orders([&] {
      INFO(k.name << " mistake " << static_cast<int>(k.mistake));
      if (!happens(k)) {
        CHECK(right_twice(k));
        return;
      }
      try {
        right_twice(k);
        CHECK(k.mark == std::string("nothing was reported"));
      } catch (const simt::Error& e) {
        INFO(e.what());
        const auto& d = e.details;
        const auto marked = [&](const std::string& file, int line) {
          return file == "flag_kernels.cu" && std::count(lines.begin(), lines.end(), line) == 1;
        };
        CHECK(to_string(d.finding) == std::string(to_string(k.finding)));
        CHECK(d.kernel == "braid::simt_tests::flags::" + std::string(k.name));
        CHECK(d.variable == k.variable);
        CHECK(marked(d.file, d.line));
        CHECK((d.other_line == 0 || marked(d.other_file, d.other_line)));
        const bool about_blocks =
            std::string(e.what()).find("take the numbers of tiles from an atomic counter") !=
            std::string::npos;
        CHECK(about_blocks == (k.finding == simt::Finding::spin_wait));
        ++reported;
      }
    });
  }
  CHECK(reported == 4 * 17 - 2 - 2);
}

TEST_CASE("simt: a flag that is read too early or reset too late changes the result", "[flags]") {
  SIMT_CHECKED_OR_RETURN();
  for (const FlagKernel& k : wrong_results()) {
    INFO(k.name);
    in_all_orders([&] { CHECK(right_twice(k) == !happens(k)); });
  }
}

}  // namespace braid::simt_tests
