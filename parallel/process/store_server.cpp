#include "process/store_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <braid/core/error.hpp>

#include "process/store_wire.hpp"

namespace braid::parallel::process {

StoreServer::StoreServer(std::shared_ptr<MemoryStore> store, StoreServerOptions options)
    : store_(std::move(store)), options_(std::move(options)) {
  if (!options_.address.loopback && options_.token.empty())
    throw ArgumentError(
        str("store: expected a token (BRAID_TOKEN, the same on all ranks) to "
            "listen on ",
            options_.address.text, ", got none"));
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
    polled.assign({{wake_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}});
    for (const Peer& peer : peers_)
      polled.push_back(
          {peer.socket.fd(), static_cast<short>(peer.out.empty() ? POLLIN : POLLOUT), 0});
    if (::poll(polled.data(), polled.size(), 500) < 0 && errno != EINTR) return;
    const auto now = Clock::now();
    std::size_t i = 2;
    for (auto peer = peers_.begin(); peer != peers_.end(); ++i) {
      const short events = polled[i].revents;
      bool stays = events == 0;
      try {
        stays = stays || serve(*peer, events);
      } catch (const std::bad_alloc&) {
        stays = false;
      }
      // A peer that is idle between two requests is not in a hurry.
      const bool waits = peer->rank >= 0 && peer->in.empty() && peer->out.empty();
      if (!waits && std::chrono::duration<double>(now - peer->since).count() > options_.patience)
        stays = false;
      if (stays) {
        ++peer;
        continue;
      }
      const int rank = peer->rank;
      const bool left = peer->left;
      peer = peers_.erase(peer);
      if (rank < 0) continue;
      {
        const std::lock_guard lock(mutex_);
        std::erase(connected_, rank);
      }
      if (!left && options_.died) options_.died(rank);
    }
    if (polled[1].revents != 0) accept_all();
  }
}

void StoreServer::accept_all() {
  // Every rank, and some that are not one.
  const std::size_t most = 2 * static_cast<std::size_t>(options_.size) + 16;
  for (;;) {
    Socket socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) return;
    if (peers_.size() >= most) continue;
    Peer peer;
    peer.socket = std::move(socket);
    peer.nonce = wire::random_bytes();
    peer.out = std::string(wire::kMagic) + peer.nonce;
    peer.since = Clock::now();
    peers_.push_back(std::move(peer));
  }
}

bool StoreServer::serve(Peer& peer, short events) {
  if (!peer.out.empty()) return flush(peer);
  if ((events & POLLIN) == 0) return false;
  return read(peer) && (peer.out.empty() || flush(peer));
}

bool StoreServer::flush(Peer& peer) {
  const ssize_t n = ::send(peer.socket.fd(), peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  peer.out.erase(0, static_cast<std::size_t>(n));
  return !(peer.out.empty() && peer.refused);
}

bool StoreServer::read(Peer& peer) {
  std::size_t wanted = wire::kReply;
  if (peer.rank >= 0)  // the length, then the rest
    wanted = peer.in.size() < 4 ? 4 : 4 + std::size_t{wire::Reader(peer.in).u32()};
  char bytes[16 * 1024];
  const ssize_t n =
      ::recv(peer.socket.fd(), bytes, std::min(sizeof bytes, wanted - peer.in.size()), 0);
  if (n == 0) return false;
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (peer.in.empty() && peer.rank >= 0) peer.since = Clock::now();
  peer.in.append(bytes, static_cast<std::size_t>(n));
  if (peer.in.size() < wanted) return true;
  if (peer.rank < 0) return greet(peer);
  if (wanted == 4) {
    const std::uint32_t length = wire::Reader(peer.in).u32();
    return length > 0 && length <= wire::kMaxRequest;
  }
  const std::string request = std::move(peer.in);
  peer.in.clear();
  peer.since = Clock::now();
  return answer(peer, std::string_view(request).substr(4));
}

void StoreServer::refuse(Peer& peer, const std::string& why) {
  peer.refused = true;
  peer.out = '\1';
  wire::put_text(peer.out, std::string_view(why).substr(0, wire::kMaxRefusal));
}

bool StoreServer::greet(Peer& peer) {
  wire::Reader reader(peer.in);
  const std::string_view all = peer.in;
  if (!all.starts_with(wire::kMagic)) return false;
  reader.u64();
  const std::uint32_t rank = reader.u32(), size = reader.u32();
  const std::string nonce(reader.rest().substr(0, wire::kNonce)),
      got(reader.rest().substr(wire::kNonce));
  const std::string want = wire::proof(options_.token, "client", peer.nonce, nonce, rank, size);
  peer.in.clear();
  if (!wire::same_secret(got, want)) {
    refuse(peer, "another token (BRAID_TOKEN) than rank 0 has");
    return true;
  }
  if (static_cast<int>(size) != options_.size) {
    refuse(peer,
           str("rank ", rank, " expects a world of ", size, ", rank 0 one of ", options_.size));
    return true;
  }
  if (rank == 0 || rank >= size) {
    refuse(peer, str("expected a rank from 1 to ", size - 1, ", got ", rank));
    return true;
  }
  {
    const std::lock_guard lock(mutex_);
    if (std::find(connected_.begin(), connected_.end(), static_cast<int>(rank)) !=
        connected_.end()) {
      refuse(peer, str("two processes are rank ", rank));
      return true;
    }
    connected_.push_back(static_cast<int>(rank));
  }
  peer.rank = static_cast<int>(rank);
  peer.out = '\0' + wire::proof(options_.token, "server", peer.nonce, nonce, rank, size);
  return true;
}

bool StoreServer::answer(Peer& peer, std::string_view request) {
  using wire::Op;
  using wire::Status;
  wire::Reader reader(request);
  const auto op = static_cast<Op>(reader.u8());
  const std::string_view key = reader.text(Store::kMaxKey), a = reader.text(Store::kMaxValue),
                         b = reader.text(Store::kMaxValue);
  if (reader.bad() || !reader.rest().empty()) return false;
  Status status = Status::value;
  std::string value;
  std::uint64_t age = 0;
  try {
    switch (op) {
      case Op::set: store_->set(key, a); break;
      case Op::get:
        if (auto entry = store_->get(key)) {
          value = std::move(entry->value);
          age = static_cast<std::uint64_t>(entry->age * 1e6);
        } else {
          status = Status::none;
        }
        break;
      case Op::add: {
        wire::Reader number(a);
        const auto delta = static_cast<std::int64_t>(number.u64());
        if (number.bad()) return false;
        wire::put_u64(value, static_cast<std::uint64_t>(store_->add(key, delta)));
        break;
      }
      case Op::compare_set: value = store_->compare_set(key, a, b); break;
      case Op::append: store_->append(key, a); break;
      case Op::leave: peer.left = true; break;
      default: return false;
    }
  } catch (const ArgumentError& e) {
    status = Status::error;
    value = e.what();
  }
  wire::put_u32(peer.out, static_cast<std::uint32_t>(9 + value.size()));
  peer.out += static_cast<char>(status);
  wire::put_u64(peer.out, age);
  peer.out += value;
  return true;
}

}  // namespace braid::parallel::process
