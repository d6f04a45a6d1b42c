#include "process/store_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>

#include <braid/core/error.hpp>

namespace braid::parallel::process {

StoreServer::StoreServer(std::shared_ptr<MemoryStore> store, StoreServerOptions options)
    : store_(std::move(store)), options_(std::move(options)) {
  if (options_.address.text == "0.0.0.0" || options_.address.text == "::")
    throw ArgumentError(
        str("store: expected one network's interface or address (BRAID_INTERFACE), "
            "got ",
            options_.address.text, ", which is every one"));
  wire::check_token(options_.address, options_.token, "listen on");
  listener_ = listen_on(options_.address, options_.port);
  wake_ = Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) throw CommError(str("store: no eventfd: error ", errno));
  thread_ = std::thread([this] { loop(); });
}

StoreServer::~StoreServer() {
  stop_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.fd(), &one, sizeof one);
  thread_.join();
}

std::vector<int> StoreServer::connected() {
  const std::lock_guard lock(mutex_);
  return connected_;
}

void StoreServer::loop() {
  std::vector<pollfd> polled;
  while (!stop_) {
    try {
      polled.assign({{wake_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}});
      for (const Peer& peer : peers_)
        polled.push_back(
            {peer.socket.fd(), static_cast<short>(peer.session.out.empty() ? POLLIN : POLLOUT), 0});
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    if (::poll(polled.data(), polled.size(), 500) < 0 && errno != EINTR) return;
    const auto now = Clock::now();
    std::size_t i = 2;
    for (auto peer = peers_.begin(); peer != peers_.end(); ++i) {
      const short events = polled[i].revents;
      bool stays = events == 0;
      try {
        stays = stays || serve(*peer, events);
      } catch (const std::exception&) {  // no memory
        stays = false;
      }
      // A peer that is idle between two requests is not in a hurry.
      const bool waits = peer->session.rank() >= 0 && !peer->session.busy();
      if (!waits && std::chrono::duration<double>(now - peer->since).count() > options_.patience)
        stays = false;
      if (stays) {
        ++peer;
        continue;
      }
      const int rank = peer->session.rank();
      const bool left = peer->session.left();
      peer = peers_.erase(peer);
      if (rank < 0) continue;
      {
        const std::lock_guard lock(mutex_);
        std::erase(connected_, rank);
      }
      try {
        if (!left && options_.died) options_.died(rank);
      } catch (const std::exception&) {  // the others find it by their deadline
      }
    }
    try {
      if (polled[1].revents != 0) accept_all();
    } catch (const std::exception&) {  // no memory, or no random bytes: that peer is disconnected
    }
  }
}

void StoreServer::accept_all() {
  // Every rank, and some that are not one.
  const std::size_t most = 2 * static_cast<std::size_t>(options_.size) + 16;
  for (;;) {
    Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    if (peers_.size() >= most) {
      // Idle connections do not keep a rank out: the oldest that has not proved who it is goes.
      const auto oldest = std::find_if(peers_.begin(), peers_.end(),
                                       [](const Peer& p) { return p.session.rank() < 0; });
      if (oldest == peers_.end()) continue;
      peers_.erase(oldest);
    }
    peers_.push_back(
        {std::move(socket), StoreSession(shared_, wire::random_bytes()), Clock::now()});
  }
}

bool StoreServer::serve(Peer& peer, short events) {
  if (!peer.session.out.empty()) return flush(peer);
  if ((events & POLLIN) == 0) return false;
  return read(peer) && (peer.session.out.empty() || flush(peer));
}

bool StoreServer::flush(Peer& peer) {
  std::string& out = peer.session.out;
  const ssize_t n = ::send(peer.socket.fd(), out.data(), out.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  out.erase(0, static_cast<std::size_t>(n));
  return !(out.empty() && peer.session.refused());
}

bool StoreServer::read(Peer& peer) {
  char bytes[16 * 1024];
  const ssize_t n =
      ::recv(peer.socket.fd(), bytes, std::min(sizeof bytes, peer.session.wanted()), 0);
  if (n == 0) return false;
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (peer.session.starts() && peer.session.rank() >= 0) peer.since = Clock::now();
  if (!peer.session.take({bytes, static_cast<std::size_t>(n)})) return false;
  // No rank is still to come. One that leaves may already begin the next job on this port: until
  // rank 0 does so too, it must not find this store.
  if (peer.session.left() && all_came_) listener_.close();
  if (!peer.session.out.empty()) peer.since = Clock::now();  // to send the answer
  return true;
}

bool StoreServer::admit(int rank) {
  const std::lock_guard lock(mutex_);
  if (std::find(connected_.begin(), connected_.end(), rank) != connected_.end()) return false;
  connected_.push_back(rank);
  came_.insert(rank);
  all_came_ = came_.size() + 1 == static_cast<std::size_t>(options_.size);
  return true;
}

}  // namespace braid::parallel::process
