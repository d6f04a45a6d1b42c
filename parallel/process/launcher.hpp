#pragma once
#include <optional>
#include <string>

#include <braid/parallel/process.hpp>

namespace braid::parallel::process {

/// Who started this process, by the variables that it sets.
enum class LaunchedBy {
  nobody,
  options,    // rank and size are in ProcessOptions
  variables,  // RANK and WORLD_SIZE: torchrun, Kubernetes
  open_mpi,   // mpirun of Open MPI, or srun --mpi=pmix
  mpich,      // mpiexec of MPICH, or srun --mpi=pmi2
  slurm,      // srun without a process manager of MPI
};

struct Launch {
  LaunchedBy by = LaunchedBy::nobody;
  const char* variable = "";  // that says so: for texts
  int rank = 0, size = 1;
  std::optional<int> local_rank = {}, local_size = {};
  Engine engine = Engine::automatic;
  std::string address;  // of rank 0
  int port = 0;
  std::string interface, token;
  double timeout = 600;
};

/// Reads the options, then the variables.
///
/// Throws    ArgumentError if they contradict each other, or are no numbers
[[nodiscard]] Launch read_launch(const ProcessOptions& options);

}  // namespace braid::parallel::process
