// Process: who this rank is, and its communicator.
#include <braid/parallel/process.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>

#include "process/communicator.hpp"
#include "process/launcher.hpp"
#include "process/module_engine.hpp"
#include "process/nccl_agreement.hpp"
#include "process/store_client.hpp"
#include "process/store_server.hpp"

namespace braid::parallel {
namespace process {
namespace {

/// What rank 0 tells the others under MPI.
struct StoreAddress {
  std::array<char, 64> address{};
  std::array<char, 32> token{};
  std::int64_t port = 0;
};

/// A poll that only has a deadline.
struct DeadlinePoll {
  Clock::time_point deadline;
  [[nodiscard]] BraidEnginePoll poll() {
    return {this, [](void* context) -> std::int32_t {
              return Clock::now() > static_cast<DeadlinePoll*>(context)->deadline ? 1 : 0;
            }};
  }
};

/// Runs f on a thread, and gives up waiting for it at the deadline. The thread is then left behind.
template <class F> auto within(double seconds, const std::string& what, F f) {
  using Result = decltype(f());
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    Result result{};
    std::exception_ptr error;
  };
  const auto state = std::make_shared<State>();
  std::thread([state, f = std::move(f)] {
    Result result{};
    std::exception_ptr error;
    try {
      result = f();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(state->mutex);
    state->result = std::move(result);
    state->error = error;
    state->done = true;
    state->changed.notify_all();
  }).detach();
  std::unique_lock lock(state->mutex);
  if (!state->changed.wait_until(lock, after(seconds), [&] { return state->done; }))
    throw CommTimeoutError(str("Process: ", what, " has not ended within ", seconds_text(seconds)));
  if (state->error) std::rethrow_exception(state->error);
  return std::move(state->result);
}

/// While ranks meet, an error of one may mean that others never come: its engine must not wait for
/// them, as MPI_Finalize does.
class LeavesOnError {
 public:
  explicit LeavesOnError(HostEngine& engine) : engine_(&engine) {}
  ~LeavesOnError() {
    if (engine_ != nullptr) engine_->leave_at_once();
  }
  LeavesOnError(const LeavesOnError&) = delete;
  LeavesOnError& operator=(const LeavesOnError&) = delete;
  void stays() noexcept { engine_ = nullptr; }

 private:
  HostEngine* engine_;
};

std::string host_name() {
  char name[64] = {};
  (void)::gethostname(name, sizeof name - 1);
  return name[0] == '\0' ? "unknown" : name;
}

const char* name_of(Engine engine) {
  constexpr const char* kNames[] = {"automatic", "mpi", "gloo", "nccl"};
  return kNames[static_cast<std::size_t>(engine)];
}

double request_limit(double timeout) { return std::clamp(timeout / 2, 0.5, 60.0); }

}  // namespace
}  // namespace process

using namespace process;

struct Process::State {
  int rank = 0, size = 1, local_rank = 0, local_size = 1;
  Device device;
  double timeout = 600;
  std::shared_ptr<ProcessCommunicator> communicator;
  std::shared_ptr<EngineCommunicator> own;  // the same, if this Process made it
  std::unique_ptr<StoreServer> server;      // on rank 0
  int exceptions = std::uncaught_exceptions();
  bool ended = false;         // in order
  bool waits_at_end = false;  // for all ranks: over MPI

  ~State();

