#pragma once
#include <condition_variable>
#include <mutex>
#include <string>

#include "process/socket.hpp"
#include "process/store_wire.hpp"

namespace braid::parallel::process {

/// The store of rank 0, as the other ranks use it. A request that is not answered within `limit`
/// seconds, or with what no answer to it can be, ends the connection; every later request throws at
/// once. The server is not trusted: a length is compared with the limits before memory is allocated
/// for it, and a text of the server is printable when it is thrown. Every error says where it is.
class StoreClient final : public Store {
 public:
  /// Throws    CommTimeoutError if rank 0 does not listen before the deadline, CommError if it
  ///           refuses this rank, or does not know the token
  StoreClient(const Address& address, int port, const std::string& token, int rank, int size,
              Clock::time_point deadline, double limit);
  /// Says farewell.
  ~StoreClient() override;

  /// The numeric address of this host on the way to rank 0.
  [[nodiscard]] std::string own_address() const;

  void set(std::string_view key, std::string_view value) override;
  std::optional<Entry> get(std::string_view key) override;
  /// A request that is under way at the deadline is still waited for.
  std::string wait(std::string_view key, Clock::time_point deadline) override;
  std::int64_t add(std::string_view key, std::int64_t delta) override;
  std::string compare_set(std::string_view key, std::string_view expected,
                          std::string_view value) override;
  void append(std::string_view key, std::string_view text) override;

 private:
  /// Returns the answer: status, age, value.
  std::string request(wire::Op op, std::string_view key, std::string_view a = {},
                      std::string_view b = {});
  /// The time in which one thread uses the connection.
  class Turn;

  const std::string where_;
  const double limit_;
  std::mutex mutex_;
  std::condition_variable turn_ended_;
  bool used_ = false;   // by the thread that has the turn; with the mutex
  Socket socket_;       // by turns
  std::string broken_;  // why the connection has ended; likewise
};

}  // namespace braid::parallel::process
