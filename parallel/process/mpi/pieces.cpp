// All-reduce through a network, in pieces of which several are on their way: while the sum of one
// piece is made, others travel in both directions, and a rank whose thread does not run for a
// moment has data in the buffers of the kernel. The same reduce-scatter and all-gather as of one
// large piece, so the same sums.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "process/mpi/mpi.hpp"

namespace braid::parallel::process::mpi {
namespace {

using Clock = std::chrono::steady_clock;

// Measured with two ranks on one core each, through 1 Gbit/s: half the size costs 5 % of the time
// of the wire, twice the size 2 %.
constexpr std::int64_t kPieceBytes = 128 * 1024;  // what two ranks exchange in one message
constexpr std::int64_t kOpenBlocks = 8;
constexpr std::int64_t kMostReceived = std::int64_t{32} << 20;  // bytes of parts, of all blocks
// A rank that waits for the network leaves its core to the computation: it sleeps for half of the
// time that lately passed between two messages, at most for the second of these times. It spins
// where that is less than the first, since a sleep itself takes about as long. Its thread wakes at
// once: a sleeper comes before those that run.
constexpr std::chrono::microseconds kSpin{15}, kMostSleep{500};
constexpr std::chrono::milliseconds kMostGap{1};  // longer ones are waits for a rank

/// A piece of all ranks: rank r sums part r of it.
struct Block {
  std::int64_t begin = 0, count = 0;  // elements
  int parts_out = 0, parts_in = 0;    // open messages
  int sums_out = 0, sums_in = 0;
};

enum class Kind { part_out, part_in, sum_out, sum_in };

struct Message {
  Kind kind;
  std::size_t block;
  std::int64_t bytes;
};

class Pieces {
 public:
  Pieces(Mpi& mpi, const BraidEngineCall& call)
      : mpi_(mpi),
        call_(call),
        in_(static_cast<const char*>(call.in)),
        out_(static_cast<char*>(call.out)),
        unit_(call.element_bytes),
        part_(std::max<std::int64_t>(kPieceBytes / unit_, 1)),
        window_(static_cast<std::size_t>(
            std::clamp<std::int64_t>(kMostReceived / (part_ * unit_ * mpi.size), 2, kOpenBlocks))),
        sources_(static_cast<std::size_t>(mpi.size)) {
    const std::int64_t each = part_ * mpi.size;
    for (std::int64_t at = 0; at < call.count; at += each)
      blocks_.push_back({.begin = at, .count = std::min(each, call.count - at)});
    const auto room = window_ * static_cast<std::size_t>(part_ * unit_ * mpi.size);
    if (mpi.received.size() < room) mpi.received.resize(room);
  }

  void run(const BraidEnginePoll& poll) {
    Clock::time_point last = Clock::now();
    while (closed_ < blocks_.size()) {
      const bool moved = step();
      const Clock::time_point now = Clock::now();
      if (moved) {
        mpi_.gap += (std::min<Clock::duration>(now - last, kMostGap) - mpi_.gap) / 8;
        last = now;
        continue;
      }
      if (poll.stopped(poll.context) != 0) throw Stop{};
      const Clock::duration pause = std::min<Clock::duration>(mpi_.gap / 2, kMostSleep);
      if (pause > kSpin) std::this_thread::sleep_for(pause);
      else if (now - last > kSpin) std::this_thread::sleep_for(kSpin);
    }
  }

 private:
  // Of each block, in this order: the parts are sent and received, the own part is summed and
  // sent, and the sums of the others are received. The same order of blocks on all ranks, so that
  // messages with one tag match.

  /// Does what can be done now. False: nothing.
  bool step() {
    bool moved = false;
    {
      const std::lock_guard lock(mpi_mutex());
      if (mpi_.aborted) throw Stop{};
      for (; opened_ < blocks_.size() && opened_ < closed_ + window_; ++opened_) open(opened_);
      // a sum arrives where a part was sent from, if the call is in place
      for (; expected_ < opened_ && blocks_[expected_].parts_out == 0; ++expected_)
        expect_sums(expected_);
      moved = look();
    }
    if (summed_ < opened_ && blocks_[summed_].parts_in == 0) {
      sum(summed_++);
      moved = true;
    }
    for (; closed_ < std::min(summed_, expected_); ++closed_, moved = true)
      if (const Block& b = blocks_[closed_]; b.sums_out > 0 || b.sums_in > 0) break;
    return moved;
  }

  [[nodiscard]] std::int64_t offset(const Block& b, int rank) const {
    return (b.begin + b.count * rank / mpi_.size) * unit_;
  }
  [[nodiscard]] std::int64_t bytes(const Block& b, int rank) const {
    return offset(b, rank + 1) - offset(b, rank);
  }
  /// Where this rank receives its part from another one.
  [[nodiscard]] char* received(std::size_t block, int rank) const {
    const auto place = static_cast<std::int64_t>(block % window_) * mpi_.size + rank;
    return mpi_.received.data() + place * part_ * unit_;
  }
  /// The i-th other rank. Every rank begins with another one.
  [[nodiscard]] int receiver(int i) const { return (mpi_.rank - i + mpi_.size) % mpi_.size; }
  [[nodiscard]] int sender(int i) const { return (mpi_.rank + i) % mpi_.size; }

