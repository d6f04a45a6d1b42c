// Runs one block at a time. Each thread runs until it waits for others or ends.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "ptx/threads.hpp"

namespace ptx {

namespace {

constexpr unsigned kWarp = 32;

/// Memory of one kind for all threads. Each part is aligned to 64 bytes.
class Memory {
 public:
  Memory(unsigned bytes, std::size_t parts)
      : bytes_(bytes), stride_((bytes + 63) / 64 * 64), data_(stride_ * parts + 64) {
    const auto address = reinterpret_cast<std::uint64_t>(data_.data());
    begin_ = data_.data() + (64 - address % 64) % 64;
  }
  [[nodiscard]] Window part(std::size_t i) const { return {begin_ + stride_ * i, bytes_}; }
  /// Values that nobody has written must not look like a result.
  void fill(int value) { std::memset(begin_, value, data_.size() - 64); }

 private:
  unsigned bytes_;
  std::size_t stride_;
  std::vector<char> data_;
  char* begin_;
};

class Grid {
 public:
  Grid(const Program& program, const Launch& launch, void** arguments)
      : program_(program),
        launch_(launch),
        arguments_(arguments),
        size_(std::size_t(launch.block.x) * launch.block.y * launch.block.z),
        registers_(static_cast<std::size_t>(program.registers) * size_, 0xeeeeeeeeeeeeeeee),
        shared_(program.shared_bytes + launch.dynamic_shared, 1),
        local_(program.local_bytes, size_),
        param_(program.parameter_bytes, size_),
        threads_(size_),
        turns_(size_),
        random_(launch.seed) {
    if (size_ == 0 || size_ > 1024) throw Error("a block of " + std::to_string(size_) + " threads");
    std::iota(turns_.begin(), turns_.end(), std::size_t(0));
    if (launch.order == Order::reverse) std::reverse(turns_.begin(), turns_.end());
    for (std::size_t k = 0; k < size_; ++k) {
      threads_[k].r = &registers_[static_cast<std::size_t>(program.registers) * k];
      for (const auto& [number, value] : program.constants) threads_[k].r[number] = value;
    }
  }

  std::uint64_t run() {
    const std::uint64_t blocks = std::uint64_t(launch_.grid.x) * launch_.grid.y * launch_.grid.z;
    std::uint64_t step = launch_.order == Order::random ? random_() % blocks + 1 : 1;
    while (std::gcd(step, blocks) > 1) ++step;  // each block runs once
    for (std::uint64_t k = 0; k < blocks; ++k) {
      const std::uint64_t b = launch_.order == Order::reverse ? blocks - 1 - k : k * step % blocks;
      block_ = {static_cast<unsigned>(b % launch_.grid.x),
                static_cast<unsigned>(b / launch_.grid.x % launch_.grid.y),
                static_cast<unsigned>(b / launch_.grid.x / launch_.grid.y)};
      begin();
      while (left_ > 0) {
        if (launch_.order == Order::random) std::shuffle(turns_.begin(), turns_.end(), random_);
        const bool ran = turn(), met = warps(), opened = barrier();
        if (!ran && !met && !opened) fail_deadlock();
      }
    }
    return count_;
  }

 private:
  void begin();
  bool turn();
  bool warps();
  bool barrier();
  [[noreturn]] void fail(const Thread& t, const std::string& what) const;
  [[noreturn]] void fail_deadlock() const;

