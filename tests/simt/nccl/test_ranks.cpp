// NCCL between ranks that are threads, each with an emulated device: the path of processes, whose
// host engine meets and checks.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>

#include <braid/parallel/internal/thread_ranks.hpp>

#include "nccl.hpp"
#include "process/nccl_agreement.hpp"
#include "processes/collectives.hpp"
#include "support/errors.hpp"

using namespace braid;
using namespace braid::test;
using parallel::Engine;
using parallel::ProcessCommunicator;
using parallel::ReduceOp;
using parallel::process::NcclFacts;

namespace {

using Ranks = std::vector<std::shared_ptr<ProcessCommunicator>>;

Ranks make_ranks(int n, double timeout = 60) {
  return parallel::detail::make_thread_communicators(group(n), timeout, true);
}

/// Runs f on each rank's thread, and returns what it throws: its type and text.
std::vector<std::string> outcomes(Ranks ranks, const std::function<void(ProcessCommunicator&)>& f) {
  std::vector<std::string> texts(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        f(*ranks[i]);
      } catch (const std::exception& e) {
        texts[i] = str(exception_type(std::current_exception()), ": ", e.what());
      }
      ranks[i].reset();
    });
  for (std::thread& t : threads) t.join();
  return texts;
}

void on_ranks(int n, const std::function<void(ProcessCommunicator&)>& f, double timeout = 60) {
  for (const std::string& text : outcomes(make_ranks(n, timeout), f)) CHECK(text == "");
  CHECK(nccl::alive() == 0);
  CHECK(all_findings() == "");
}

constexpr DType kTypes[] = {DType::bool_,   DType::uint8,    DType::int32,   DType::int64,
                            DType::float16, DType::bfloat16, DType::float32, DType::float64};

/// Every collective on a stream of the rank's own, which still fills the inputs when they start.
void check_on_side_stream(ProcessCommunicator& c, DType dtype, std::int64_t size) {
  const int n = c.size(), me = c.rank(), root = n - 1;
  const auto stream = make_stream(c.device());
  const StreamGuard guard(stream);
  const auto on = [&](const Tensor& t) { return t.to(c.device(), {}, true); };
  const auto none = [&](std::int64_t count) {
    return zeros({count}, {.device = c.device(), .dtype = dtype});
  };
  std::vector<Tensor> all, blocks;
  for (int r = 0; r < n; ++r) {
    all.push_back(rank_values(r, size, dtype));
    blocks.push_back(rank_values(r, size * n, dtype).narrow(0, me * size, size));
  }
  const Tensor own = on(all[static_cast<std::size_t>(me)]),
               sent = on(rank_values(me, size * n, dtype));
  const Tensor root_has = own.clone(), gathered = none(size * n), exchanged = none(size * n);
  std::vector<parallel::Work> works{c.start_broadcast(root_has, root),
                                    c.start_all_gather(gathered, own),
                                    c.start_all_to_all(exchanged, sent)};
  std::vector<std::pair<Tensor, Tensor>> reduced;
  for (const ReduceOp op :
       {ReduceOp::sum, ReduceOp::mean, ReduceOp::product, ReduceOp::min, ReduceOp::max}) {
    if (dtype == DType::bool_ || (op == ReduceOp::mean && !is_floating(dtype))) continue;
    const Tensor a = own.clone(), b = own.clone(), part = none(size);
    works.push_back(c.start_all_reduce(a, op));
    works.push_back(c.start_reduce(b, root, op));
    works.push_back(c.start_reduce_scatter(part, sent, op));
    reduced.emplace_back(a, reduced_values(op, n, size, dtype));
    reduced.emplace_back(
        b, me == root ? reduced_values(op, n, size, dtype) : all[static_cast<std::size_t>(me)]);
    reduced.emplace_back(part, reduced_values(op, n, size * n, dtype).narrow(0, me * size, size));
  }
  for (const parallel::Work& work : works) work.wait();
  same(root_has, all.back());
  same(gathered, cat(all, 0));
  same(exchanged, cat(blocks, 0));
  for (const auto& [got, want] : reduced) same(got, want);
}

NcclFacts facts(const char* gpu, Engine engine, int version = 22809) {
  NcclFacts f;
  std::copy_n(gpu, std::char_traits<char>::length(gpu), f.gpu.begin());
  f.device = {'c', 'u', 'd', 'a', ':', '0'};
  if (*gpu == '\0') f.device = {'c', 'p', 'u', ':', '0'};
  f.host = {'a'};
  f.version = version;
  f.engine = static_cast<std::uint8_t>(engine);
  return f;
}

}  // namespace

