#include "process/store_client.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include <braid/core/error.hpp>

namespace braid::parallel::process {
namespace {

constexpr std::size_t kValueAt = 9;  // in an answer, after status and age
constexpr const char* kOtherProtocol = "it sends another protocol";

/// A text of the peer, for an error: without what a terminal would obey.
std::string shown(std::string_view text) {
  std::string safe(text.substr(0, wire::kMaxRefusal));
  for (char& c : safe)
    if (c < ' ' || c > '~') c = '?';
  return safe;
}

/// Whether a request may have this answer.
bool fits(wire::Op op, std::string_view answer) {
  const std::size_t length = answer.size() - kValueAt;
  switch (static_cast<wire::Status>(answer[0])) {
    case wire::Status::value: break;
    case wire::Status::none: return op == wire::Op::get && length == 0;
    case wire::Status::error: return true;
    default: return false;
  }
  switch (op) {
    case wire::Op::get:
    case wire::Op::compare_set: return true;
    case wire::Op::add: return length == 8;
    default: return length == 0;
  }
}

}  // namespace

StoreClient::StoreClient(const Address& address, int port, const std::string& token, int rank,
                         int size, Clock::time_point deadline, double limit)
    : where_(str(address.text, " port ", port)), limit_(limit) {
  wire::check_token(address, token, "connect to");
  const auto fail = [&](const std::string& why) -> CommError {
    return CommError(str("rank ", rank, ": the store of rank 0 at ", where_, ": ", why));
  };
  std::string magic;
  while (magic.empty()) {
    socket_ = connect_to(address, port, deadline);
    try {
      magic = receive(socket_, wire::kMagic.size(), deadline);
    } catch (const CommTimeoutError& e) {
      throw CommTimeoutError(fail(e.what()).what());
    } catch (const CommError& e) {  // closed: a server that has too many peers
      constexpr std::chrono::milliseconds kPause{20};
      if (Clock::now() + kPause >= deadline) throw fail(e.what());
      std::this_thread::sleep_for(kPause);
    }
  }
  if (magic != wire::kMagic) throw fail("another program listens there");
  try {
    const std::string server_nonce = receive(socket_, wire::kNonce, deadline),
                      nonce = wire::random_bytes();
    const auto r = static_cast<std::uint32_t>(rank), n = static_cast<std::uint32_t>(size);
    std::string reply(wire::kMagic);
    wire::put_u32(reply, r);
    wire::put_u32(reply, n);
    reply += nonce + wire::proof(token, "client", server_nonce, nonce, r, n);
    send_all(socket_, reply, deadline);
    if (const char status = receive(socket_, 1, deadline)[0]; status != '\0') {
      const std::uint32_t length =
          status == '\1' ? wire::Reader(receive(socket_, 4, deadline)).u32() : 0;
      if (status != '\1' || length > wire::kMaxRefusal) throw fail(kOtherProtocol);
      throw fail("refused: " + shown(receive(socket_, length, deadline)));
    }
    if (!wire::same_secret(receive(socket_, wire::kProof, deadline),
                           wire::proof(token, "server", server_nonce, nonce, r, n)))
      throw fail("it does not know the token (BRAID_TOKEN)");
  } catch (const CommTimeoutError& e) {
    throw CommTimeoutError(fail(e.what()).what());
  } catch (const CommError& e) {
    if (std::string_view(e.what()).starts_with("rank ")) throw;
    throw fail(e.what());
  }
}

// Not a std::timed_mutex: ThreadSanitizer of clang 14 does not see that it is locked.
class StoreClient::Turn {
 public:
  Turn(StoreClient& of, Clock::time_point deadline) : of_(of) {
    std::unique_lock lock(of.mutex_);
    if (!of.turn_ended_.wait_until(lock, deadline, [&] { return !of.used_; }))
      throw CommError(str("the store of rank 0 at ", of.where_, " is busy"));
    of.used_ = true;
  }
  ~Turn() {
    {
      const std::lock_guard lock(of_.mutex_);
      of_.used_ = false;
    }
    of_.turn_ended_.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  StoreClient& of_;
};

StoreClient::~StoreClient() {
  try {
    (void)request(wire::Op::leave, "leave");
  } catch (...) {  // it has ended already
  }
}

std::string StoreClient::own_address() const { return local_address(socket_).text; }

std::string StoreClient::request(wire::Op op, std::string_view key, std::string_view a,
                                 std::string_view b) {
  if (key.empty() || key.size() > kMaxKey || a.size() > kMaxValue || b.size() > kMaxValue)
    throw ArgumentError(str("store: expected a key of 1 to ", kMaxKey,
                            " bytes and values of at most ", kMaxValue, ", got ", key.size(), ", ",
                            a.size(), " and ", b.size()));
  const Clock::time_point deadline = after(limit_);
  const Turn turn(*this, deadline);
  if (!broken_.empty()) throw CommError(broken_);
  std::string text;
  text += static_cast<char>(op);
  wire::put_text(text, key);
  wire::put_text(text, a);
  wire::put_text(text, b);
  std::string framed;
  wire::put_u32(framed, static_cast<std::uint32_t>(text.size()));
  std::string answer;
  try {
    send_all(socket_, framed + text, deadline);
    const std::uint32_t length = wire::Reader(receive(socket_, 4, deadline)).u32();
    if (length < kValueAt || length > wire::kMaxAnswer) throw CommError(kOtherProtocol);
    answer = receive(socket_, length, deadline);
    if (!fits(op, answer)) throw CommError(kOtherProtocol);
  } catch (const CommError& e) {
    broken_ = str("rank 0, whose store is at ", where_, ", has stopped, died or left: ", e.what());
    socket_.close();
    throw CommError(broken_);
  }
  if (static_cast<wire::Status>(answer[0]) == wire::Status::error)
    throw ArgumentError(str(shown(std::string_view(answer).substr(kValueAt)),
                            " (the store of rank 0 at ", where_, ")"));
  return answer;
}

void StoreClient::set(std::string_view key, std::string_view value) {
  (void)request(wire::Op::set, key, value);
}

std::optional<Store::Entry> StoreClient::get(std::string_view key) {
  const std::string answer = request(wire::Op::get, key);
  if (static_cast<wire::Status>(answer[0]) == wire::Status::none) return {};
  wire::Reader reader(answer);
  reader.u8();
  const auto age = static_cast<double>(reader.u64()) / 1e6;
  return Entry{answer.substr(kValueAt), age};
}

std::string StoreClient::wait(std::string_view key, Clock::time_point deadline) {
  for (auto pause = std::chrono::milliseconds(1);;
       pause = std::min(pause * 2, std::chrono::milliseconds(50))) {
    if (auto entry = get(key)) return std::move(entry->value);
    if (Clock::now() >= deadline)
      throw CommTimeoutError(
          str("store: expected '", key, "' before the deadline, got none from rank 0 at ", where_));
    std::this_thread::sleep_for(pause);
  }
}

std::int64_t StoreClient::add(std::string_view key, std::int64_t delta) {
  std::string number;
  wire::put_u64(number, static_cast<std::uint64_t>(delta));
  const std::string answer = request(wire::Op::add, key, number);
  return static_cast<std::int64_t>(wire::Reader(std::string_view(answer).substr(kValueAt)).u64());
}

std::string StoreClient::compare_set(std::string_view key, std::string_view expected,
                                     std::string_view value) {
  return request(wire::Op::compare_set, key, expected, value).substr(kValueAt);
}

void StoreClient::append(std::string_view key, std::string_view text) {
  (void)request(wire::Op::append, key, text);
}

}  // namespace braid::parallel::process
