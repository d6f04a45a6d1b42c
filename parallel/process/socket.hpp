#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "process/store.hpp"

namespace braid::parallel::process {

/// A file descriptor of the system, closed at the end.
class Socket {
 public:
  Socket() noexcept = default;
  explicit Socket(int fd) noexcept : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() { close(); }
  void close() noexcept;
  [[nodiscard]] int fd() const noexcept { return fd_; }
  [[nodiscard]] explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A numeric address. `text` is how it is written: `127.0.0.1`, `::1`.
struct Address {
  std::string text;
  bool loopback = false;
};

/// The address of a host name, a numeric address, or one of this host's network interfaces.
///
/// Throws    CommError
[[nodiscard]] Address resolve(const std::string& host);
/// An address of this host that others may reach: that of its name, or of its first interface that
/// is up; 127.0.0.1 if there is none.
[[nodiscard]] Address outward_address();

/// The address of this host that a connected socket uses.
[[nodiscard]] Address local_address(const Socket& socket);

/// Listens on a port; 0 lets the system choose. Sets `port`.
///
/// Throws    CommError: `port 29501 of 127.0.0.1 is in use …`
[[nodiscard]] Socket listen_on(const Address& address, int& port);
/// Connects, and tries again while nothing listens there.
///
/// Throws    CommTimeoutError
[[nodiscard]] Socket connect_to(const Address& address, int port, Clock::time_point deadline);

/// Send and receive exactly these bytes.
///
/// Throws    CommError: the connection was closed; CommTimeoutError
void send_all(const Socket& socket, std::string_view bytes, Clock::time_point deadline);
[[nodiscard]] std::string receive(const Socket& socket, std::size_t bytes,
                                  Clock::time_point deadline);

}  // namespace braid::parallel::process
