#pragma once
#include <memory>
#include <optional>
#include <string>

#include <braid/parallel/process_communicator.hpp>

namespace braid::parallel {

/// What runs the collectives between processes.
enum class Engine : std::uint8_t {
  /// Gloo where RANK and WORLD_SIZE are set, MPI where mpirun or srun started the process; for
  /// tensors of GPUs NCCL, if each rank has a GPU of its own and all have one version of NCCL
  automatic,
  mpi,   ///< tensors of GPUs go through the host
  gloo,  ///< the same
  nccl,  ///< as automatic, and an error if NCCL cannot be used
};

/// The options of a Process. What is not set is taken from the launcher's variables, then from MPI.
struct ProcessOptions {
  Engine engine = Engine::automatic;
  std::optional<int> rank = {}, size = {}, local_rank = {};
  std::string address = {};      ///< host of rank 0, as MASTER_ADDR
  std::optional<int> port = {};  ///< of rank 0's store, as MASTER_PORT or BRAID_PORT
  std::string interface = {};  ///< the network interface or address to listen on; default: loopback
  std::string token = {};      ///< shared secret of the store; needed beyond loopback
  std::optional<Device> device =
      {};                ///< default: cuda:<local rank> where there are GPUs, else cpu:0
  double timeout = 600;  ///< seconds that a collective may take; also BRAID_TIMEOUT
  /// Compare op, shape and dtype of all ranks before each collective. Without it, calls that differ
  /// are undefined.
  bool check_collectives = true;
};

/// This process as one of the ranks of a job. Started without a launcher it is a world of one rank,
/// in which every collective does nothing.
///
///     int main(int argc, char** argv) {
///       parallel::Process process(argc, argv);
///       …
///     }
///
/// Throws    ArgumentError for options or variables that contradict each other (a rank outside of
///           the world), CommError if the variables of a launcher are set and no engine works, or
///           none is set and an engine is asked for, or a rank does not arrive within the timeout,
///           or NCCL is asked for and cannot be used; its text names them
class Process {
 public:
  explicit Process(const ProcessOptions& options = {});
  Process(int& argc, char**& argv, const ProcessOptions& options = {});
  /// A rank of an existing communicator, as for tests with ranks as threads.
  explicit Process(std::shared_ptr<ProcessCommunicator> communicator, int local_rank = 0);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Waits for what is queued and, over MPI, until all ranks end: a rank that computes for long
  /// after its last collective is waited for, one that has not reported for the timeout is not. A
  /// failure is a warning.
  ///
  /// Throws    CommError, CommTimeoutError over MPI, if a rank dies or stops while the others end:
  ///           this program would otherwise end with 0. Not during another exception.
  ~Process() noexcept(false);

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// The rank among those on this host, and their number.
  [[nodiscard]] int local_rank() const noexcept;
  [[nodiscard]] int local_size() const noexcept;
  [[nodiscard]] Device device() const noexcept;
  [[nodiscard]] ProcessCommunicator& communicator() const noexcept;
  [[nodiscard]] const std::shared_ptr<ProcessCommunicator>& shared_communicator() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace braid::parallel
