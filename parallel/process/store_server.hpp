#pragma once
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "process/socket.hpp"
#include "process/store_session.hpp"

namespace braid::parallel::process {

struct StoreServerOptions {
  Address address{"127.0.0.1", true};
  int port = 0;  ///< 0: one that is free
  int size = 1;  ///< number of ranks
  std::string token = {};
  /// Called on the server's thread when the connection of a rank ends without a farewell.
  std::function<void(int rank)> died = {};
  /// How long a peer may take to say who it is, and to complete a request.
  double patience = 10;
};

/// Rank 0's end of the store: one thread, which serves the other ranks' requests. Peers that do not
/// know the token, or do not keep to the protocol, are disconnected; what one peer can occupy is
/// limited to one request and one answer.
class StoreServer {
 public:
  /// Throws    ArgumentError beyond loopback without a token, or for an address that is all
  ///           interfaces; CommError if the port is in use
  StoreServer(std::shared_ptr<MemoryStore> store, StoreServerOptions options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;
  [[nodiscard]] int port() const noexcept { return options_.port; }
  /// The ranks that are connected.
  [[nodiscard]] std::vector<int> connected();

 private:
  struct Peer {
    Socket socket;
    StoreSession session;
    Clock::time_point since;  // of its first byte of a request, or of the connection
  };

  void loop();
  void accept_all();
  /// False: the peer is to be disconnected.
  bool serve(Peer& peer, short events);
  bool read(Peer& peer);
  bool flush(Peer& peer);
  /// Counts a rank as connected; false if it is already.
  bool admit(int rank);

  std::shared_ptr<MemoryStore> store_;
  StoreServerOptions options_;
  StoreSession::Server shared_{*store_, options_.token, options_.size,
                               [this](int rank) { return admit(rank); }};
  Socket listener_, wake_;
  std::list<Peer> peers_;  // of the thread
  std::mutex mutex_;
  std::vector<int> connected_;  // with the mutex
  std::set<int> came_;          // of the thread: the ranks that have been connected
  bool all_came_ = false;       // of the thread
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace braid::parallel::process
