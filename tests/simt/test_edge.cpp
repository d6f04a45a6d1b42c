// Edge cases of the language and of the emulation.
#include <algorithm>

#include "kernels.hpp"
#include "simt/stats.hpp"
#include "simt/trace.hpp"
#include "support.hpp"

namespace braid::simt_tests {

void host_function_that_throws() { throw 42; }

namespace {

void nothing() {}

}  // namespace

TEST_CASE("simt: groups of lanes with masks of their own", "[edge]") {
  in_all_orders([] {
    const DeviceArray<float> out(32), sums(2);
    run(half_warps, 1, 32, 0, out);
    const auto got = out.get();
    for (int t = 0; t < 32; ++t)
      CHECK(got[static_cast<std::size_t>(t)] ==
            static_cast<float>((t & 16) + 15 - (t & 15) + (t ^ 1)));
    run(warp_broadcast, 1, 32, 0, out);
    CHECK(out.get() == std::vector<float>(32, 2.0f));
    run(short_warp, 1, 40, 0, sums);
    CHECK(sums.get() == std::vector<float>{32, 8});
  });
}

TEST_CASE("simt: races between lanes of one warp", "[edge]") {
  SIMT_CHECKED_OR_RETURN();
  in_all_orders([] {
    const DeviceArray<float> out(32);
    for (const auto& [name, kernel] : {std::pair{"warp_same_word", &warp_same_word},
                                       {"warp_read_then_write", &warp_read_then_write}}) {
      INFO(name);
      const auto d = details_of([&, k = kernel] { run(k, 1, 32, 0, out); });
      CHECK(d.finding == simt::Finding::race);
      CHECK(d.variable == "s");
      const auto lines = marked_lines("kernels.cu", name);
      CHECK(std::count(lines.begin(), lines.end(), d.line) == 1);
    }
  });
}

TEST_CASE("simt: a barrier after some threads have returned", "[edge]") {
  in_all_orders([] {
    const DeviceArray<float> out(64);
    CHECK_NOTHROW(run(early_return, 1, 64, 0, out, 64));
    const auto d = details_of([&] { run(early_return, 1, 64, 0, out, 40); });
    CHECK(d.finding == simt::Finding::divergent_barrier);
    CHECK(d.line == marked_lines("kernels.cu", "early_return").at(0));
  });
}

TEST_CASE("simt: what overflows a stack, or throws, leaves the kernel as an error", "[edge]") {
  const DeviceArray<float> out(32);
  const DeviceArray<int> numbers(64);
#if !defined(__SANITIZE_ADDRESS__)
  for (int again = 0; again < 3; ++again) {
    const auto overflow = details_of([&] { run(deep_locals, 1, 32, 0, out); });
    CHECK(overflow.finding == simt::Finding::stack_overflow);
    CHECK(overflow.kernel == "braid::simt_tests::deep_locals");
  }
#endif
  const auto thrown = details_of([&] { run(throwing, 1, 32, 0, numbers); });
  CHECK(thrown.finding == simt::Finding::exception);
  CHECK(thrown.thread.x == 3);
  CHECK_NOTHROW(run(warp_broadcast, 1, 32, 0, out));
}

TEST_CASE("simt: neighbours within a word are no race", "[edge]") {
  in_all_orders([] {
    const DeviceArray<unsigned char> flags(1003), out(32);
    run(bytes_of_words, 21, 50, 0, reinterpret_cast<bool*>(flags.data()), 1003);
    const auto got = flags.get();
    int wrong = 0;
    for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] != (i % 3 == 0 ? 1 : 0);
    CHECK(wrong == 0);
    CHECK_NOTHROW(run(bytes_read, 1, 32, 0, out));  // readers with their own barriers
  });
}

TEST_CASE("simt: fences by all threads, counted in behind a barrier", "[edge]") {
  SIMT_CHECKED_OR_RETURN();
  in_all_orders([] {
    const auto in = normal(64, 5);
    const DeviceArray<float> din(in), partial(512);
    const auto run_it = [&](bool fence) {
      const DeviceArray<float> sum(std::vector<float>{0});
      const DeviceArray<unsigned> counter(std::vector<unsigned>{0});
      run(fence_by_all, 8, 64, 0, din, partial, counter, sum, fence);
      CHECK(counter.get() == std::vector<unsigned>{0});
      return sum.get()[0];
    };
    float want = 0;
    for (float v : in) want += 16 * v;
    CHECK(run_it(true) == Approx(want).margin(1e-3));
    CHECK(details_of([&] { run_it(false); }).finding == simt::Finding::race);
  });
}

