#include "process/store_session.hpp"

#include <braid/core/error.hpp>

namespace braid::parallel::process {

StoreSession::StoreSession(const Server& server, std::string nonce)
    : out(std::string(wire::kMagic) + nonce), server_(server), nonce_(std::move(nonce)) {}

std::size_t StoreSession::length() const {
  if (rank_ < 0) return wire::kReply;
  return in_.size() < 4 ? 4 : 4 + std::size_t{wire::Reader(in_).u32()};
}

std::size_t StoreSession::wanted() const { return length() - in_.size(); }

bool StoreSession::take(std::string_view bytes) {
  const std::size_t whole = length();
  in_ += bytes;
  if (in_.size() < whole) return true;
  if (rank_ < 0) return greet();
  if (whole == 4) {  // the length is complete
    const std::uint32_t rest = wire::Reader(in_).u32();
    return rest > 0 && rest <= wire::kMaxRequest;
  }
  const std::string request = std::move(in_);
  in_.clear();
  return answer(std::string_view(request).substr(4));
}

bool StoreSession::refuse(const std::string& why) {
  refused_ = true;
  out = '\1';
  wire::put_text(out, std::string_view(why).substr(0, wire::kMaxRefusal));
  return true;
}

bool StoreSession::greet() {
  wire::Reader reader(in_);
  if (!std::string_view(in_).starts_with(wire::kMagic)) return false;
  reader.u64();
  const std::uint32_t rank = reader.u32(), size = reader.u32();
  const std::string nonce(reader.rest().substr(0, wire::kNonce)),
      got(reader.rest().substr(wire::kNonce));
  in_.clear();
  if (!wire::same_secret(got, wire::proof(server_.token, "client", nonce_, nonce, rank, size)))
    return refuse("another token (BRAID_TOKEN) than rank 0 has");
  if (static_cast<int>(size) != server_.size)
    return refuse(
        str("rank ", rank, " expects a world of ", size, ", rank 0 one of ", server_.size));
  if (rank == 0 || rank >= size)
    return refuse(str("expected a rank from 1 to ", size - 1, ", got ", rank));
  if (!server_.admit(static_cast<int>(rank))) return refuse(str("two processes are rank ", rank));
  rank_ = static_cast<int>(rank);
  out = '\0' + wire::proof(server_.token, "server", nonce_, nonce, rank, size);
  return true;
}

bool StoreSession::answer(std::string_view request) {
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
      case Op::set: server_.store.set(key, a); break;
      case Op::get:
        if (auto entry = server_.store.get(key)) {
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
        wire::put_u64(value, static_cast<std::uint64_t>(server_.store.add(key, delta)));
        break;
      }
      case Op::compare_set: value = server_.store.compare_set(key, a, b); break;
      case Op::append: server_.store.append(key, a); break;
      case Op::leave: left_ = true; break;
      default: return false;
    }
  } catch (const ArgumentError& e) {
    status = Status::error;
    value = e.what();
  }
  wire::put_u32(out, static_cast<std::uint32_t>(9 + value.size()));
  out += static_cast<char>(status);
  wire::put_u64(out, age);
  out += value;
  return true;
}

}  // namespace braid::parallel::process
