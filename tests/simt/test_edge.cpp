// The edges of the language, and of the emulation.
#include "edge_kernels.hpp"
#include "operation_kernels.hpp"
#include "simt/error.hpp"
#include "simt/half.hpp"
#include "simt/launch.hpp"
#include "simt/stats.hpp"
#include "simt/trace.hpp"
#include "support.hpp"
#include "support/catch.hpp"

namespace braid::simt_tests {

void host_function_that_throws() { throw 42; }

namespace {

template <class F> simt::Error::Details details_of(F f) {
  try {
    f();
  } catch (const simt::Error& e) {
    return e.details;
  }
  FAIL("no error");
  return {};
}

void nothing() {}

}  // namespace

TEST_CASE("simt: groups of lanes with masks of their own", "[simt][edge]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    const DeviceArray<float> out(32);
    half_warps(out.data());
    const auto got = out.get();
    for (int t = 0; t < 32; ++t)
      CHECK(got[static_cast<std::size_t>(t)] ==
            static_cast<float>((t & 16) + 15 - (t & 15) + (t ^ 1)));
    warp_broadcast(out.data());
    CHECK(out.get() == std::vector<float>(32, 2.0f));
    const DeviceArray<float> sums(2);
    short_warp(sums.data());
    CHECK(sums.get() == std::vector<float>{32, 8});
  });
}

TEST_CASE("simt: races between lanes of one warp", "[simt][edge]") {
  SIMT_CHECKED_OR_RETURN();
  in_all_orders([](const std::string& order) {
    INFO(order);
    const DeviceArray<float> out(32);
    for (const auto& [name, kernel] : {std::pair{"warp_same_word", &warp_same_word},
                                       {"warp_read_then_write", &warp_read_then_write}}) {
      INFO(name);
      const auto d = details_of([&, k = kernel] { k(out.data()); });
      CHECK(d.finding == simt::Finding::race);
      CHECK(d.variable == "s");
      const auto lines = marked_lines("edge_kernels.cu", name);
      CHECK(std::count(lines.begin(), lines.end(), d.line) == 1);
    }
  });
}

TEST_CASE("simt: a barrier after some threads have returned", "[simt][edge]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    const DeviceArray<float> out(64);
    CHECK_NOTHROW(early_return(out.data(), 64));
    const auto d = details_of([&] { early_return(out.data(), 40); });
    CHECK(d.finding == simt::Finding::divergent_barrier);
    CHECK(d.line == marked_lines("edge_kernels.cu", "early_return").at(0));
  });
}

TEST_CASE("simt: what overflows a stack, or throws, leaves the kernel as an error",
          "[simt][edge]") {
  const DeviceArray<float> out(32);
  const DeviceArray<int> numbers(64);
#if !defined(__SANITIZE_ADDRESS__)
  for (int again = 0; again < 3; ++again) {
    const auto overflow = details_of([&] { deep_locals(out.data()); });
    CHECK(overflow.finding == simt::Finding::stack_overflow);
    CHECK(overflow.kernel == "braid::simt_tests::deep_locals_kernel");
  }
#endif
  const auto thrown = details_of([&] { throwing(numbers.data()); });
  CHECK(thrown.finding == simt::Finding::exception);
  CHECK(thrown.thread.x == 3);
  CHECK_NOTHROW(warp_broadcast(out.data()));
}

TEST_CASE("simt: neighbours within a word are no race", "[simt][edge]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    const DeviceArray<unsigned char> flags(1003);
    bytes_of_words(reinterpret_cast<bool*>(flags.data()), 1003);
    const auto got = flags.get();
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != (i % 3 == 0 ? 1 : 0);
    CHECK(wrong == 0);
  });
}

TEST_CASE("simt: fences by all threads, counted in behind a barrier", "[simt][edge]") {
  SIMT_CHECKED_OR_RETURN();
  in_all_orders([](const std::string& order) {
    INFO(order);
    const auto in = normal(64, 5);
    const DeviceArray<float> din(in), partial(512);
    for (const bool fence : {true, false}) {
      const DeviceArray<float> sum(std::vector<float>{0});
      const DeviceArray<unsigned> counter(std::vector<unsigned>{0});
      if (!fence) {
        CHECK(details_of([&] {
                fence_by_all(din.data(), partial.data(), counter.data(), sum.data(), false);
              }).finding == simt::Finding::race);
        continue;
      }
      CHECK_NOTHROW(fence_by_all(din.data(), partial.data(), counter.data(), sum.data(), true));
      float want = 0;
      for (float v : in) want += 16 * v;
      CHECK(sum.get()[0] == Approx(want).margin(1e-3));
    }
  });
}

