// The communicator of processes, with ranks as threads: every collective against a plain loop.
#include <chrono>
#include <numeric>

#include <braid/parallel/internal/thread_ranks.hpp>

#include "group.hpp"
#include "processes/collectives.hpp"
#include "ranks.hpp"

namespace braid::test {
namespace {

using parallel::ProcessCommunicator;
using parallel::ReduceOp;

}  // namespace

TEST_CASE("thread ranks: every collective gives what a plain loop gives", "[process]") {
  for (const int n : {1, 2, 3, 4}) on_ranks(n, check_collectives);
}

TEST_CASE("thread ranks: 16-bit floats are added in float32, and a NaN stays", "[process]") {
  on_ranks(3, [](ProcessCommunicator& c) {
    const Device at = c.device();
    for (const std::int64_t n : {3, 100'000})  // gathered, and added in parts
      for (const auto& [dtype, large] :
           {std::pair{DType::float16, 2048.0}, std::pair{DType::bfloat16, 256.0}}) {
        // large + 1 is not a number of the dtype, and would be rounded to large
        const Tensor t = full({n}, c.rank() == 0 ? large : 1.0, {.device = at, .dtype = dtype});
        c.all_reduce(t);
        same(t, full({n}, large + 2, {.dtype = dtype}));
      }
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const Tensor t = full({2}, c.rank() == 1 ? nan : 1.0, {.device = at});
      c.all_reduce(t, op);
      same(t, full({2}, nan));
    }
  });
}

TEST_CASE("thread ranks: uneven all_to_all, messages, split, functions", "[process]") {
  on_ranks(4, [](ProcessCommunicator& c) {
    check_messages_and_groups(c);
    const int me = c.rank();
    Tensor t = full({5}, 1.0 * (me));
    const parallel::Work reduced = c.start_all_reduce(t, ReduceOp::sum, "numbers");
    double seen = -1;
    c.start_function([&] { seen = t.to_vector<double>()[0]; }).wait();
    expect(seen == 6 && reduced.is_completed(), "a function after the result");
    const parallel::Work failed = c.start_function([] { throw ShapeError("from inside"); });
    expect(text_of([&] { failed.wait(); }) == "from inside", "the function's error");
    expect(text_of([&] {
             c.start_function([&] { c.barrier(); }).wait();
           }).starts_with("Work::wait: expected another thread"),
           "an error instead of a wait for itself");
    c.barrier();
    c.barrier();
  });
}

TEST_CASE("thread ranks: calls that differ fail on all ranks with one text", "[process][once]") {
  using Calls = std::function<void(ProcessCommunicator&, Tensor&)>;
  const std::pair<Calls, const char*> rows[] = {
      {[](auto& c, Tensor& t) {
         if (c.rank() == 2) t = zeros({3, 4}, {.dtype = DType::float64});
         c.all_reduce(t);
       },
       "all_reduce, call 2: rank 2 has float64 [3, 4], ranks 0, 1, 3 have float32 [3, 4]"},
      {[](auto& c, Tensor& t) { c.all_reduce(c.rank() == 0 ? t : t.view({12})); },
       "all_reduce, call 2: rank 0 has float32 [3, 4], ranks 1, 2, 3 have float32 [12]"},
      {[](auto& c, Tensor& t) {
         if (c.rank() == 1) c.broadcast(t);
         else c.all_reduce(t);
       },
       "call 2: rank 1 calls broadcast, ranks 0, 2, 3 call all_reduce"},
      {[](auto& c, Tensor& t) { c.all_reduce(t, c.rank() < 3 ? ReduceOp::sum : ReduceOp::max); },
       "all_reduce, call 2: rank 3 has op max, ranks 0, 1, 2 have op sum"},
      {[](auto& c, Tensor& t) { c.broadcast(t, c.rank() < 2 ? 0 : 1); },
       "broadcast, call 2: ranks 0, 1 have root 0, ranks 2, 3 have root 1"},
      {[](auto& c, Tensor& t) {
         std::vector<std::int64_t> counts(4, 3);
         if (c.rank() == 2) counts = {3, 3, 2, 4};
         c.start_all_to_all(zeros({12}), t, {}, counts).wait();
       },
       "all_to_all, call 2: rank 2 sends 2 elements to rank 2, which expects 3"},
  };
  for (const auto& [calls, want] : rows) {
    on_ranks(4, [&, &call = calls, &text = want](ProcessCommunicator& c) {
      Tensor t = full({3, 4}, 1.0 * (c.rank()));
      c.barrier();
      const std::string got = text_of([&] { call(c, t); });
      expect(got == text, str(text, ", got ", got));
      if (t.dtype() == DType::float32) same(t, full({3, 4}, 1.0 * (c.rank())));
      expect(text_of([&] { c.barrier(); }) == text, "that later calls throw it too");
    });
  }
}

TEST_CASE("thread ranks: a deadline's error names the ranks that are missing", "[process][once]") {
  std::vector<std::string> texts(4);
  on_ranks(
      4,
      [&](ProcessCommunicator& c) {
        Tensor t = zeros({1024});
        c.all_reduce(t);
        const auto late = [&] { c.start_all_reduce(t, ReduceOp::sum, "bucket 3").wait(); };
        if (c.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(900));
        texts[usize(c.rank())] = text_of(late);
      },
      0.4);
  for (const std::string& text : texts) {
    INFO(text);
    CHECK(text == texts[0]);
    CHECK(text.find("rank 2 has not entered all_reduce(bucket 3, 4 KiB), call 2; ranks 0, 1, 3 "
                    "wait since 0.4 s; rank 2 computes, its last completed call is 1") == 0);
  }
}

TEST_CASE("thread ranks: abort, a rank that leaves, a message that does not come",
          "[process][once]") {
  on_ranks(3, [](ProcessCommunicator& c) {
    const std::string want = "rank 1 aborted the communicator: no more data";
    if (c.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      c.abort_with("no more data");
    }
    Tensor t = zeros({3});
    const std::string got = text_of([&] { c.all_reduce(t); });
    expect(got == want, str(want, ", got ", got));
  });
  const auto leave = [](ProcessCommunicator& c) {
    if (c.rank() == 1) throw Error("out of data");
    Tensor x = zeros({3});
    const std::string got = text_of([&] { c.all_reduce(x); });
    expect(got == "rank 1 has left without entering all_reduce(12 bytes), call 1", got);
    throw Error("seen");
  };
  CHECK_THROWS_TEXT(Error, "seen", on_ranks(2, leave));
  const auto wait_for_message = [](ProcessCommunicator& c) {
    Tensor x = zeros({3});
    if (c.rank() == 0) c.recv(x, 1, 5);
    else std::this_thread::sleep_for(std::chrono::milliseconds(400));
  };
  CHECK_THROWS_TEXT(CommTimeoutError,
                    "recv(12 bytes from rank 1) of rank 0 is not complete after 0.2 s; rank 1 "
                    "computes, its last completed call is 0",
                    on_ranks(2, wait_for_message, 0.2));
}

}  // namespace braid::test
