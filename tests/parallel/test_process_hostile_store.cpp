// The client of the key-value store with hostile servers: whatever they send, and wherever they
// stop, it ends in time with an error that says where the server is.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "group.hpp"
#include "process/store_client.hpp"
#include "processes/collectives.hpp"
#include "ranks.hpp"

namespace braid::test {
namespace {

using namespace parallel::process;
using std::chrono::milliseconds;
using wire::Op;

const Address kLoopback{"127.0.0.1", true};
const std::string kToken = "the token of the job", kServerNonce(wire::kNonce, 's');

Clock::time_point soon(int ms = 5000) { return Clock::now() + milliseconds(ms); }
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string u32(std::size_t value) {
  std::string text;
  wire::put_u32(text, static_cast<std::uint32_t>(value));
  return text;
}

/// The bytes of an answer: its length, its status, an age of 0, a value.
std::string framed(char status, const std::string& value) {
  return u32(9 + value.size()) + status + std::string(8, '\0') + value;
}

/// A server that accepts one connection after another, and does with each what a test says.
class Server {
 public:
  using Script = std::function<void(const Socket&)>;
  Server() : listener_(listen_on(kLoopback, port_)) {}
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string where() const { return str("127.0.0.1 port ", port_); }

  /// Runs f while the server runs the script with each connection, then closes it. A client that
  /// is disconnected early comes again.
  template <class F> void with(const Script& script, const F& f) const {
    std::string failure;
    std::atomic<bool> ends{false};
    std::thread server([&] {
      while (!ends) {
        pollfd p{listener_.fd(), POLLIN, 0};
        if (::poll(&p, 1, 1) <= 0) continue;
        const Socket peer(::accept4(listener_.fd(), nullptr, nullptr, SOCK_NONBLOCK));
        try {
          script(peer);
        } catch (const CommError&) {  // the client has gone
        } catch (const Error& e) {
          failure = e.what();
        }
      }
    });
    f();
    ends = true;
    server.join();
    CHECK(failure.empty());
  }
  [[nodiscard]] std::unique_ptr<StoreClient> client(int deadline_ms = 5000,
                                                    double limit = 5) const {
    return std::make_unique<StoreClient>(kLoopback, port_, kToken, 1, 3, soon(deadline_ms), limit);
  }
  /// Returns the error of connecting, which must be one of communication and name the address.
  [[nodiscard]] std::string refused(const Script& script, int deadline_ms = 5000) const {
    std::string text;
    with(script, [&] { text = error_of([&] { (void)client(deadline_ms); }); });
    return text;
  }
  /// The text of the error of f; "" if there is none.
  template <class F> [[nodiscard]] std::string error_of(const F& f) const {
    try {
      f();
      return {};
    } catch (const CommError& e) {
      return checked(e.what());
    } catch (const ArgumentError& e) {
      return checked(e.what());
    }
  }

