// bench_ddp_worker: one rank of Braid's side of bench_ddp. mpirun starts it.
//   serve: answers the commands of bench/peers/README.md, read by rank 0 from stdin. The rows
//          ours_<bytes> and plain_<bytes> are an all-reduce of Braid and of MPI
//   wire:  prints one line with the times of a net of equal layers (wire.hpp)
// Each rank computes on one core of BRAID_PIN_CORES.
#define OMPI_SKIP_MPICXX 1  // the C interface only
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <sstream>

#include "ddp/rows.hpp"
#include "ddp/wire.hpp"
#include "support/json.hpp"
#include "support/timing.hpp"

namespace bench::ddp {
namespace {

using braid::Tensor;
using Clock = std::chrono::steady_clock;

/// Restricts this process to one of the cores of BRAID_PIN_CORES. Called before any thread exists.
void pin(int rank) {
  const char* const list = std::getenv("BRAID_PIN_CORES");
  if (list == nullptr) return;
  std::vector<int> cores;
  std::istringstream in(list);
  for (std::string one; std::getline(in, one, ',');) cores.push_back(std::atoi(one.c_str()));
  if (cores.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cores[static_cast<std::size_t>(rank) % cores.size()], &set);
  sched_setaffinity(0, sizeof set, &set);
}

/// Rank 0's line, on all ranks; empty at the end of the input.
std::string shared_line(parallel::ProcessCommunicator& ranks) {
  Tensor bytes = braid::zeros({256}, {.dtype = braid::DType::uint8});
  if (std::string line; ranks.rank() == 0 && std::getline(std::cin, line) && line.size() < 256)
    std::memcpy(bytes.data<std::uint8_t>(), line.data(), line.size());
  ranks.broadcast(bytes);
  return reinterpret_cast<const char*>(bytes.data<std::uint8_t>());
}

double slowest(parallel::ProcessCommunicator& ranks, double value) {
  const Tensor t = braid::full({1}, value, {.dtype = braid::DType::float64});
  ranks.all_reduce(t, parallel::ReduceOp::max);
  return t.item<double>();
}
double mean(parallel::ProcessCommunicator& ranks, double value) {
  const Tensor t = braid::full({1}, value, {.dtype = braid::DType::float64});
  ranks.all_reduce(t, parallel::ReduceOp::mean);
  return t.item<double>();
}

template <class F> double median_us(int iterations, F&& f) {
  std::vector<double> times;
  for (int i = 0; i < iterations + 2; ++i) {
    const double us = f();
    if (i >= 2) times.push_back(us);
  }
  return median(times);
}
double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double ours_us(parallel::ProcessCommunicator& ranks, std::int64_t bytes, int iterations) {
  const Tensor t = braid::zeros({bytes / 4});
  return slowest(ranks, median_us(iterations, [&] {
                   ranks.barrier();
                   const auto start = Clock::now();
                   ranks.all_reduce(t);
                   return us_since(start);
                 }));
}

/// MPI itself, on the thread of the communicator, which is the only one that calls MPI.
double plain_us(parallel::ProcessCommunicator& ranks, std::int64_t bytes, int iterations) {
  const Tensor t = braid::zeros({bytes / 4});
  double us = 0;
  ranks
      .start_function([&] {
        us = median_us(iterations, [&] {
          MPI_Barrier(MPI_COMM_WORLD);
          const auto start = Clock::now();
          MPI_Allreduce(MPI_IN_PLACE, t.data<float>(), static_cast<int>(bytes / 4), MPI_FLOAT,
                        MPI_SUM, MPI_COMM_WORLD);
          return us_since(start);
        });
      })
      .wait();
  return slowest(ranks, us);
}

void serve(parallel::Process& process) {
  parallel::ProcessCommunicator& ranks = process.communicator();
  std::map<std::string, std::unique_ptr<RankRow>> rows;
  const auto row = [&](const std::string& name) -> RankRow& {
    if (!rows.contains(name)) {
      rows.clear();
      rows[name] = make_row(name, process);
    }
    return *rows[name];
  };
  const auto answer = [&](const Json& reply) {
    if (ranks.rank() == 0) std::printf("%s\n", reply.text().c_str());
    std::fflush(stdout);
  };
  while (true) {
    std::istringstream words(shared_line(ranks));
    std::string command, name;
    words >> command;
    if (command.empty() || command == "quit") return;
    Json reply;
    if (command == "hello") {
      reply.set("peer", "braid").set("version", braid::version());
    } else {
      int threads = 0, count = 0;
      words >> name >> threads >> count;
      if (const auto at = name.find('_'); name.starts_with("ours_") || name.starts_with("plain_")) {
        const std::int64_t bytes = std::atoll(name.c_str() + at + 1);
        const double us =
            name[0] == 'o' ? ours_us(ranks, bytes, count) : plain_us(ranks, bytes, count);
        answer(reply.set("us", us));
        continue;
      }
      RankRow& r = row(name);
      r.reset();
      if (command == "losses") {
        std::string list;
        char text[40];
        for (int i = 0; i < count; ++i) {
          std::snprintf(text, sizeof text, "%.9g", mean(ranks, r.step().item<double>()));
          list += (i == 0 ? "" : ", ") + std::string(text);
        }
        if (ranks.rank() == 0) std::printf("{\"losses\": [%s]}\n", list.c_str());
        std::fflush(stdout);
        continue;
      }
      const double first = mean(ranks, r.step().item<double>());
      Tensor loss;
      for (int i = 0; i < 2; ++i) loss = r.step();
      ranks.barrier();
      const double us = slowest(ranks, time_step(count, [&] { loss = r.step(); }));
      reply.set("us", us).set("first", first).set("loss", mean(ranks, loss.item<double>()));
    }
    answer(reply);
  }
}

}  // namespace
}  // namespace bench::ddp

int main(int argc, char** argv) {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  bench::ddp::pin(rank == nullptr ? 0 : std::atoi(rank));
  try {
    braid::parallel::Process process(argc, argv, {.timeout = 120});
    if (argc > 1 && std::string(argv[1]) == "wire") bench::ddp::wire(process);
    else bench::ddp::serve(process);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_ddp_worker: %s\n", e.what());
    return 1;
  }
}
