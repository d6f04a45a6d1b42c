// One rank of a job that processes.sh starts: rank_program MODE [SECONDS].
//   collectives  every collective, dtype and op against a plain loop; prints "rank R of N: ok"
//   loop         all_reduces until an error, which it prints; rank 0 prints "running" first
//   mismatch     rank 1 calls all_reduce with another dtype
//   order        rank 1 calls broadcast where the others call all_reduce
//   shorter, longer, other   rank 1 receives with less or more room, or as another dtype
//   again        two jobs one after the other; rank 0 is slow to leave the first
//   parameters   rank 1's model has another number of parameters
//   dtypes       rank 1's model has another dtype
//   enters       rank 1 stops itself before it joins
//   meets        rank 1 stops itself when its engine is open, before the ranks meet; over MPI
//   stops        rank 1 stops itself after its last collective
//   leave        rank 1 ends by an exception while the others wait
//   huge         more than 2^31 bytes in one call; needs 7 GiB for each of two ranks
//   alone        prints rank and size
//   speed        prints the time of an all_reduce, by size
// and, instead of a rank, a program that has taken the port: prints the port, ends after SECONDS
//   silent       accepts connections and says nothing
//   talks        speaks another protocol
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include <braid/braid.hpp>

#include "process/engine.hpp"
#include "processes/collectives.hpp"

using namespace braid;
using parallel::ProcessCommunicator;