TEST_CASE("nccl ranks: every collective of every dtype, on a stream of its own", "[ranks][nccl]") {
  const Scene scene;
  for (const int n : {2, 3, 4})
    on_ranks(n, [](ProcessCommunicator& c) {
      expect(c.engine() == "nccl", "nccl as the engine");
      for (const DType dtype : kTypes)
        for (const std::int64_t size : {0, 1, 257}) check_on_side_stream(c, dtype, size);
    });
}

TEST_CASE("nccl ranks: 16-bit floats are added in float32, and a NaN stays", "[ranks][nccl]") {
  const Scene scene;
  on_ranks(3, [](ProcessCommunicator& c) {
    for (const auto& [dtype, large] :
         {std::pair{DType::float16, 2048.0}, std::pair{DType::bfloat16, 256.0}}) {
      // large + 1 is not a number of the dtype, and would be rounded to large
      const FactoryOptions options{.device = c.device(), .dtype = dtype};
      const Tensor t = full({5}, c.rank() == 0 ? large : 1.0, options);
      c.all_reduce(t);
      same(t, full({5}, large + 2, {.dtype = dtype}));
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max}) {
      const Tensor t = full({2}, c.rank() == 1 ? nan : 1.0, {.device = c.device()});
      c.all_reduce(t, op);
      same(t, full({2}, nan));
    }
  });
}

TEST_CASE("nccl ranks: what runs over NCCL, and what over the host engine", "[ranks]") {
  const Scene scene;
  using Calls = std::function<void(ProcessCommunicator&, const Tensor& gpu, const Tensor& cpu)>;
  const struct {
    const char* name;
    bool nccl;
    Calls calls;
  } rows[] = {
      {"all_reduce", true, [](auto& c, auto& gpu, auto&) { c.all_reduce(gpu); }},
      {"broadcast", true, [](auto& c, auto& gpu, auto&) { c.broadcast(gpu, 1); }},
      {"all_reduce of the CPU", false, [](auto& c, auto&, auto& cpu) { c.all_reduce(cpu); }},
      {"min", false, [](auto& c, auto& gpu, auto&) { c.all_reduce(gpu, ReduceOp::min); }},
      {"from CPU to GPU", false, [](auto& c, auto& gpu, auto& cpu) { c.all_to_all(gpu, cpu); }},
      {"barrier", false, [](auto& c, auto&, auto&) { c.barrier(); }},
      {"message", false,
       [](auto& c, auto& gpu, auto&) {
         if (c.rank() == 0) c.send(gpu, 1);
         else c.recv(gpu, 0);
       }},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    const std::uint64_t before = nccl::calls();
    on_ranks(2, [&](ProcessCommunicator& c) {
      row.calls(c, ones({4}, {.device = c.device()}), ones({4}));
    });
    // one that asks for the version each, and those of the communicators
    CHECK((nccl::calls() - before > 8) == row.nccl);
  }
}

TEST_CASE("nccl ranks: groups have communicators of their own", "[ranks]") {
  const Scene scene;
  on_ranks(4, [](ProcessCommunicator& c) {
    const Tensor before = full({3}, 1.0 * c.rank(), {.device = c.device()});
    c.all_reduce(before);
    const auto part = c.split(c.rank() == 3 ? -1 : c.rank() % 2, -c.rank());
    if (part) {
      expect(part->engine() == "nccl", "nccl as the engine");
      for (int i = 0; i < 3; ++i) {
        const Tensor t = full({3}, 1.0 * c.rank(), {.device = c.device()});
        part->all_reduce(t);
        same(t, full({3}, c.rank() == 1 ? 1.0 : 2.0));
      }
    }
    c.all_reduce(before);
    same(before, full({3}, 24.0));
  });
}

TEST_CASE("nccl ranks: uneven all_to_all, also without elements", "[ranks]") {
  const Scene scene;
  on_ranks(3, [](ProcessCommunicator& c) {
    // rank r sends r elements of value 10 r + to: rank 0 none
    const int me = c.rank(), n = c.size();
    std::vector<std::int64_t> out_counts;
    std::vector<float> in, want;
    for (int r = 0; r < n; ++r) {
      out_counts.push_back(r);
      in.insert(in.end(), static_cast<std::size_t>(me), static_cast<float>(10 * me + r));
      want.insert(want.end(), static_cast<std::size_t>(r), static_cast<float>(10 * r + me));
    }
    const Tensor from = in.empty() ? zeros({0}) : tensor(in);
    const Tensor out = zeros({static_cast<std::int64_t>(want.size())}, {.device = c.device()});
    c.start_all_to_all(out, from.to(c.device(), {}, true), out_counts,
                       std::vector<std::int64_t>(static_cast<std::size_t>(n), me))
        .wait();
    same(out, tensor(want));
  });
}