  void open(std::size_t index) {
    Block& b = blocks_[index];
    if (const std::int64_t n = bytes(b, mpi_.rank); n > 0)
      for (int i = 1; i < mpi_.size; ++i)
        receive(Kind::part_in, index, received(index, sender(i)), n, sender(i), b.parts_in);
    for (int i = 1; i < mpi_.size; ++i)
      if (const std::int64_t n = bytes(b, receiver(i)); n > 0)
        send(Kind::part_out, index, in_ + offset(b, receiver(i)), n, receiver(i), b.parts_out);
  }

  void expect_sums(std::size_t index) {
    Block& b = blocks_[index];
    for (int i = 1; i < mpi_.size; ++i)
      if (const std::int64_t n = bytes(b, sender(i)); n > 0)
        receive(Kind::sum_in, index, out_ + offset(b, sender(i)), n, sender(i), b.sums_in);
  }

  void sum(std::size_t index) {
    Block& b = blocks_[index];
    const std::int64_t n = bytes(b, mpi_.rank), at = offset(b, mpi_.rank);
    if (n == 0) return;
    for (int r = 0; r < mpi_.size; ++r)
      sources_[static_cast<std::size_t>(r)] = r == mpi_.rank ? in_ + at : received(index, r);
    call_.reducer->combine(call_.reducer->context, sources_.data(), out_ + at, n / unit_);
    const std::lock_guard lock(mpi_mutex());
    for (int i = 1; i < mpi_.size; ++i)
      send(Kind::sum_out, index, out_ + at, n, receiver(i), b.sums_out);
  }

  void send(Kind kind, std::size_t block, const char* data, std::int64_t n, int to, int& open) {
    messages_.push_back({kind, block, -1});
    check("MPI_Isend", MPI_Isend(data, static_cast<int>(n), MPI_BYTE, to,
                                 kind == Kind::part_out ? kPieces : kSums, mpi_.collectives,
                                 &requests_.emplace_back(MPI_REQUEST_NULL)));
    ++open;
  }
  void receive(Kind kind, std::size_t block, char* data, std::int64_t n, int from, int& open) {
    messages_.push_back({kind, block, n});
    check("MPI_Irecv", MPI_Irecv(data, static_cast<int>(n), MPI_BYTE, from,
                                 kind == Kind::part_in ? kPieces : kSums, mpi_.collectives,
                                 &requests_.emplace_back(MPI_REQUEST_NULL)));
    ++open;
  }

  /// Takes note of the messages that are complete. Requires the lock.
  bool look() {
    const auto open = static_cast<int>(requests_.size());
    if (open == 0) return false;
    indices_.resize(requests_.size());
    statuses_.resize(requests_.size());
    int done = 0;
    const int code = MPI_Testsome(open, requests_.data(), &done, indices_.data(), statuses_.data());
    if (code == MPI_ERR_IN_STATUS)
      for (int i = 0; i < done; ++i)
        check("MPI_Testsome", statuses_[static_cast<std::size_t>(i)].MPI_ERROR);
    check("MPI_Testsome", code);
    if (done == 0 || done == MPI_UNDEFINED) return false;
    for (int i = 0; i < done; ++i) {
      const auto place = static_cast<std::size_t>(i);
      const Message& message = messages_[static_cast<std::size_t>(indices_[place])];
      if (message.bytes >= 0) check_size(statuses_[place], message.bytes);
      Block& b = blocks_[message.block];
      switch (message.kind) {
        case Kind::part_out: --b.parts_out; break;
        case Kind::part_in: --b.parts_in; break;
        case Kind::sum_out: --b.sums_out; break;
        case Kind::sum_in: --b.sums_in; break;
      }
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      requests_[kept] = requests_[i];
      messages_[kept++] = messages_[i];
    }
    requests_.resize(kept);
    messages_.resize(kept);
    return true;
  }

  Mpi& mpi_;
  const BraidEngineCall& call_;
  const char* in_;
  char* out_;
  const std::int64_t unit_, part_;  // bytes of an element; elements of a part
  const std::size_t window_;        // open blocks
  std::vector<Block> blocks_;
  // how many blocks have reached each state
  std::size_t opened_ = 0, expected_ = 0, summed_ = 0, closed_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<Message> messages_;  // one for each request
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  std::vector<const void*> sources_;
};

}  // namespace

void reduce_pieces(Mpi& mpi, const BraidEngineCall& call, const BraidEnginePoll& poll) {
  Pieces(mpi, call).run(poll);
}

}  // namespace braid::parallel::process::mpi