  void start(const ProcessOptions& options);
  std::shared_ptr<Store> meet_by_store(const Launch& launch, std::string& address);
  std::shared_ptr<Store> meet_by_engine(HostEngine& engine, const Launch& launch);
  std::shared_ptr<Store> serve(const Launch& launch, const Address& address, int port,
                               const std::string& token);
  void wait_for_all(Store& store, const Launch& launch, const Address& zero);
  void find_local(const Launch& launch, const std::vector<std::string>& hosts);
  void choose_device(const ProcessOptions& options);
  /// Chooses the device, and whether NCCL is used, together with the other ranks.
  bool prepare_device(const ProcessOptions& options, const Launch& launch, HostEngine& engine);
  static std::unique_ptr<HostEngine> open_mpi(const Launch& launch, const ModuleOptions& module);
};

std::shared_ptr<Store> Process::State::serve(const Launch& launch, const Address& address, int port,
                                             const std::string& token) {
  auto store = std::make_shared<MemoryStore>();
  StoreServerOptions options;
  options.address = address;
  options.port = port;
  options.size = launch.size;
  options.token = token;
  options.died = [store](int dead) { report_death(*store, dead); };
  server = std::make_unique<StoreServer>(store, std::move(options));
  return store;
}

std::shared_ptr<Store> Process::State::meet_by_store(const Launch& launch, std::string& address) {
  const Clock::time_point deadline = after(launch.timeout);
  Address zero = resolve(launch.address);
  if (!launch.interface.empty()) {
    const Address here = resolve(launch.interface);
    address = here.text;
    // A host may know its own name as 127.0.1.1 (Debian's do): the store is at the interface.
    if (launch.rank == 0 || zero.loopback) zero = here;
  }
  std::shared_ptr<Store> store;
  if (launch.rank == 0) {
    address = zero.text;
    store = serve(launch, zero, launch.port, launch.token);
  } else {
    // Of several interfaces, that of the address of rank 0, if nothing is said.
    if (address.empty() && zero.loopback) address = zero.text;
    auto client =
        std::make_shared<StoreClient>(zero, launch.port, launch.token, launch.rank, launch.size,
                                      deadline, request_limit(launch.timeout));
    if (address.empty()) address = client->own_address();
    store = std::move(client);
  }
  wait_for_all(*store, launch, zero);
  return store;
}

void Process::State::wait_for_all(Store& store, const Launch& launch, const Address& zero) {
  const Clock::time_point deadline = after(launch.timeout);
  store.set(str("here/", launch.rank), host_name());
  std::int64_t here = store.add("here", 1);
  for (auto pause = std::chrono::milliseconds(2); here < launch.size;
       pause = std::min(pause * 2, std::chrono::milliseconds(100))) {
    if (Clock::now() < deadline) {
      std::this_thread::sleep_for(pause);
      here = store.add("here", 0);
      continue;
    }
    std::vector<int> missing;
    for (int r = 0; r < launch.size; ++r)
      if (!store.get(str("here/", r))) missing.push_back(r);
    throw CommTimeoutError(str("Process: expected ", launch.size, " ranks (", launch.variable,
                               "), got ", here, " within ", seconds_text(launch.timeout), ": ",
                               ranks_text(missing), missing.size() == 1 ? " has" : " have",
                               " not arrived",
                               zero.loopback ? str("; rank 0 listens on ", zero.text,
                                                   ", for ranks on its own host only: "
                                                   "BRAID_INTERFACE names another address")
                                             : std::string()));
  }
  std::vector<std::string> hosts;
  for (int r = 0; r < launch.size && !(launch.local_rank && launch.local_size); ++r)
    hosts.push_back(store.wait(str("here/", r), deadline));
  find_local(launch, hosts);
}

std::shared_ptr<Store> Process::State::meet_by_engine(HostEngine& engine, const Launch& launch) {
  DeadlinePoll deadline{after(launch.timeout)};
  Scratch scratch;
  Collectives collectives(engine, deadline.poll(), scratch);
  // Ranks on one host meet on its loopback interface.
  std::array<char, 64> host{};
  const std::string name = host_name();
  std::copy(name.begin(), name.end(), host.begin());
  std::vector<std::array<char, 64>> hosts(static_cast<std::size_t>(launch.size));
  StoreAddress store_at;
  std::shared_ptr<Store> store;
  std::string error;
  try {
    collectives.all_gather(host.data(), hosts.data(), host.size());
    if (launch.rank == 0) {
      try {
        Address address{"127.0.0.1", true};
        if (!launch.interface.empty()) address = resolve(launch.interface);
        else if (std::any_of(hosts.begin(), hosts.end(), [&](const auto& h) { return h != host; }))
          address = outward_address();
        const std::string token = wire::random_bytes();
        store = serve(launch, address, 0, token);
        std::copy_n(address.text.begin(),
                    std::min(address.text.size(), store_at.address.size() - 1),
                    store_at.address.begin());
        std::copy(token.begin(), token.end(), store_at.token.begin());
        store_at.port = server->port();
      } catch (const Error& e) {  // the others learn it by the port 0
        error = e.what();
      }
    }
    std::vector<std::string> names;
    for (const auto& h : hosts) names.emplace_back(h.data());
    find_local(launch, names);
    collectives.broadcast(&store_at, sizeof store_at, 0);
  } catch (const Stopped&) {
    throw CommTimeoutError(
        str("Process: the ranks have not met over MPI within ", seconds_text(launch.timeout)));
  }
  if (!error.empty()) throw CommError(error);
  if (store_at.port == 0) throw CommError("Process: rank 0 could not open its store");
  if (launch.rank == 0) return store;
  return std::make_shared<StoreClient>(
      resolve(store_at.address.data()), static_cast<int>(store_at.port),
      std::string(store_at.token.begin(), store_at.token.end()), launch.rank, launch.size,
      after(launch.timeout), request_limit(launch.timeout));
}

void Process::State::find_local(const Launch& launch, const std::vector<std::string>& hosts) {
  local_rank = launch.local_rank.value_or(0);
  local_size = launch.local_size.value_or(1);
  if (hosts.empty()) return;
  const auto r = static_cast<std::size_t>(launch.rank);
  const auto mine = [&](const std::string& host) { return host == hosts[r]; };
  const auto end = hosts.begin() + launch.rank;
  if (!launch.local_rank) local_rank = static_cast<int>(std::count_if(hosts.begin(), end, mine));
  if (!launch.local_size)
    local_size = static_cast<int>(std::count_if(hosts.begin(), hosts.end(), mine));
}

void Process::State::choose_device(const ProcessOptions& options) {
  if (options.device) {
    (void)device_context(*options.device);  // throws DeviceError if there is none
    device = *options.device;
    return;
  }
  std::vector<Device> gpus;
  for (int i = 0; i < device_count(DeviceType::cuda); ++i) gpus.emplace_back(DeviceType::cuda, i);
  if (gpus.empty()) return;
  if (local_rank >= static_cast<int>(gpus.size()))
    throw DeviceError(str("Process: expected a GPU for each of the ", local_rank + 1,
                          " or more ranks of this host, got ", gpus.size()));
  device = gpus[static_cast<std::size_t>(local_rank)];
}

void Process::State::start(const ProcessOptions& options) {
  const Launch launch = read_launch(options);
  rank = launch.rank;
  size = launch.size;
  timeout = launch.timeout;
  if (launch.by == LaunchedBy::nobody && launch.engine != Engine::automatic)
    throw CommError(str("Process: engine ", name_of(launch.engine),
                        ": expected the variables of a launcher (RANK and WORLD_SIZE, or those of "
                        "mpirun or srun) or ProcessOptions::rank and size, got none"));
  if (size == 1) {
    local_rank = launch.local_rank.value_or(0);
    local_size = launch.local_size.value_or(1);
    choose_device(options);
    if (launch.engine == Engine::nccl) {
      const NcclFacts facts = nccl_facts(device, launch.engine);
      if (const NcclAgreement agreement = agree_on_nccl(std::span(&facts, 1));
          !agreement.error.empty())
        throw CommError(agreement.error);
    }
    communicator = own = std::make_shared<EngineCommunicator>(device);
    return;
  }
  const bool by_mpi = launch.by == LaunchedBy::open_mpi || launch.by == LaunchedBy::mpich;
  const bool mpi =
      launch.engine == Engine::mpi ||
      ((launch.engine == Engine::automatic || launch.engine == Engine::nccl) && by_mpi);
  ModuleOptions module;
  module.rank = rank;
  module.size = size;
  module.timeout = timeout;
  CoreOptions core;
  std::unique_ptr<HostEngine> engine;
  if (mpi) {
    engine = open_mpi(launch, module);
  } else {
    const BraidEngineTable& table = open_module("gloo");
    core.store = meet_by_store(launch, module.address);
    module.store = core.store;
    engine = within(timeout, "connecting the ranks over Gloo",
                    [&table, module] { return open_engine(table, module); });
  }
  LeavesOnError leaves(*engine);
  if (mpi) core.store = meet_by_engine(*engine, launch);
  try {
    core.nccl = prepare_device(options, launch, *engine);
  } catch (...) {
    try {
      report_leaving(*core.store, rank, 0);
    } catch (...) {  // the reason why it leaves counts
    }
    throw;
  }
  leaves.stays();
  core.device = device;
  core.timeout = timeout;
  core.waits_at_end = waits_at_end = mpi;  // MPI_Finalize does
  core.check_collectives = options.check_collectives;
  core.engine_name = mpi ? "mpi" : "gloo";
  auto shared = std::make_shared<Core>(std::move(engine), std::move(core));
  shared->start();
  communicator = own = std::make_shared<EngineCommunicator>(std::move(shared));
}

bool Process::State::prepare_device(const ProcessOptions& options, const Launch& launch,
                                    HostEngine& engine) {
  NcclFacts mine;
  std::exception_ptr failure;  // the others hear of it before it is thrown
  try {
    choose_device(options);
    mine = nccl_facts(device, launch.engine);
  } catch (const std::exception& e) {
    failure = std::current_exception();
    mine = failed_facts(e.what());
  }
  std::vector<NcclFacts> all(static_cast<std::size_t>(size));
  DeadlinePoll deadline{after(timeout)};
  Scratch scratch;
  try {
    Collectives(engine, deadline.poll(), scratch).all_gather(&mine, all.data(), sizeof mine);
  } catch (const Stopped&) {
    if (!failure)
      throw CommTimeoutError(
          str("Process: the ranks have not told each other their devices within ",
              seconds_text(timeout)));
  }
  if (failure) std::rethrow_exception(failure);
  const NcclAgreement agreement = agree_on_nccl(all);
  if (!agreement.error.empty()) throw CommError(agreement.error);
  if (rank == 0 && !agreement.warning.empty()) warn(agreement.warning);
  return agreement.nccl;
}

std::unique_ptr<HostEngine> Process::State::open_mpi(const Launch& launch,
                                                     const ModuleOptions& module) {
  if (launch.by != LaunchedBy::open_mpi && launch.by != LaunchedBy::mpich)
    throw CommError(
        str("Process: engine mpi: expected mpirun or srun --mpi to have started this "
            "process, got ",
            *launch.variable == '\0' ? "no launcher" : launch.variable));
  const bool open = launch.by == LaunchedBy::open_mpi;
  const std::string other = open ? "mpi_mpich" : "mpi_openmpi";
  std::string name = open ? "mpi_openmpi" : "mpi_mpich";
  if (!has_module(name) && has_module("mpi_abi")) name = "mpi_abi";  // of either vendor
  if (!has_module(name) && has_module(other))
    throw CommError(str("Process: the launcher is that of ", open ? "Open MPI" : "MPICH", " (",
                        launch.variable, " is set), expected braid_", name,
                        ".so, got only the engine of ", open ? "MPICH" : "Open MPI", ", braid_",
                        other, ".so"));
  const BraidEngineTable& table = open_module(name);
  // MPI_Init under the other vendor's launcher could end the process, so it is not tried.
  const std::string library = library_of(table);
  const bool by_mpirun = std::string_view(launch.variable).starts_with("OMPI_");
  if (name == "mpi_abi" && (by_mpirun || !open) && library.starts_with("Open MPI") != open)
    throw CommError(str("Process: the launcher is that of ", open ? "Open MPI" : "MPICH", " (",
                        launch.variable, " is set), got braid_mpi_abi.so with ", library));
  auto engine =
      within(launch.timeout, "MPI_Init", [&table, module] { return open_engine(table, module); });
  LeavesOnError leaves(*engine);
  if (engine->size() != launch.size || engine->rank() != launch.rank)
    throw CommError(str("Process: expected rank ", launch.rank, " of ", launch.size, " (",
                        launch.variable, "), got rank ", engine->rank(), " of ", engine->size(),
                        " from ", library, ": is the launcher that of another MPI?"));
  leaves.stays();
  return engine;
}

Process::Process(const ProcessOptions& options) : state_(std::make_unique<State>()) {
  state_->start(options);
}

Process::Process(int&, char**&, const ProcessOptions& options) : Process(options) {}

Process::Process(std::shared_ptr<ProcessCommunicator> communicator, int local_rank)
    : state_(std::make_unique<State>()) {
  if (!communicator) throw ArgumentError("Process: expected a communicator, got null");
  state_->rank = communicator->rank();
  state_->size = state_->local_size = communicator->size();
  state_->local_rank = local_rank;
  state_->device = communicator->device();
  state_->communicator = std::move(communicator);
}

Process::~Process() noexcept(false) {
  if (!state_->own) return;
  const bool failed_before = state_->own->failure() != nullptr;
  // Other ranks may wait for this one for ever if it ends by an exception.
  const bool orderly = std::uncaught_exceptions() == state_->exceptions;
  state_->own->shut_down(orderly);
  const std::exception_ptr failure = state_->own->failure();
  state_->ended = orderly && !failure;
  if (!orderly || !failure) return;
  try {
    warn(
        str("Process: rank ", state_->rank, " ends after a failure: ", exception_message(failure)));
  } catch (...) {  // of a warning handler
  }
  // No call is left that could throw it, and not every launcher takes a process that ends without
  // MPI_Finalize for one that has failed.
  if (state_->waits_at_end && !failed_before && std::uncaught_exceptions() == 0)
    std::rethrow_exception(failure);
}

Process::State::~State() {
  if (!server) return;
  // Rank 0 has the store of the others until they have said farewell. After a failure they hear the
  // reason from it, and end.
  const Clock::time_point deadline = after(std::min(timeout, ended ? 60.0 : 1.5));
  while (!server->connected().empty() && Clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::vector<int> there = server->connected();
  if (there.empty() || !ended) return;
  std::sort(there.begin(), there.end());
  try {
    warn(str("Process: rank 0 ends, and with it the store, but ", ranks_text(there),
             there.size() == 1 ? " has" : " have", " not left within ",
             seconds_text(std::min(timeout, 60.0))));
  } catch (...) {  // of a warning handler
  }
}

int Process::rank() const noexcept { return state_->rank; }
int Process::size() const noexcept { return state_->size; }
int Process::local_rank() const noexcept { return state_->local_rank; }
int Process::local_size() const noexcept { return state_->local_size; }
Device Process::device() const noexcept { return state_->device; }
ProcessCommunicator& Process::communicator() const noexcept { return *state_->communicator; }
const std::shared_ptr<ProcessCommunicator>& Process::shared_communicator() const noexcept {
  return state_->communicator;
}

}  // namespace braid::parallel