TEST_CASE("simt: the lines of a trace carry the coordinates of their thread", "[simt][edge]") {
  std::vector<std::string> lines;
  const auto before =
      simt::set_trace_handler([&](const std::string& line) { lines.push_back(line); });
  const DeviceArray<int> out(64);
  tracing(out.data());
  simt::set_trace_handler(before);
  CHECK(lines == std::vector<std::string>{"[b0,0,0 t33,0,0 w1 l1] value 33 of me"});
}

TEST_CASE("simt: constants, arrays of a thread and dynamic shared memory", "[simt][edge]") {
  const DeviceArray<float> out(64);
  local_arrays(out.data(), 3);
  const auto got = out.get();
  for (std::size_t t = 0; t < 64; ++t)
    CHECK(got[t] == static_cast<float>((t + 3) % 8) + static_cast<float>(1 << t % 4));
  const DeviceArray<float> many(30000);
  dynamic_shared(many.data(), 30000);
  CHECK(many.get()[17] == 30000 - 18);
  CHECK(details_of([&] { dynamic_shared(many.data(), 60000); }).finding ==
        simt::Finding::bad_launch);
}

TEST_CASE("simt: every block and thread runs once, whatever the order", "[simt][edge]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    const DeviceArray<std::uint32_t> out(12 * 30);
    const auto before = simt::stats();
    kernel_id(out.data());
    const auto after = simt::stats();
    CHECK(after.blocks - before.blocks == 12);
    CHECK(after.threads - before.threads == 360);
    CHECK(after.grids - before.grids == 1);
    const auto got = out.get();
    for (std::uint32_t i = 0; i < 360; ++i) CHECK(got[i] == 1000 * (i / 30) + i % 30);
  });
}

TEST_CASE("simt: sizes that CUDA refuses", "[simt][edge]") {
  const auto refused = [](dim3 grid, dim3 block, std::size_t shared) {
    return details_of([&] { simt::launch_now(nothing, grid, block, shared); }).finding ==
           simt::Finding::bad_launch;
  };
  CHECK(refused(dim3(0), dim3(32), 0));
  CHECK(refused(dim3(1), dim3(0), 0));
  CHECK(refused(dim3(1), dim3(1025), 0));
  CHECK(refused(dim3(1), dim3(64, 32), 0));
  CHECK(refused(dim3(1), dim3(1, 1, 65), 0));
  CHECK(refused(dim3(1, 65536), dim3(1), 0));
  CHECK(refused(dim3(1, 1, 65536), dim3(1), 0));
  CHECK(refused(dim3(1), dim3(1), (227 << 10) + 1));
  CHECK_NOTHROW(simt::launch_now(nothing, 1, 1024, 227 << 10));
  CHECK_NOTHROW(simt::launch_now(nothing, dim3(1, 2, 3), dim3(2, 2, 64), 0));
}

TEST_CASE("simt: without checks a race goes unseen, and results are the same", "[simt][edge]") {
  const KeepConfig keep;
  simt::set_checks(false);
  const DeviceArray<float> out(32);
  CHECK_NOTHROW(warp_same_word(out.data()));
  CHECK_NOTHROW(warp_broadcast(out.data()));
  CHECK(out.get() == std::vector<float>(32, 2.0f));
}

TEST_CASE("simt: a chain of blocks that hand over to one another", "[simt][edge]") {
  const KeepConfig keep;
  simt::set_order(simt::Order::forward);  // in any other a block waits for one that has not started
  const DeviceArray<float> data(3000), sum(1);
  const DeviceArray<unsigned> flags(std::vector<unsigned>(3000, 0));
  CHECK_NOTHROW(chain_of_blocks(data.data(), flags.data(), sum.data(), 3000));
  CHECK(sum.get()[0] == 3000);
}

TEST_CASE("simt: readers of neighbours in one word, with barriers of their own", "[simt][edge]") {
  in_all_orders([](const std::string& order) {
    INFO(order);
    const DeviceArray<unsigned char> out(32);
    CHECK_NOTHROW(bytes_read_at_two_times(out.data()));
  });
}

}  // namespace braid::simt_tests