 private:
  [[nodiscard]] std::string checked(const std::string& text) const {
    INFO(text);
    CHECK(text.find(where()) != std::string::npos);
    CHECK(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
    CHECK(text.size() < 2000);
    return text;
  }
  int port_ = 0;
  Socket listener_;
};

/// Waits until the client has closed the connection; false if it does not for a second.
bool closed(const Socket& peer) {
  try {
    for (;;) (void)receive(peer, 1, soon(1000));
  } catch (const CommTimeoutError&) {
    return false;
  } catch (const CommError&) {
    return true;
  }
}

/// Sends the first message and returns the client's.
std::string hello(const Socket& peer) {
  send_all(peer, std::string(wire::kMagic) + kServerNonce, soon());
  return receive(peer, wire::kReply, soon());
}
std::string proof_for(const std::string& reply, const std::string& token) {
  const std::string nonce = reply.substr(wire::kMagic.size() + 8, wire::kNonce);
  return wire::proof(token, "server", kServerNonce, nonce, 1, 3);
}
void greet(const Socket& peer) { send_all(peer, '\0' + proof_for(hello(peer), kToken), soon()); }
std::string read_request(const Socket& peer) {
  const std::uint32_t length = wire::Reader(receive(peer, 4, soon())).u32();
  return receive(peer, length, soon());
}

void call(Op op, StoreClient& client) {
  switch (op) {
    case Op::set: return client.set("key", "value");
    case Op::get: return (void)client.get("key");
    case Op::add: return (void)client.add("key", 1);
    case Op::compare_set: return (void)client.compare_set("key", "", "value");
    default: return client.append("key", "value");
  }
}
constexpr Op kOps[] = {Op::set, Op::get, Op::add, Op::compare_set, Op::append};

/// Calls `op` of a client whose server answers with these bytes, then closes. Returns the error.
std::string answered(const Server& server, Op op, const std::string& bytes) {
  std::string text;
  server.with(
      [&](const Socket& peer) {
        greet(peer);
        (void)read_request(peer);
        send_all(peer, bytes, soon());
      },
      [&] {
        const auto client = server.client();
        text = server.error_of([&] { call(op, *client); });
        // a connection that has failed once is not used again
        if (text.find("has stopped, died or left") != std::string::npos)
          CHECK(server.error_of([&] { call(op, *client); }) == text);
      });
  return text;
}

}  // namespace

TEST_CASE("store: hostile servers: a greeting that is wrong, or stops anywhere",
          "[process][store][once]") {
  const Server server;
  const auto start = Clock::now();
  const auto sends = [](const std::string& bytes, bool greets = true) {
    return [=](const Socket& peer) {
      if (greets) (void)hello(peer);
      send_all(peer, bytes, soon());
    };
  };
  const std::string first = std::string(wire::kMagic) + kServerNonce;
  for (std::size_t n = 0; n < first.size(); ++n) {
    // before the magic, as a server with too many peers does: it tries again until the deadline
    const bool again = n < wire::kMagic.size();
    CHECK(matches(server.refused(sends(first.substr(0, n), false), again ? 50 : 5000),
                  again ? "rank 1: the store of rank 0 at *"
                        : "rank 1: the store of rank 0 at *: connection closed"));
  }
  for (std::size_t n = 0; n < 1 + wire::kProof; ++n)
    CHECK(matches(server.refused([&](const Socket& peer) {
      send_all(peer, ('\0' + proof_for(hello(peer), kToken)).substr(0, n), soon());
    }),
                  "connection closed"));
  const std::string refusal = '\1' + u32(10) + "0123456789";
  for (std::size_t n = 0; n < refusal.size(); ++n)
    CHECK(matches(server.refused(sends(refusal.substr(0, n))), "connection closed"));
  CHECK(matches(server.refused(sends(refusal)), "refused: 0123456789"));
  CHECK(matches(server.refused(sends('\1' + u32(14) + "\x1b]0;title\a\n\r\xff\x7f")),
                "refused: ?]0;title?????"));

  // what is too long is not waited for
  for (const std::size_t length : {wire::kMaxRefusal + 1, std::size_t{0x10000000}, ~std::size_t{0}})
    CHECK(matches(server.refused([&](const Socket& peer) {
      (void)hello(peer);
      send_all(peer, '\1' + u32(length), soon());
      expect(closed(peer), "a length above the limit to be refused at once");
    }),
                  "it sends another protocol"));
  for (const char status : {'\2', '\x7f', '\xff'})
    CHECK(matches(server.refused(sends(std::string(600, status))), "it sends another protocol"));

  // servers without the token: another one, the client's own proof, that of another nonce
  CHECK(matches(server.refused([](const Socket& peer) {
    send_all(peer, '\0' + proof_for(hello(peer), "another"), soon());
  }),
                "it does not know the token (BRAID_TOKEN)"));
  CHECK(matches(server.refused([](const Socket& peer) {
    send_all(peer, '\0' + hello(peer).substr(wire::kReply - wire::kProof), soon());
  }),
                "it does not know the token (BRAID_TOKEN)"));
  std::string old;
  server.with([&](const Socket& peer) { old = proof_for(hello(peer), kToken); },
              [&] { (void)server.error_of([&] { (void)server.client(); }); });
  CHECK(matches(server.refused(sends('\0' + old)), "it does not know the token (BRAID_TOKEN)"));

  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(wire::kMagic.size() + random() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 4 == 1) bytes = std::string(wire::kMagic) + bytes;
    if (i % 4 == 2 && !bytes.empty()) bytes[0] = '\1';
    if (i % 4 == 3 && !bytes.empty()) bytes[0] = '\0';
    INFO("random bytes " << i);
    CHECK(!server.refused(sends(bytes, i % 4 >= 2)).empty());
  }
  CHECK(since(start) < 60);
}

TEST_CASE("store: hostile servers: answers that are wrong, or stop anywhere",
          "[process][store][once]") {
  const Server server;
  const std::string died = "rank 0, whose store is at *, has stopped, died or left: ",
                    other = died + "it sends another protocol";
  for (const Op op : kOps) {
    INFO("op " << static_cast<int>(op));
    const std::string value(op == Op::add                            ? 8
                            : op == Op::get || op == Op::compare_set ? 5
                                                                     : 0,
                            'v');
    const std::string good = framed('\0', value);
    CHECK(answered(server, op, good).empty());
    for (std::size_t n = 0; n < good.size(); ++n)
      CHECK(matches(answered(server, op, good.substr(0, n)), died + "connection closed"));
    for (const char status : {'\3', '\x7f', '\xff'})
      CHECK(matches(answered(server, op, framed(status, value)), other));
    CHECK(matches(answered(server, op, framed('\2', "\x1b[2Jno\n")), "?[2Jno? (the store of rank"));
    CHECK(matches(answered(server, op, framed('\2', std::string(Store::kMaxValue, '\a'))), "????"));
    const std::string none = answered(server, op, framed('\1', "")),
                      wrong = answered(server, op, framed('\0', "1234567"));
    if (op == Op::get) CHECK(none.empty());
    else CHECK(matches(none, other));
    if (op == Op::get || op == Op::compare_set) CHECK(wrong.empty());
    else CHECK(matches(wrong, other));
    CHECK(matches(answered(server, op, framed('\1', "x")), other));
  }
  // a length that no answer has is refused at once, before memory is allocated for it
  for (const std::size_t length : {std::size_t{0}, std::size_t{8}, wire::kMaxAnswer + 1,
                                   std::size_t{0x10000000}, ~std::size_t{0}})
    server.with(
        [&](const Socket& peer) {
          greet(peer);
          (void)read_request(peer);
          send_all(peer, u32(length), soon());
          expect(closed(peer), "a length above the limit to be refused at once");
        },
        [&] {
          const auto client = server.client();
          CHECK(matches(server.error_of([&] { (void)client->get("key"); }), other));
        });
  std::mt19937 random(12);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 2 == 0 && bytes.size() > 13) {
      bytes.replace(0, 4, u32(bytes.size() - 4 - random() % 4));
      bytes[4] = static_cast<char>(random() % 4);
    }
    INFO("random bytes " << i);
    (void)answered(server, kOps[static_cast<std::size_t>(i) % 5], bytes);
  }
}