  const Program& program_;
  const Launch& launch_;
  void** arguments_;
  std::size_t size_;
  std::vector<std::uint64_t> registers_;
  Memory shared_, local_, param_;
  std::vector<Thread> threads_;
  std::vector<std::size_t> turns_;
  std::minstd_rand random_;
  Dim block_{};
  std::size_t left_ = 0;
  std::uint64_t count_ = 0;
};

void Grid::fail(const Thread& t, const std::string& what) const {
  throw Error(what + " in " + program_.name + ", block " + std::to_string(block_.x) + "," +
              std::to_string(block_.y) + "," + std::to_string(block_.z) + ", thread " +
              std::to_string(t.index) + ": " + program_.lines[static_cast<std::size_t>(t.pc)]);
}

void Grid::fail_deadlock() const {
  for (const Thread& t : threads_)
    if (t.state != State::over) fail(t, "deadlock");
  throw Error("deadlock");
}

void Grid::begin() {
  const Dim &block = launch_.block, &grid = launch_.grid;
  const Place& at = program_.place;
  shared_.fill(0xff), local_.fill(0xcd);
  left_ = size_;
  for (std::size_t k = 0; k < size_; ++k) {
    Thread& t = threads_[k];
    t.pc = 0, t.index = static_cast<int>(k), t.carry = false, t.state = State::runs, t.group = 0;
    t.acquired = 0;
    t.shared = shared_.part(0), t.local = local_.part(k), t.param = param_.part(k);
    t.copies.clear();
    for (std::size_t p = 0; p < program_.parameters.size(); ++p)
      std::memcpy(t.param.data + program_.parameters[p].offset, arguments_[p],
                  program_.parameters[p].size);
    const auto set = [&](const std::array<int, 3>& registers, std::size_t x, std::size_t y,
                         std::size_t z) {
      t.r[registers[0]] = x, t.r[registers[1]] = y, t.r[registers[2]] = z;
    };
    set(at.tid, k % block.x, k / block.x % block.y, k / block.x / block.y);
    set(at.ntid, block.x, block.y, block.z);
    set(at.ctaid, block_.x, block_.y, block_.z);
    set(at.nctaid, grid.x, grid.y, grid.z);
    t.r[at.laneid] = k % kWarp;
  }
}

bool Grid::turn() {
  const Instruction* const code = program_.code.data();
  bool moved = false;
  for (const std::size_t k : turns_) {
    Thread& t = threads_[k];
    if (t.state != State::runs) continue;
    moved = true;
    try {
      for (Next next = Next::go_on; next == Next::go_on || next == Next::jump;) {
        const Instruction& i = code[t.pc];
        ++count_;
        next = i.guard >= 0 && (t.r[i.guard] != 0) == i.unless ? Next::go_on : i.run(t, i);
        if (next == Next::go_on) ++t.pc;
      }
      if (t.state == State::over) --left_;
    } catch (const Error& e) {
      fail(t, e.what());
    }
  }
  return moved;
}

bool Grid::warps() {
  bool moved = false;
  for (std::size_t first = 0; first < size_; first += kWarp) {
    const auto count = static_cast<unsigned>(std::min<std::size_t>(kWarp, size_ - first));
    Thread* const warp = &threads_[first];
    for (unsigned l = 0; l < count; ++l) {
      const Thread& t = warp[l];
      if (t.state != State::in_warp) continue;
      const std::uint32_t mask = count < kWarp ? t.mask & ((1u << count) - 1) : t.mask;
      if ((mask >> l & 1) == 0) fail(t, "the lane is not in its mask");
      bool all = true;
      for (unsigned j = 0; j < count && all; ++j) {
        if ((mask >> j & 1) == 0) continue;
        if (warp[j].state == State::over) fail(t, "a lane of the mask has ended");
        all = warp[j].state == State::in_warp && warp[j].pc == t.pc && warp[j].mask == t.mask;
      }
      if (!all) continue;
      try {
        meet(program_.code[static_cast<std::size_t>(t.pc)], warp, count, mask);
      } catch (const Error& e) {
        fail(t, e.what());
      }
      for (unsigned j = 0; j < count; ++j)
        if ((mask >> j & 1) != 0) warp[j].state = State::runs, ++warp[j].pc;
      moved = true;
    }
  }
  return moved;
}

/// A barrier opens when all threads that have not ended have arrived, or as many as it specifies.
bool Grid::barrier() {
  const auto kind = [&](const Thread& t) {
    return static_cast<WarpOp>(program_.code[static_cast<std::size_t>(t.pc)].kind);
  };
  std::size_t waiting = 0;
  const Thread* one = nullptr;
  for (const Thread& t : threads_) {
    if (t.state != State::at_barrier) continue;
    ++waiting;
    if (one == nullptr) one = &t;
    if (t.barrier != one->barrier || t.arrivals != one->arrivals || kind(t) != kind(*one))
      fail(t, "threads wait at different barriers");
  }
  if (waiting == 0) return false;
  const std::size_t wanted = one->arrivals < 0 ? left_ : static_cast<std::size_t>(one->arrivals);
  if (waiting < wanted) return false;
  if (kind(*one) != WarpOp::sync) vote_at_barrier(program_, threads_);
  for (Thread& t : threads_)
    if (t.state == State::at_barrier) t.state = State::runs, ++t.pc;
  return true;
}

}  // namespace

std::uint64_t run(const Program& program, const Launch& launch, void** arguments) {
  const std::uint64_t threads = std::uint64_t(launch.block.x) * launch.block.y * launch.block.z;
  if (threads > program.most_threads)
    throw Error(program.name + ": a block of " + std::to_string(threads) +
                " threads, and .maxntid is " + std::to_string(program.most_threads));
  return Grid(program, launch, arguments).run();
}

}  // namespace ptx