namespace {

void run(std::string_view mode, parallel::Process& process) {
  ProcessCommunicator& c = process.communicator();
  if (mode == "collectives") {
    test::check_collectives(c);
    test::check_large_sums(c);
    test::check_messages_and_groups(c);
    std::printf("rank %d of %d, %d of %d on this host: ok over %s\n", process.rank(),
                process.size(), process.local_rank(), process.local_size(),
                std::string(c.engine()).c_str());
  } else if (mode == "loop") {
    Tensor t = ones({1000});
    for (int i = 0;; ++i) {
      c.start_all_reduce(t, parallel::ReduceOp::mean, "gradients").wait();
      if (i == 3 && process.rank() == 0) std::printf("running\n"), std::fflush(stdout);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  } else if (mode == "mismatch") {
    c.barrier();
    c.all_reduce(zeros({3}, {.dtype = process.rank() == 1 ? DType::float64 : DType::float32}));
  } else if (mode == "order") {
    c.barrier();
    if (process.rank() == 1) c.broadcast(zeros({3}));
    else c.all_reduce(zeros({3}));
  } else if (mode == "shorter" || mode == "longer" || mode == "other") {
    const Tensor sent = ones({4}),
                 got = zeros({mode == "longer"    ? 8
                              : mode == "shorter" ? 2
                                                  : 4},
                             {.dtype = mode == "other" ? DType::int32 : DType::float32});
    if (process.rank() == 0) c.send(sent, 1);
    else if (process.rank() == 1) c.recv(got, 0);
    c.barrier();
  } else if (mode == "again") {
    c.barrier();
    std::printf("rank %d was there\n", process.rank()), std::fflush(stdout);
    if (process.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  } else if (mode == "parameters" || mode == "dtypes") {
    const bool other = process.rank() == 1;
    nn::Sequential model{nn::Linear(3, 4), nn::Linear(4, 2, {.bias = mode == "dtypes" || !other})};
    if (mode == "dtypes" && other) to(model, DType::float64);
    const parallel::DistributedDataParallel distributed(std::move(model), process);
  } else if (mode == "leave") {
    c.barrier();
    if (process.rank() == 1) throw Error("no more data");
    c.all_reduce(zeros({3}));
  } else if (mode == "stops") {
    c.barrier();
    if (process.rank() == 1) (void)::raise(SIGSTOP);
  } else if (mode == "huge") {
    const std::int64_t n = (std::int64_t{1} << 31) + 5;
    const int me = c.rank(), other = 1 - me;
    const auto ends = [&](const Tensor& t, std::int64_t at, int first, int last) {
      const auto* const data = t.data<const std::uint8_t>();
      test::expect(data[at] == first && data[at + n - 1] == last, "the first and last byte");
    };
    const auto fill = [&](const Tensor& t) {
      t.data<std::uint8_t>()[0] = static_cast<std::uint8_t>(me + 1);
      t.data<std::uint8_t>()[n - 1] = static_cast<std::uint8_t>(me + 3);
    };
    Tensor t = zeros({n}, {.dtype = DType::uint8}), all = zeros({2 * n}, {.dtype = DType::uint8});
    fill(t);
    c.all_gather(all, t);
    ends(all, 0, 1, 3);
    ends(all, n, 2, 4);
    c.broadcast(t, 1);
    ends(t, 0, 2, 4);
    fill(t);
    Tensor got = all.narrow(0, 0, n);
    const parallel::Work sent = c.start_send(t, other);
    c.recv(got, other);
    sent.wait();
    ends(got, 0, other + 1, other + 3);
    c.all_reduce(t);
    ends(t, 0, 3, 7);
    std::printf("rank %d: huge is ok\n", me);
  } else if (mode == "alone") {
    Tensor t = ones({3});
    c.all_reduce(t);
    std::printf("rank %d of %d\n", process.rank(), process.size());
  } else if (mode == "speed") {
    for (const std::int64_t n : {1, 256, 16 * 1024, 256 * 1024, 1024 * 1024, 8 * 1024 * 1024}) {
      Tensor t = ones({n});
      const int times = n > 100'000 ? 10 : 200;
      double best = 1e9;
      for (int i = 0; i < times; ++i) {
        c.barrier();
        const auto start = std::chrono::steady_clock::now();
        c.all_reduce(t, parallel::ReduceOp::mean);
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        best = std::min(best, took.count());
      }
      if (process.rank() == 0)
        std::printf("all_reduce of %9lld bytes: %9.1f us\n", static_cast<long long>(4 * n), best);
    }
  } else {
    throw Error("expected a mode, got " + std::string(mode));
  }
}

/// Rank 1 stops where the others wait for it.
void stop_at_start(bool opens_engine) {
  const char *const open_mpi = std::getenv("OMPI_COMM_WORLD_RANK"),
                    *const mpich = std::getenv("PMI_RANK"),
                    *const folder = std::getenv("BRAID_MODULE_PATH");
  const char* const rank = open_mpi != nullptr ? open_mpi : mpich;
  if (rank == nullptr || std::atoi(rank) != 1) return;
  if (opens_engine) {
    std::string file = folder == nullptr ? "" : std::string(folder) + "/braid_";
    file += open_mpi != nullptr ? "mpi_openmpi.so" : "mpi_mpich.so";
    void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const table = library == nullptr ? nullptr : ::dlsym(library, "braid_engine");
    if (table == nullptr) throw Error("no engine in " + file);
    const parallel::process::BraidEngineOpen options{-1, -1, "", 60, 0, {}};
    (void)reinterpret_cast<const parallel::process::BraidEngineTable* (*)()>(table)()->open(
        &options, {});
  }
  (void)::raise(SIGSTOP);
}

int take_port(bool talks, double seconds) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listener, address, length) != 0 || ::listen(listener, 8) != 0 ||
      ::getsockname(listener, address, &length) != 0)
    return 1;
  std::printf("%d\n", ntohs(at.sin_port)), std::fflush(stdout);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    pollfd waits{listener, POLLIN, 0};
    if (::poll(&waits, 1, 50) <= 0) continue;
    const int peer = ::accept(listener, nullptr, nullptr);  // open until the end
    if (talks) (void)!::send(peer, "SSH-2.0-Open\r\n", 14, MSG_NOSIGNAL);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (const std::string_view mode = argc > 2 ? argv[1] : ""; mode == "silent" || mode == "talks")
      return take_port(mode == "talks", std::atof(argv[2]));
    else if (mode == "enters" || mode == "meets") stop_at_start(mode == "meets");
    parallel::ProcessOptions options;
    if (argc > 2) options.timeout = std::atof(argv[2]);
    if (argc > 1 && std::string_view(argv[1]) == "again") {
      parallel::Process first(argc, argv, options);
      run("again", first);
    }
    parallel::Process process(argc, argv, options);
    run(argc > 1 ? argv[1] : "alone", process);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