TEST_CASE("store: hostile servers: bytes that come slowly, or not at all",
          "[process][store][once]") {
  const Server server;
  const auto dribbles = [](const Socket& peer, const std::string& bytes) {
    for (const char c : bytes) {
      send_all(peer, std::string(1, c), soon());
      std::this_thread::sleep_for(milliseconds(10));
    }
  };
  const auto start = Clock::now();
  // 40 bytes, and the 64 KiB of an answer, would take 0.4 s and more than 10 minutes
  const std::string first = std::string(wire::kMagic) + kServerNonce;
  CHECK(matches(server.refused([&](const Socket& peer) { dribbles(peer, first); }, 100),
                "rank 1: the store of rank 0 at *: it does not answer"));
  CHECK(matches(server.refused([&](const Socket& peer) { (void)closed(peer); }, 100),
                "it does not answer"));
  const std::function<void(const Socket&)> slow[] = {
      [&](const Socket& peer) { dribbles(peer, framed('\0', std::string(Store::kMaxValue, 'v'))); },
      [&](const Socket& peer) { (void)closed(peer); }};
  for (const auto& script : slow)
    server.with(
        [&](const Socket& peer) {
          greet(peer);
          script(peer);
        },
        [&] {
          const auto client = server.client(5000, 0.1);
          std::string second;
          std::thread waiting([&] { second = text_of([&] { client->set("key", "value"); }); });
          const std::string text = text_of([&] { (void)client->get("key"); });
          waiting.join();
          // one of them has its turn in vain; the other waits for it until its own limit, or learns
          // that the connection has ended
          for (const std::string& t : {text, second}) {
            INFO(t);
            CHECK(t.find(server.where()) != std::string::npos);
          }
          CHECK(matches(text + second, "it does not answer"));
        });
  // a key that is never there
  server.with(
      [&](const Socket& peer) {
        greet(peer);
        for (;;) {
          (void)read_request(peer);
          send_all(peer, framed('\1', ""), soon());
        }
      },
      [&] {
        const auto client = server.client();
        CHECK(matches(server.error_of([&] { (void)client->wait("key", soon(50)); }),
                      "store: expected 'key' before the deadline, got none from rank 0 at"));
      });
  CHECK(since(start) < 5);
}

}  // namespace braid::test