TEST_CASE("nccl ranks: DistributedDataParallel ends with one process's parameters",
          "[ranks][nccl]") {
  const Scene scene;
  constexpr int kSteps = 3;
  const auto net = [] {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    manual_seed(3);
    return Net();
  };
  manual_seed(5);
  const Tensor x = randn({12, 5});
  const auto train = [&](auto& model, const Tensor& rows) {
    optim::SGD optimizer(parameters(model), {.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < kSteps; ++step) {
      optimizer.zero_grad();
      exp(model(rows)).mean().backward();
      optimizer.step();
    }
    std::vector<float> all;
    for (const auto& parameter : parameters(model)) append(all, parameter);
    return all;
  };
  Net alone = net();
  const std::vector<float> want = train(alone, x);
  std::vector<std::vector<float>> got(3);
  {
    const Ranks ranks = make_ranks(3);
    const auto texts = outcomes(ranks, [&](ProcessCommunicator& c) {
      const auto me = static_cast<std::size_t>(c.rank());
      Net own = net();
      to(own, c.device());
      // small buckets, so that several are reduced while backward runs
      parallel::DistributedDataParallel model(std::move(own), ranks[me], {.bucket_bytes = 64});
      got[me] = train(model, x.narrow(0, 4 * c.rank(), 4).to(c.device()));
    });
    for (const std::string& text : texts) CHECK(text == "");
  }
  for (const std::vector<float>& numbers : got) {
    CHECK(numbers == got[0]);
    REQUIRE(numbers.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::abs(numbers[i] - want[i]) < 1e-5F);
  }
  CHECK(nccl::alive() == 0);
  CHECK(all_findings() == "");
}

TEST_CASE("nccl ranks: a GPU here and the CPU there is an error on all ranks", "[ranks]") {
  const Scene scene;
  const auto texts = outcomes(make_ranks(3), [](ProcessCommunicator& c) {
    const Tensor t = ones({2}, {.device = c.rank() == 1 ? Device() : c.device()});
    c.all_reduce(t);
  });
  for (const std::string& text : texts)
    CHECK(text ==
          "CommError: all_reduce, call 1: rank 1 has a tensor on the CPU, ranks 0, 2 have a tensor "
          "on a GPU");
}

TEST_CASE("nccl ranks: faults of the library end all ranks with one reason", "[ranks]") {
  const struct {
    const char* name;
    nccl::Fault fault;
    bool first;  // the communicator is not made yet
    const char* text;
  } rows[] = {
      {"id", nccl::Fault::error, true,
       "CommError: rank *: rank 0 has no id of NCCL: expected ncclSuccess from ncclGetUniqueId*"},
      {"id hangs", nccl::Fault::hang, true, "CommTimeoutError: *"},
      {"call", nccl::Fault::error, false,
       "CommError: rank *: all_reduce: expected ncclSuccess from nccl*, got ncclInternalError*"},
      {"error later", nccl::Fault::asynchronous, false,
       "CommError: rank *: all_reduce: expected ncclSuccess from the library on cuda:*, got "
       "ncclRemoteError*"},
      {"progress", nccl::Fault::in_progress, false,
       "CommTimeoutError: all ranks have entered all_reduce(bucket 3, 16 bytes), call 3, which is "
       "not complete after*"},
      {"stall", nccl::Fault::stall, false,
       "CommTimeoutError: all ranks have entered all_reduce(bucket 3, 16 bytes), call 3, which is "
       "not complete after*(all_reduce: expected an end within*"},
      {"hang", nccl::Fault::hang, false, "CommTimeoutError: *"},
  };
  for (const auto& row : rows) {
    INFO(row.name);
    const Scene scene;
    Ranks ranks = make_ranks(3, 1);
    if (row.first) nccl::fail_call(1, row.fault);
    std::atomic<int> there{0};
    const auto start = Clock::now();
    const auto texts = outcomes(std::move(ranks), [&](ProcessCommunicator& c) {
      Tensor t = ones({4}, {.device = c.device()});
      if (!row.first) {
        c.all_reduce(t);
        if (++there == 3) nccl::fail_call(1, row.fault);
        wait_until([&] { return there >= 3; });
      }
      c.barrier();
      c.start_all_reduce(t, ReduceOp::sum, "bucket 3").wait();
    });
    const auto took = Clock::now() - start;
    for (const std::string& text : texts) {
      INFO(text);
      CHECK(text == texts[0]);
      CHECK(matches(text, row.text));
    }
    CHECK(took < 5s);
    CHECK(nccl::failed());
    nccl::fail_call(0, nccl::Fault::none);
    nccl::release();
    wait_until([] { return nccl::alive() == 0; });
    CHECK(nccl::alive() == 0);
    (void)all_findings();
  }
}

TEST_CASE("nccl ranks: an abort by one rank ends a collective on all", "[ranks]") {
  const Scene scene;
  nccl::fail_call(1, nccl::Fault::stall);
  const auto start = Clock::now();
  const auto texts = outcomes(make_ranks(3), [&](ProcessCommunicator& c) {
    const Tensor t = ones({4}, {.device = c.device()});
    const parallel::Work work = c.start_all_reduce(t);
    if (c.rank() == 1) {
      wait_until([] { return nccl::failed(); });
      c.abort_with("no more data");
    }
    work.wait();
  });
  for (const std::string& text : texts)
    CHECK(text == "CommAbortedError: rank 1 aborted the communicator: no more data");
  CHECK(Clock::now() - start < 5s);
  CHECK(nccl::alive() == 0);
  (void)all_findings();
}

TEST_CASE("nccl ranks: a rank that does not come is named", "[ranks]") {
  const Scene scene;
  const auto texts = outcomes(make_ranks(3, 0.5), [&](ProcessCommunicator& c) {
    const Tensor t = ones({4}, {.device = c.device()});
    c.all_reduce(t);
    if (c.rank() == 2) std::this_thread::sleep_for(1200ms);
    c.all_reduce(t);
  });
  for (const std::string& text : texts) {
    CHECK(text == texts[0]);
    CHECK(text.find("CommTimeoutError: rank 2 has not entered all_reduce(16 bytes), call 2; ranks "
                    "0, 1 wait since 0.5 s") == 0);
  }
}

TEST_CASE("nccl ranks: two ranks on one GPU are refused, with both and the device", "[ranks]") {
  const Scene scene;
  CHECK_THROWS_TEXT(
      CommError,
      "Process: engine nccl: expected a GPU of its own for each rank, got rank 1 (cuda:2) and rank "
      "2 (cuda:2) on GPU 0000:03:00.0 of one machine",
      parallel::detail::make_thread_communicators(
          {Device("cuda:0"), Device("cuda:2"), Device("cuda:2")}, 60, true));
  CHECK_THROWS_TEXT(
      CommError, "Process: engine nccl: expected a GPU on each rank, got cpu:0 on rank 1",
      parallel::detail::make_thread_communicators({Device("cuda:0"), Device()}, 60, true));
}

TEST_CASE("nccl ranks: the ranks decide alike what they use", "[ranks]") {
  const Engine free = Engine::automatic, required = Engine::nccl;
  NcclFacts missing = facts("1", required),
            failed = parallel::process::failed_facts("Process: no GPU"),
            emulated = facts("2", free);
  std::copy_n("no libnccl", 10, missing.error.begin());
  emulated.emulated = 1;
  NcclFacts missing_too = missing;
  missing_too.engine = static_cast<std::uint8_t>(free);
  NcclFacts elsewhere = facts("1", required);
  elsewhere.host = {'b'};
  const struct {
    std::vector<NcclFacts> ranks;
    bool nccl;
    const char *error, *warning;
  } rows[] = {
      {{facts("1", free), facts("2", free)}, true, "", ""},
      {{facts("1", required), facts("2", required)}, true, "", ""},
      {{facts("1", required), elsewhere}, true, "", ""},
      {{facts("1", Engine::mpi), facts("2", Engine::mpi)}, false, "", ""},
      {{facts("", free), facts("", free)}, false, "", ""},
      {{facts("1", free), facts("", free)}, false, "", ""},
      {{facts("1", free), emulated}, false, "", ""},
      {{facts("1", free), facts("1", free)},
       false,
       "",
       "Process: NCCL: expected a GPU of its own for each rank, got rank 0 (cuda:0) and rank 1 "
       "(cuda:0) on GPU 1 of one machine; tensors of GPUs go through the host*"},
      {{facts("2", free), missing_too}, false, "", "Process: NCCL: rank 1: no libnccl; tensors*"},
      {{facts("2", required), missing}, false, "Process: engine nccl: rank 1: no libnccl", ""},
      {{facts("1", required), facts("2", required, 22005)},
       false,
       "Process: engine nccl: expected one version of NCCL, got 2.28.9 on rank 0 and 2.20.5 on "
       "rank "
       "1",
       ""},
      {{facts("1", required), facts("2", free)},
       false,
       "Process: expected one engine, got nccl on rank 0 and another on rank 1",
       ""},
      {{facts("2", free), failed}, false, "Process: rank 1 cannot start: no GPU", ""},
  };
  for (const auto& row : rows) {
    const auto agreement = parallel::process::agree_on_nccl(row.ranks);
    INFO(row.error << row.warning);
    CHECK(agreement.nccl == row.nccl);
    CHECK(agreement.error == row.error);
    CHECK(agreement.warning.empty() == (*row.warning == 0));
    CHECK(matches(agreement.warning, row.warning));
  }
}
