// The key-value store of rank 0, its protocol with hostile peers, and who the launcher's variables
// say a process is.
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include <braid/core/internal/io/sha256.hpp>

#include "group.hpp"
#include "process/launcher.hpp"
#include "process/store_client.hpp"
#include "process/store_server.hpp"
#include "processes/collectives.hpp"
#include "ranks.hpp"

namespace braid::test {
namespace {

using namespace parallel::process;
using std::chrono::milliseconds;

const Address kLoopback{"127.0.0.1", true};

Clock::time_point soon(int ms = 2000) { return Clock::now() + milliseconds(ms); }

std::string hex(const std::array<unsigned char, 32>& bytes) {
  std::string text;
  for (const unsigned char b : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[b >> 4];
    text += kDigits[b & 15];
  }
  return text;
}

struct Served {
  std::shared_ptr<MemoryStore> store = std::make_shared<MemoryStore>();
  std::mutex mutex;
  std::vector<int> dead;
  StoreServer server;
  /// `fails`: what is called at a death throws, too.
  explicit Served(int size, const std::string& token = "", double patience = 10, bool fails = false)
      : server(store, {kLoopback, 0, size, token,
                       [this, fails](int rank) {
                         const std::lock_guard lock(mutex);
                         dead.push_back(rank);
                         if (fails) throw ArgumentError("no room");
                       },
                       patience}) {}
  std::unique_ptr<StoreClient> client(int rank, int size, const std::string& token = "") const {
    return std::make_unique<StoreClient>(kLoopback, const_cast<StoreServer&>(server).port(), token,
                                         rank, size, soon(), 2);
  }
};

/// A peer that has proved that it is rank 1 of 3, and then sends what it likes.
Socket greeted(int port, int rank = 1) {
  Socket socket = connect_to(kLoopback, port, soon());
  const std::string hello = receive(socket, wire::kHello, soon());
  const std::string nonce(wire::kNonce, 'n');
  std::string reply(wire::kMagic);
  wire::put_u32(reply, static_cast<std::uint32_t>(rank));
  wire::put_u32(reply, 3);
  reply += nonce + wire::proof("", "client", hello.substr(wire::kMagic.size()), nonce,
                               static_cast<std::uint32_t>(rank), 3);
  send_all(socket, reply, soon());
  (void)receive(socket, 1 + wire::kProof, soon());
  return socket;
}

/// True if the server has closed the connection.
bool closed(const Socket& socket, int ms = 3000) {
  try {
    for (;;) (void)receive(socket, 1, soon(ms));
  } catch (const CommTimeoutError&) {
    return false;
  } catch (const CommError&) {
    return true;
  }
}

}  // namespace

TEST_CASE("store: hashes are those of the standards", "[process][store]") {
  Sha256 hash;
  hash.add("abc", 3);
  CHECK(hash.hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // RFC 4231, cases 1, 2 and 6
  CHECK(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")) ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hex(hmac_sha256("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hex(hmac_sha256(std::string(131, '\xaa'),
                        "Test Using Larger Than Block-Size Key - Hash Key First")) ==
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("store: what one rank sets, the others get", "[process][store]") {
  Served served(3, "secret");
  const auto one = served.client(1, 3, "secret"), two = served.client(2, 3, "secret");
  const std::string big(Store::kMaxValue, 'x');
  one->set("key", "value");
  one->set("big", big);
  CHECK(two->get("key")->value == "value");
  CHECK(two->get("big")->value == big);
  CHECK(!two->get("nothing"));
  CHECK(one->add("count", 2) == 2);
  CHECK(two->add("count", -5) == -3);
  CHECK(one->compare_set("first", "", "a") == "a");
  CHECK(two->compare_set("first", "", "b") == "a");
  CHECK(two->compare_set("first", "a", "c") == "c");
  one->append("list", "1;");
  two->append("list", "2;");
  CHECK(served.store->get("list")->value == "1;2;");
  std::thread late([&] {
    std::this_thread::sleep_for(milliseconds(30));
    served.store->set("late", "here");
  });
  CHECK(two->wait("late", soon()) == "here");
  late.join();
  CHECK(two->get("late")->age < 5);
  CHECK_THROWS_TEXT(CommTimeoutError, "store: expected 'never' before the deadline",
                    two->wait("never", soon(20)));
  CHECK_THROWS_TEXT(ArgumentError, "store: expected a key of 1 to 256 bytes*got 0",
                    one->set("", ""));
  CHECK_THROWS_TEXT(ArgumentError, "store: expected a key*values of at most 65536, got 1, 65537",
                    one->set("k", big + "x"));
  CHECK_THROWS_TEXT(ArgumentError, "store: expected a value of at most 65536 bytes",
                    one->append("big", "x"));
  CHECK_THROWS_TEXT(ArgumentError, "store: add: expected a number at 'key'", one->add("key", 1));
}

TEST_CASE("store: a rank that does not belong to the job is refused", "[process][store]") {
  Served served(3, "secret");
  const auto one = served.client(1, 3, "secret");
  CHECK_THROWS_TEXT(CommError,
                    "rank 2: the store of rank 0 at 127.0.0.1 port *refused: another token",
                    (void)served.client(2, 3, "other"));
  CHECK_THROWS_TEXT(CommError, "refused: rank 2 expects a world of 4, rank 0 one of 3",
                    (void)served.client(2, 4, "secret"));
  CHECK_THROWS_TEXT(CommError, "refused: two processes are rank 1",
                    (void)served.client(1, 3, "secret"));
  CHECK_THROWS_TEXT(CommError, "refused: expected a rank from 1 to 2, got 0",
                    (void)served.client(0, 3, "secret"));
  int port = served.server.port();
  CHECK_THROWS_TEXT(CommError, "rank 0 cannot listen: port * of 127.0.0.1 is in use by another",
                    (void)listen_on(kLoopback, port));
  // beyond loopback: one network, and a token that cannot be guessed, at both ends
  const auto serve = [&](const char* address, const std::string& token) {
    StoreServerOptions options;
    options.address = {address, false};
    options.token = token;
    const StoreServer server(served.store, std::move(options));
  };
  const std::string text = "store: expected a token of at least 32 characters (BRAID_TOKEN*";
  CHECK_THROWS_TEXT(ArgumentError, text + "to listen on 192.0.2.1, got none",
                    serve("192.0.2.1", ""));
  CHECK_THROWS_TEXT(ArgumentError, text + "to listen on 192.0.2.1, got 31",
                    serve("192.0.2.1", std::string(31, 't')));
  CHECK_THROWS_TEXT(ArgumentError, text + "to connect to 192.0.2.1, got none",
                    StoreClient({"192.0.2.1", false}, port, "", 1, 2, soon(), 1));
  for (const char* const any : {"0.0.0.0", "::"})
    CHECK_THROWS_TEXT(ArgumentError,
                      "store: expected one network's*" + std::string(any) + ", which is every one",
                      serve(any, std::string(32, 't')));
  one->set("still", "here");
}

TEST_CASE("store: a server that is not one, or does not answer", "[process][store][once]") {
  int port = 0;
  const Socket listener = listen_on(kLoopback, port);  // accepts nothing
  const auto start = Clock::now();
  CHECK_THROWS_TEXT(CommTimeoutError, "rank 1: the store of rank 0 at *: it does not answer",
                    StoreClient(kLoopback, port, "", 1, 2, soon(100), 1));
  std::thread other([&] {
    const Socket peer(::accept(listener.fd(), nullptr, nullptr));
    const auto next = [&] {
      int fd = -1;
      while ((fd = ::accept(listener.fd(), nullptr, nullptr)) < 0) {}
      return Socket(fd);
    };
    { const Socket full = next(); }  // closed before it says anything: the client tries again
    const Socket second = next();
    send_all(second, "SSH-2.0-Open", soon());  // shorter than a greeting
    std::this_thread::sleep_for(milliseconds(50));
  });
  CHECK_THROWS_TEXT(CommError, "rank 1: the store of rank 0 at *: another program listens there",
                    StoreClient(kLoopback, port, "", 1, 2, soon(), 1));
  other.join();
  int unused = 0;
  { const Socket gone = listen_on(kLoopback, unused); }
  CHECK_THROWS_TEXT(CommTimeoutError, "no answer from 127.0.0.1 port *where rank 0 should listen",
                    StoreClient(kLoopback, unused, "", 1, 2, soon(100), 1));
  CHECK(Clock::now() - start < std::chrono::seconds(5));
}

TEST_CASE("store: hostile peers are disconnected, and others still served",
          "[process][store][once]") {
  Served served(3, "", 0.3);
  const int port = served.server.port();
  const auto good = served.client(2, 3);
  std::mt19937 random(7);
  const auto bytes = [&](std::size_t n) {
    std::string text(n, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  // random bytes instead of a greeting, and after a good one
  for (int i = 0; i < 300; ++i) {
    const Socket peer = connect_to(kLoopback, port, soon());
    try {
      send_all(peer, (i % 2 == 0 ? std::string(wire::kMagic) : "") + bytes(random() % 300), soon());
    } catch (const CommError&) {  // closed already
    }
  }
  for (int i = 0; i < 300; ++i) {
    Socket peer;
    for (int tries = 0; !peer; ++tries) {  // rank 1 of the last round may still be connected
      try {
        peer = greeted(port);
      } catch (const CommError&) {
        expect(tries < 200, "to be connected again");
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    std::string frame;
    std::string request = bytes(random() % 100);
    if (i % 3 == 0) request[0] = static_cast<char>(random() % 8);
    wire::put_u32(frame, i % 5 == 0 ? static_cast<std::uint32_t>(random())
                                    : static_cast<std::uint32_t>(request.size()));
    try {
      send_all(peer, frame + request, soon());
    } catch (const CommError&) {}
  }
  good->set("still", "here");
  CHECK(good->get("still")->value == "here");
  {
    // a length above the limit is refused at once, one of 0 too
    for (const std::uint32_t length : {0u, 0xffffffffu, 200'000u}) {
      std::this_thread::sleep_for(milliseconds(20));
      const Socket peer = greeted(port);
      std::string frame;
      wire::put_u32(frame, length);
      send_all(peer, frame, soon());
      CHECK(closed(peer, 200));
    }
    // a text that is longer than its request
    std::this_thread::sleep_for(milliseconds(20));
    const Socket peer = greeted(port);
    std::string request("\1"), frame;
    wire::put_u32(request, 100);
    wire::put_u32(frame, static_cast<std::uint32_t>(request.size()));
    send_all(peer, frame + request, soon());
    CHECK(closed(peer, 200));
  }
  // slow peers: one that never greets, one that never ends its request
  std::this_thread::sleep_for(milliseconds(20));
  const Socket silent = connect_to(kLoopback, port, soon()), slow = greeted(port);
  send_all(slow, std::string("\x10\0\0", 3), soon());
  CHECK(closed(silent));
  CHECK(closed(slow));
  const auto late = served.client(1, 3);
  late->set("late", "too");
  CHECK(good->get("late")->value == "too");
}

TEST_CASE("store: idle connections do not keep a rank out", "[process][store]") {
  Served served(3);
  const auto good = served.client(2, 3);
  std::vector<Socket> many;
  for (int i = 0; i < 60; ++i) many.push_back(connect_to(kLoopback, served.server.port(), soon()));
  CHECK(closed(many.front()));  // the oldest that has not proved who it is
  const auto late = served.client(1, 3);
  late->set("late", "too");
  CHECK(good->get("late")->value == "too");
  CHECK(!closed(many.back(), 20));
}

TEST_CASE("store: the server tells a death from a farewell", "[process][store]") {
  Served served(3, "", 10, true);
  { const auto leaves = served.client(2, 3); }
  { const Socket dies = greeted(served.server.port()); }
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
    const std::lock_guard lock(served.mutex);
    if (!served.dead.empty()) break;
  }
  {
    const std::lock_guard lock(served.mutex);
    CHECK(served.dead == std::vector<int>{1});
  }
  CHECK(served.server.connected().empty());
  served.client(2, 3)->set("still", "served");
  CHECK(served.store->get("still"));
}

TEST_CASE("store: a rank that has left does not find the store of its old job",
          "[process][store]") {
  auto first = std::make_unique<Served>(3);
  const int port = first->server.port();
  const auto stays = first->client(1, 3);
  { const auto leaves = first->client(2, 3); }
  std::string error;
  std::thread next([&] {
    try {
      StoreClient(kLoopback, port, "", 2, 3, soon(), 2).set("job", "next");
    } catch (const std::exception& e) {
      error = e.what();
    }
  });
  std::this_thread::sleep_for(milliseconds(50));  // rank 0 is slow to leave
  const bool found = first->store->get("job").has_value();
  first.reset();
  const auto store = std::make_shared<MemoryStore>();
  const StoreServer second(store, {kLoopback, port, 3});
  next.join();
  CHECK_FALSE(found);
  CHECK(error.empty());
  CHECK(store->get("job").has_value());
}

TEST_CASE("process: variables and options say who this rank is, or what is wrong",
          "[process][launcher]") {
  constexpr const char* kAll[] = {
      "RANK",         "WORLD_SIZE",   "LOCAL_RANK",           "LOCAL_WORLD_SIZE",
      "MASTER_ADDR",  "MASTER_PORT",  "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
      "PMI_RANK",     "PMI_SIZE",     "BRAID_PORT",           "BRAID_ENGINE",
      "PMIX_RANK",    "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST",
      "BRAID_TIMEOUT"};
  using List = std::vector<std::pair<const char*, const char*>>;
  const auto with = [&](const List& variables, const parallel::ProcessOptions& options = {}) {
    for (const char* name : kAll) ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    return read_launch(options);
  };
  CHECK(with({}).by == LaunchedBy::nobody);
  CHECK(with({}).size == 1);
  const Launch torch = with({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "1234"}});
  CHECK((torch.by == LaunchedBy::variables && torch.rank == 2 && torch.size == 4));
  CHECK((torch.port == 1235 && torch.address == "127.0.0.1"));
  CHECK(with({{"BRAID_PORT", "77"}, {"MASTER_PORT", "1234"}}).port == 77);
  const List open{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  CHECK((with(open).by == LaunchedBy::open_mpi && with(open).rank == 1));
  CHECK(with({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).by == LaunchedBy::mpich);
  const Launch slurm = with({{"SLURM_PROCID", "3"},
                             {"SLURM_STEP_NUM_TASKS", "8"},
                             {"SLURM_STEP_NODELIST", "node[07-12,20],login"}});
  CHECK((slurm.by == LaunchedBy::slurm && slurm.rank == 3 && slurm.address == "node07"));
  const Launch chosen = with(open, {.rank = 4, .size = 5, .port = 99});
  CHECK((chosen.by == LaunchedBy::options && chosen.rank == 4 && chosen.port == 99));
  CHECK(with({{"BRAID_TIMEOUT", "7"}}).timeout == 7);
  CHECK(with({{"BRAID_TIMEOUT", "7"}}, {.timeout = 9}).timeout == 9);

  CHECK_THROWS_TEXT(ArgumentError, "RANK: expected a rank below WORLD_SIZE = 2, got 2",
                    with({{"RANK", "2"}, {"WORLD_SIZE", "2"}}));
  CHECK_THROWS_TEXT(ArgumentError, "WORLD_SIZE: expected it to be set, as RANK is",
                    with({{"RANK", "2"}}));
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"7", "4", "RANK: expected a rank below WORLD_SIZE = 4, got 7"},
      {"two", "2", "RANK: expected a number from 0 to 65535, got 'two'"},
      {"1 ", "2", "RANK: expected a number from 0 to 65535, got '1 '"},
      {"-1", "2", "RANK: expected a number from 0 to 65535, got '-1'"},
      {"0", "0", "WORLD_SIZE: expected a number from 1 to 65536, got '0'"},
      {"0", "99999999999", "WORLD_SIZE: expected a number from 1 to 65536, got '99999999999'"},
      {"", "", "RANK: expected a number, or that it is not set, got ''"},
      {"0", "", "WORLD_SIZE: expected a number, or that it is not set, got ''"}};
  for (const auto& [rank, size, text] : wrong) {
    const List variables{{"RANK", rank}, {"WORLD_SIZE", size}};
    CHECK_THROWS_TEXT(ArgumentError, text, with(variables));
  }
  CHECK_THROWS_TEXT(
      ArgumentError,
      "Process: local_rank: expected a rank below 2, the number of ranks on this host, got 2",
      with({{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"LOCAL_RANK", "2"}, {"LOCAL_WORLD_SIZE", "2"}}));
  CHECK_THROWS_TEXT(ArgumentError, "MASTER_PORT: expected a number from 1 to 65534, got '65535'",
                    with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_PORT", "65535"}}));
  // A manager of processes that does not say how many there are, and a batch file of Slurm.
  CHECK_THROWS_TEXT(ArgumentError,
                    "PMIX_RANK: expected the number of ranks in SLURM_STEP_NUM_TASKS",
                    with({{"PMIX_RANK", "0"}}));
  CHECK(with({{"SLURM_PROCID", "0"}}).by == LaunchedBy::nobody);
  CHECK_THROWS_TEXT(ArgumentError, "Process: expected both rank and size or none",
                    with({}, {.rank = 1}));
  CHECK_THROWS_TEXT(ArgumentError, "Process: expected a rank from 0 to size - 1, got rank 3 of 3",
                    with({}, {.rank = 3, .size = 3}));
  CHECK_THROWS_TEXT(ArgumentError, "BRAID_ENGINE: expected automatic, mpi, gloo or nccl, got 'ib'",
                    with({{"BRAID_ENGINE", "ib"}}));
  CHECK_THROWS_TEXT(ArgumentError, "Process: timeout: expected more than 0 s",
                    with({}, {.timeout = 0}));
  (void)with({});

  parallel::ProcessOptions options;
  options.rank = 0;
  options.size = 2;
  options.engine = parallel::Engine::mpi;
  CHECK_THROWS_TEXT(CommError, "Process: engine mpi: expected mpirun or srun",
                    parallel::Process(options));
  // An engine is asked for, but nobody says who the ranks are: not a world of one.
  using parallel::Engine;
  for (const auto& [engine, name] : {std::pair{Engine::mpi, "mpi"}, std::pair{Engine::gloo, "gloo"},
                                     std::pair{Engine::nccl, "nccl"}}) {
    const std::string text =
        str("Process: engine ", name, ": expected the variables of a launcher (RANK and*got none");
    const parallel::ProcessOptions asked{.engine = engine};
    CHECK_THROWS_TEXT(CommError, text, parallel::Process(asked));
    (void)with({{"BRAID_ENGINE", name}});
    CHECK_THROWS_TEXT(CommError, text, parallel::Process());
  }
  (void)with({});
  CHECK_THROWS_TEXT(
      CommError, "engine nccl: expected a GPU on each rank, got cpu:0 on rank 0",
      parallel::Process(
          {.engine = Engine::nccl, .rank = 0, .size = 1, .device = Device(DeviceType::cpu, 0)}));
  parallel::Process alone({.engine = Engine::gloo, .rank = 0, .size = 1});
  Tensor t = ones({2});
  alone.communicator().all_reduce(t);
  CHECK((alone.size() == 1 && alone.communicator().engine() == "none"));
}

}  // namespace braid::test
