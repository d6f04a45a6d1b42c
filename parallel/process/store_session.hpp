#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "process/store_wire.hpp"

namespace braid::parallel::process {

/// The protocol of one peer of the store, without the socket: bytes in, bytes out.
class StoreSession {
 public:
  /// What the sessions of a server share.
  struct Server {
    MemoryStore& store;
    std::string token;
    int size = 1;  ///< number of ranks
    /// Whether this rank may connect: false if it is connected already.
    std::function<bool(int rank)> admit;
  };

  /// The first bytes to send are the magic and the nonce.
  StoreSession(const Server& server, std::string nonce);

  /// How many bytes to read next, at least 1. No more are kept.
  [[nodiscard]] std::size_t wanted() const;
  /// Takes bytes, at most wanted(). False: the peer is to be disconnected.
  [[nodiscard]] bool take(std::string_view bytes);

  /// What is to be sent. The next request is taken after it is.
  std::string out;
  [[nodiscard]] int rank() const noexcept { return rank_; }  ///< -1 until it has proved who it is
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// To be disconnected once `out` is sent.
  [[nodiscard]] bool refused() const noexcept { return refused_; }
  /// Whether a request is incomplete, or an answer not sent.
  [[nodiscard]] bool busy() const noexcept { return !in_.empty() || !out.empty(); }
  [[nodiscard]] bool starts() const noexcept { return in_.empty(); }

 private:
  /// The length of the message that begins with the bytes so far.
  [[nodiscard]] std::size_t length() const;
  bool greet();
  bool answer(std::string_view request);
  bool refuse(const std::string& why);

  const Server& server_;
  std::string nonce_, in_;
  int rank_ = -1;
  bool left_ = false, refused_ = false;
};

}  // namespace braid::parallel::process