TEST_CASE("simt: the lines of a trace carry the coordinates of their thread", "[edge]") {
  std::vector<std::string> lines;
  const auto before =
      simt::set_trace_handler([&](const std::string& line) { lines.push_back(line); });
  const DeviceArray<int> out(64);
  run(tracing, 1, 64, 0, out);
  simt::set_trace_handler(before);
  CHECK(lines == std::vector<std::string>{"[b0,0,0 t33,0,0 w1 l1] value 33 of me"});
}

TEST_CASE("simt: constants, arrays of a thread and dynamic shared memory", "[edge]") {
  const DeviceArray<float> out(64), many(30000);
  run(local_arrays, 1, 64, 0, out, 3);
  const auto got = out.get();
  for (std::size_t t = 0; t < 64; ++t)
    CHECK(got[t] == static_cast<float>((t + 3) % 8) + static_cast<float>(1 << t % 4) + 0.5f);
  run(dynamic_shared, 1, 64, 30000 * sizeof(float), many, 30000);
  CHECK(many.get()[17] == 30000 - 18);
  CHECK(details_of([&] {
          run(dynamic_shared, 1, 64, 60000 * sizeof(float), many, 60000);
        }).finding == simt::Finding::bad_launch);
}

TEST_CASE("simt: every block and thread runs once, whatever the order", "[edge]") {
  in_all_orders([] {
    const DeviceArray<std::uint32_t> out(12 * 30);
    const auto before = simt::stats();
    run(kernel_id, dim3(3, 2, 2), dim3(5, 2, 3), 0, out);
    const auto after = simt::stats();
    CHECK(after.blocks - before.blocks == 12);
    CHECK(after.threads - before.threads == 360);
    CHECK(after.grids - before.grids == 1);
    const auto got = out.get();
    for (std::uint32_t i = 0; i < 360; ++i) CHECK(got[i] == 1000 * (i / 30) + i % 30);
  });
}

TEST_CASE("simt: sizes that CUDA refuses", "[edge]") {
  const std::tuple<dim3, dim3, std::size_t> refused[] = {
      {dim3(0), dim3(32), 0},          {dim3(1), dim3(0), 0},
      {dim3(1), dim3(1025), 0},        {dim3(1), dim3(64, 32), 0},
      {dim3(1), dim3(1, 1, 65), 0},    {dim3(1, 65536), dim3(1), 0},
      {dim3(1, 1, 65536), dim3(1), 0}, {dim3(1), dim3(1), (227 << 10) + 1}};
  for (const auto& [grid, block, shared] : refused) {
    CHECK(details_of([&, g = grid, b = block, s = shared] { run(nothing, g, b, s); }).finding ==
          simt::Finding::bad_launch);
  }
  CHECK_NOTHROW(run(nothing, 1, 1024, 227 << 10));
  CHECK_NOTHROW(run(nothing, dim3(1, 2, 3), dim3(2, 2, 64), 0));
}

TEST_CASE("simt: without checks a race goes unseen, and results are the same", "[edge]") {
  const KeepConfig keep;
  simt::set_checks(false);
  const DeviceArray<float> out(32);
  CHECK_NOTHROW(run(warp_same_word, 1, 32, 0, out));
  CHECK_NOTHROW(run(warp_broadcast, 1, 32, 0, out));
  CHECK(out.get() == std::vector<float>(32, 2.0f));
}

TEST_CASE("simt: a chain of blocks that hand over to one another", "[edge]") {
  const KeepConfig keep;
  simt::set_order(simt::Order::forward);  // in other orders a block would wait for a later one
  const DeviceArray<float> data(3000), sum(1);
  const DeviceArray<unsigned> flags(std::vector<unsigned>(3000, 0));
  CHECK_NOTHROW(run(chain_of_blocks, 3000, 32, 0, data, flags, sum));
  CHECK(sum.get()[0] == 3000);
}

}  // namespace braid::simt_tests
