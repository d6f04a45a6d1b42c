// Input: any bytes. The store of rank 0 takes them from a peer: as they are; if the first one is
// odd, after a good greeting, so that they are requests; or they are the rank and the size in a
// greeting whose proof is good. Bytes that are no message disconnect the peer, a refusal is an
// answer, and no byte more than the limits is kept.
#include <algorithm>

#include "fuzz.hpp"
#include "process/store_session.hpp"

using namespace braid;
using namespace braid::parallel::process;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const bool greeted = data[0] % 2 != 0, names_rank = data[0] % 4 == 2 && size >= 10;
  const std::size_t most = 1 + data[1];  // bytes at a time
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);

  MemoryStore store;
  const StoreSession::Server server{store, "token", 3, [](int rank) { return rank == 1; }};
  const std::string nonce(wire::kNonce, 's'), mine(wire::kNonce, 'c');
  StoreSession session(server, nonce);
  fuzz::require(session.out == std::string(wire::kMagic) + nonce);
  session.out.clear();
  if (greeted || names_rank) {
    wire::Reader reader(rest);
    const std::uint32_t rank = greeted ? 1 : reader.u32(), ranks = greeted ? 3 : reader.u32();
    std::string reply(wire::kMagic);
    wire::put_u32(reply, rank);
    wire::put_u32(reply, ranks);
    reply += mine + wire::proof("token", "client", nonce, mine, rank, ranks);
    fuzz::require(session.wanted() == wire::kReply && session.take(reply));
    const bool good = rank == 1 && ranks == 3;
    fuzz::require(session.rank() == (good ? 1 : -1) && session.refused() == !good);
    fuzz::require(good ? session.out.size() == 1 + wire::kProof
                       : session.out.size() > 5 && session.out.size() <= 5 + wire::kMaxRefusal);
    session.out.clear();
  }
  while (!rest.empty() && !session.refused()) {
    fuzz::require(session.wanted() > 0 && session.wanted() <= 4 + wire::kMaxRequest);
    const std::string_view bytes = rest.substr(0, std::min(most, session.wanted()));
    rest.remove_prefix(bytes.size());
    if (!session.take(bytes)) break;
    fuzz::require(session.out.size() <= 4 + wire::kMaxAnswer);
    if (session.rank() < 0)  // nobody can prove that he knows the token
      fuzz::require(session.out.empty() || session.refused());
    else if (!session.out.empty() && session.out.size() >= 4)  // the answer is a whole one
      fuzz::require(wire::Reader(session.out).u32() == session.out.size() - 4);
    session.out.clear();
  }
  return 0;
}
