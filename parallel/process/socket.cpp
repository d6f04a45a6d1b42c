#include "process/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include <braid/core/error.hpp>

namespace braid::parallel::process {
namespace {

std::string error_text(int number) { return std::generic_category().message(number); }

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Address address_of(const sockaddr* at) {
  char text[INET6_ADDRSTRLEN] = {};
  if (at->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(at);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return {text, (ntohl(v4->sin_addr.s_addr) >> 24) == 127};
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(at);
  ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  return {text, IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr) != 0};
}

/// The addresses of host and port; null if there are none.
Addresses look_up(const std::string& host, int port, bool numeric) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : 0);
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) return nullptr;
  return Addresses(list);
}

/// Calls f(name, address) for each address of an interface that is up, until f returns true.
template <class F> bool any_interface(F&& f) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, &::freeifaddrs);
  for (int family : {AF_INET, AF_INET6})
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next)
      if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == family &&
          (i->ifa_flags & IFF_UP) != 0 && f(i->ifa_name, address_of(i->ifa_addr)))
        return true;
  return false;
}

/// Waits until the socket is ready. False: the deadline has passed.
bool ready(int fd, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd p{fd, events, 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return true;  // the call that follows says what is wrong
  }
}

/// True if the socket is connected to itself: while nothing listens on a port that the system also
/// gives to outgoing connections, it may give the very same one. It would keep rank 0 from it.
bool is_own_peer(int fd) {
  sockaddr_storage here{}, there{};
  socklen_t n = sizeof here, m = sizeof there;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&here), &n) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&there), &m) == 0 && n == m &&
         std::memcmp(&here, &there, n) == 0;
}

/// Closes without a farewell, after which the system would hold the port for a minute.
void reset(Socket& socket) {
  const linger at_once{1, 0};
  (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  socket.close();
}

void set_options(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

void Socket::close() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Address resolve(const std::string& host) {
  Address found;
  if (any_interface([&](const char* name, const Address& address) {
        found = address;
        return host == name;
      }))
    return found;
  const Addresses list = look_up(host, 0, false);
  if (!list)
    throw CommError(str("address: expected a host name, an address or a network interface, got '",
                        host, "', which is not known"));
  for (const addrinfo* i = list.get(); i != nullptr; i = i->ai_next)
    if (i->ai_family == AF_INET) return address_of(i->ai_addr);
  return address_of(list->ai_addr);
}

Address outward_address() {
  char name[256] = {};
  if (::gethostname(name, sizeof name - 1) == 0)
    if (const Addresses list = look_up(name, 0, false))
      for (const addrinfo* i = list.get(); i != nullptr; i = i->ai_next)
        if (const Address a = address_of(i->ai_addr); i->ai_family == AF_INET && !a.loopback)
          return a;
  Address found{"127.0.0.1", true};
  any_interface([&](const char*, const Address& address) {
    if (address.loopback) return false;
    found = address;
    return true;
  });
  return found;
}

Address local_address(const Socket& socket) {
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&at), &length) != 0)
    throw CommError(str("store: a socket without an address: ", error_text(errno)));
  return address_of(reinterpret_cast<const sockaddr*>(&at));
}

Socket listen_on(const Address& address, int& port) {
  const std::string where = str("port ", port, " of ", address.text);
  const Addresses list = look_up(address.text, port, true);
  if (!list) throw CommError(str("store: expected a numeric address, got '", address.text, "'"));
  Socket socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw CommError(str("store: no socket: ", error_text(errno)));
  const int on = 1;  // a port of a job that has just ended can be used
  (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.fd(), list->ai_addr, list->ai_addrlen) != 0 ||
      ::listen(socket.fd(), 1024) != 0) {
    const int error = errno;
    if (error == EADDRINUSE)
      throw CommError(str("store: rank 0 cannot listen: ", where,
                          " is in use by another process; set BRAID_PORT to a free port"));
    throw CommError(str("store: rank 0 cannot listen: ", where, ": ", error_text(error),
                        "; BRAID_INTERFACE names the address or interface of this host"));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    throw CommError(str("store: ", where, ": ", error_text(errno)));
  port = ntohs(bound.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(bound).sin_port
                                          : reinterpret_cast<sockaddr_in6&>(bound).sin6_port);
  return socket;
}

Socket connect_to(const Address& address, int port, Clock::time_point deadline) {
  const Addresses list = look_up(address.text, port, true);
  if (!list) throw CommError(str("store: expected a numeric address, got '", address.text, "'"));
  int error = 0;
  for (auto pause = std::chrono::milliseconds(5);;
       pause = std::min(pause * 2, std::chrono::milliseconds(200))) {
    Socket socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) throw CommError(str("store: no socket: ", error_text(errno)));
    error = ::connect(socket.fd(), list->ai_addr, list->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS && ready(socket.fd(), POLLOUT, deadline)) {
      socklen_t length = sizeof error;
      if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    }
    if (error == 0 && !is_own_peer(socket.fd())) {
      set_options(socket.fd());
      return socket;
    }
    if (error == 0) {
      reset(socket);
      error = ECONNREFUSED;
    }
    if (Clock::now() + pause >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  throw CommTimeoutError(str("no answer from ", address.text, " port ", port,
                             ", where rank 0 should listen: ", error_text(error)));
}

void send_all(const Socket& socket, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
      if (!ready(socket.fd(), POLLOUT, deadline)) throw CommTimeoutError("it does not read");
    } else {
      throw CommError(str("connection closed: ", error_text(errno)));
    }
  }
}

std::string receive(const Socket& socket, std::size_t bytes, Clock::time_point deadline) {
  std::string got(bytes, '\0');
  std::size_t at = 0;
  while (at < bytes) {
    const ssize_t n = ::recv(socket.fd(), got.data() + at, bytes - at, 0);
    if (n > 0) at += static_cast<std::size_t>(n);
    else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
      if (!ready(socket.fd(), POLLIN, deadline)) throw CommTimeoutError("it does not answer");
    } else {
      throw CommError(n == 0 ? std::string("connection closed")
                             : str("connection closed: ", error_text(errno)));
    }
  }
  return got;
}

}  // namespace braid::parallel::process
