// The clocks of the ranks, and the exchange of what they recorded.
#include <algorithm>
#include <cstring>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>

#include "distributed/exchange.hpp"
#include "report/ranks.hpp"

namespace braid::parallel {
namespace {

constexpr int kTag = 0x7ace;  // of the messages here

Tensor make_bytes(std::size_t n) {
  return make_tensor({static_cast<std::int64_t>(n)}, DType::uint8, Device());
}

}  // namespace

std::vector<ClockOffset> measure_clocks(ProcessCommunicator& ranks, const HostClock& clock,
                                        int rounds) {
  const Tensor message = make_tensor({1}, DType::int64, Device());
  auto* const time = message.data<std::int64_t>();
  *time = 0;
  if (ranks.rank() != 0) {
    for (int i = 0; i < rounds; ++i) {
      ranks.recv(message, 0, kTag);
      *time = clock();
      ranks.send(message, 0, kTag);
    }
    return {};
  }
  std::vector<ClockOffset> offsets(static_cast<std::size_t>(ranks.size()));
  int refused = -1;
  for (int r = 1; r < ranks.size(); ++r) {
    std::int64_t least = -1;
    for (int i = 0; i < rounds; ++i) {
      const std::int64_t sent = clock();
      ranks.send(message, r, kTag);
      ranks.recv(message, r, kTag);
      const std::int64_t trip = clock() - sent;
      if (!is_time(*time)) refused = r;
      if (refused == r || (least >= 0 && trip >= least)) continue;
      least = trip;
      // The rank read its clock between the two readings here.
      offsets[static_cast<std::size_t>(r)] = {*time - (sent + trip / 2), trip / 2 + 1};
    }
  }
  // after the last message, so that no rank waits
  if (refused >= 0)
    throw CommError(str("DataParallelReport: rank ", refused,
                        ": expected the time of a monotonic clock, got one that is out of range"));
  return offsets;
}

std::vector<RankRun> gather_ranks(ProcessCommunicator& ranks, const RankPart& part,
                                  const HostClock& clock) {
  const auto n = static_cast<std::size_t>(ranks.size());
  std::vector<ClockOffset> clocks;
  std::string refused;  // why rank 0 cannot use what a rank sent; all of it is received anyway
  try {
    clocks = measure_clocks(ranks, clock);
  } catch (const CommError& e) {  // of a rank's clock, or of the communicator: then the next throws
    refused = e.what();
  }
  const std::string mine = encode_rank(part);
  const Tensor size = make_tensor({1}, DType::int64, Device());
  const Tensor sizes = make_tensor({static_cast<std::int64_t>(n)}, DType::int64, Device());
  *size.data<std::int64_t>() = static_cast<std::int64_t>(mine.size());
  ranks.all_gather(sizes, size);
  // All ranks see the same sizes, so that all of them refuse.
  for (std::size_t r = 0; r < n; ++r)
    if (const std::int64_t bytes = sizes.data<const std::int64_t>()[r];
        bytes < 1 || bytes > static_cast<std::int64_t>(kMostRankBytes))
      throw CommError(str("DataParallelReport: rank ", r, ": expected 1 to ", kMostRankBytes,
                          " bytes of spans, got ", bytes));
  if (ranks.rank() != 0) {
    const Tensor sent = make_bytes(mine.size());
    std::memcpy(sent.data<std::uint8_t>(), mine.data(), mine.size());
    ranks.send(sent, 0, kTag);
  }
  std::vector<RankRun> runs;
  for (std::size_t r = 0; ranks.rank() == 0 && r < n; ++r) {
    const auto bytes = static_cast<std::size_t>(sizes.data<const std::int64_t>()[r]);
    const Tensor got = r == 0 ? Tensor() : make_bytes(bytes);
    if (r > 0) ranks.recv(got, static_cast<int>(r), kTag);
    if (!refused.empty()) continue;
    const std::string_view text =
        r == 0 ? std::string_view(mine)
               : std::string_view(reinterpret_cast<const char*>(got.data<const std::uint8_t>()),
                                  bytes);
    try {
      runs.push_back(decode_rank(text, static_cast<int>(r), clocks[r], part.began));
      runs.back().clock_uncertainty += r == 0 ? 0 : part.began_uncertainty;
    } catch (const CommError& e) {
      refused = e.what();
    }
  }
  for (const std::string& reason : distributed::exchange_texts(ranks, refused, "report"))
    if (!reason.empty()) throw CommError(reason);
  return runs;
}

}  // namespace braid::parallel
