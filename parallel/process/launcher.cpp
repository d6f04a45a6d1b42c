#include "process/launcher.hpp"

#include <charconv>
#include <cstdlib>

#include <braid/core/error.hpp>
#include <braid/core/internal/environment.hpp>

namespace braid::parallel::process {
namespace {

constexpr int kMostRanks = 65'536;

std::string text_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

/// The number in a variable; none if it is unset or empty.
std::optional<int> number_of(const char* variable, int least, int most) {
  const std::string text = text_of(variable);
  if (text.empty()) return {};
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most)
    throw ArgumentError(str(variable, ": expected a number from ", least, " to ", most, ", got '",
                            text.substr(0, 64), "'"));
  return number;
}

struct Variables {
  LaunchedBy by;
  const char *rank, *size, *local_rank, *local_size;
};
// The first one whose rank and size are set counts.
constexpr Variables kVariables[] = {
    {LaunchedBy::variables, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {LaunchedBy::open_mpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {LaunchedBy::open_mpi, "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
    {LaunchedBy::mpich, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {LaunchedBy::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", ""},
};

bool is_set(const char* variable) { return std::getenv(variable) != nullptr; }

void set_from(Launch& launch, const Variables& v) {
  for (const char* const name : {v.rank, v.size})
    if (is_set(name) && text_of(name).empty())
      throw ArgumentError(str(name, ": expected a number, or that it is not set, got ''"));
  const std::optional<int> size = number_of(v.size, 1, kMostRanks);
  const std::optional<int> rank = number_of(v.rank, 0, kMostRanks - 1);
  if (v.by == LaunchedBy::variables && rank.has_value() != size.has_value())
    throw ArgumentError(str(rank ? v.size : v.rank, ": expected it to be set, as ",
                            rank ? v.rank : v.size, " is, got none"));
  if (!rank || !size) return;
  launch.by = v.by;
  launch.variable = v.size;
  launch.rank = *rank;
  launch.size = *size;
  if (launch.rank >= launch.size)
    throw ArgumentError(
        str(v.rank, ": expected a rank below ", v.size, " = ", launch.size, ", got ", launch.rank));
  launch.local_rank = number_of(v.local_rank, 0, kMostRanks - 1);
  if (*v.local_size != '\0') launch.local_size = number_of(v.local_size, 1, kMostRanks);
}

/// The first host of a list such as `node[03-17,20],login1`.
std::string first_host(const std::string& list) {
  const std::string host = list.substr(0, list.find_first_of(",["));
  const auto bracket = list.find('[');
  if (bracket == std::string::npos || bracket != host.size()) return host;
  const auto end = list.find_first_of(",-]", bracket);
  return host + list.substr(bracket + 1, end - bracket - 1);
}

}  // namespace

Launch read_launch(const ProcessOptions& options) {
  Launch launch;
  launch.engine = options.engine;
  if (launch.engine == Engine::automatic) {
    constexpr Engine kEngines[] = {Engine::automatic, Engine::mpi, Engine::gloo, Engine::nccl};
    launch.engine =
        kEngines[choice_from_environment("BRAID_ENGINE", {"automatic", "mpi", "gloo", "nccl"})];
  }
  if (options.rank.has_value() != options.size.has_value())
    throw ArgumentError("Process: expected both rank and size or none, got one");
  if (options.rank) {
    launch.by = LaunchedBy::options;
    launch.variable = "ProcessOptions::size";
    launch.rank = *options.rank;
    launch.size = *options.size;
    if (launch.size < 1 || launch.size > kMostRanks || launch.rank < 0 ||
        launch.rank >= launch.size)
      throw ArgumentError(str("Process: expected a rank from 0 to size - 1, got rank ", launch.rank,
                              " of ", launch.size));
  }
  for (const Variables& v : kVariables)
    if (launch.by == LaunchedBy::nobody) set_from(launch, v);
  // A process manager whose number of ranks is not known. SLURM_PROCID is set in batch files, too.
  for (const Variables& v : kVariables)
    if (launch.by == LaunchedBy::nobody && v.by != LaunchedBy::slurm && is_set(v.rank))
      throw ArgumentError(
          str(v.rank, ": expected the number of ranks in ", v.size, " too, got none"));
  if (options.local_rank) launch.local_rank = options.local_rank;
  if (launch.local_rank && *launch.local_rank < 0)
    throw ArgumentError(str("Process: local_rank: expected at least 0, got ", *launch.local_rank));
  if (launch.local_rank && launch.local_size && *launch.local_rank >= *launch.local_size)
    throw ArgumentError(str("Process: local_rank: expected a rank below ", *launch.local_size,
                            ", the number of ranks on this host, got ", *launch.local_rank));

  launch.address = options.address.empty() ? text_of("MASTER_ADDR") : options.address;
  const bool one_node = text_of("SLURM_STEP_NUM_NODES") == "1";
  if (launch.address.empty() && launch.by == LaunchedBy::slurm && !one_node)
    launch.address = first_host(text_of("SLURM_STEP_NODELIST"));
  if (launch.address.empty()) launch.address = "127.0.0.1";
  constexpr int kMostPort = 65'535, kMasterPort = 29'500;
  if (options.port && (*options.port < 1 || *options.port > kMostPort))
    throw ArgumentError(str("Process: port: expected 1 to ", kMostPort, ", got ", *options.port));
  // torchrun's own store may listen on MASTER_PORT.
  launch.port = number_of("MASTER_PORT", 1, kMostPort - 1).value_or(kMasterPort) + 1;
  launch.port = number_of("BRAID_PORT", 1, kMostPort).value_or(launch.port);
  launch.port = options.port.value_or(launch.port);
  launch.interface = options.interface.empty() ? text_of("BRAID_INTERFACE") : options.interface;
  launch.token = options.token.empty() ? text_of("BRAID_TOKEN") : options.token;
  launch.timeout = options.timeout;
  if (const auto seconds = number_of("BRAID_TIMEOUT", 1, 1'000'000);
      seconds && options.timeout == ProcessOptions().timeout)
    launch.timeout = *seconds;
  if (!(launch.timeout > 0))
    throw ArgumentError(str("Process: timeout: expected more than 0 s, got ", launch.timeout));
  return launch;
}

}  // namespace braid::parallel::process
