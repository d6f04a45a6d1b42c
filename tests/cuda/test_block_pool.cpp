// Tests how segments are split into blocks and merged again. They need only host memory, no device.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "cuda/runtime/block_pool.hpp"
#include "support/check.hpp"

using namespace braid::cuda;

namespace {

constexpr std::size_t kUnit = BlockPool::kUnit, kMiB = std::size_t{1} << 20;

/// Addresses that are never dereferenced.
char* at(std::size_t address) { return reinterpret_cast<char*>(address); }

/// A pool, with a record of the segments and blocks that it should hold.
struct Checked {
  Parts parts;
  BlockPool pool{nullptr, parts};
  std::map<char*, std::size_t> segments;
  std::vector<Part*> taken;
  std::size_t next = kMiB;

  void add(std::size_t size, bool small) {
    pool.add(at(next), size, small);
    segments[at(next)] = size;
    next += size + kMiB;  // segments are never neighbours
  }
  /// Returns the sizes of the free ranges between the taken blocks.
  [[nodiscard]] std::multiset<std::size_t> runs() const {
    std::multiset<std::size_t> free;
    for (const auto& [begin, size] : segments) {
      std::vector<Part*> inside;
      for (Part* part : taken)
        if (part->data >= begin && part->data < begin + size) inside.push_back(part);
      std::sort(inside.begin(), inside.end(),
                [](const Part* a, const Part* b) { return a->data < b->data; });
      char* end = begin;
      for (const Part* part : inside) {
        REQUIRE(part->data >= end);  // no two blocks overlap
        if (part->data > end) free.insert(static_cast<std::size_t>(part->data - end));
        end = part->data + part->size;
      }
      REQUIRE(end <= begin + size);
      if (end < begin + size) free.insert(static_cast<std::size_t>(begin + size - end));
    }
    return free;
  }
};

}  // namespace

TEST_CASE("block pool: classes hold what is at least their size, 16 a doubling", "[allocator]") {
  for (std::size_t units = 1; units < 32; ++units)
    CHECK(BlockPool::class_of(units * kUnit) == units);
  std::size_t before = 31;
  for (std::size_t units = 32; units < 5000; ++units) {
    const std::size_t here = BlockPool::class_of(units * kUnit);
    REQUIRE((here == before || here == before + 1));
    before = here;
  }
  CHECK(BlockPool::class_of(64 * kUnit) == 32 + 16);
  CHECK(BlockPool::class_of(128 * kUnit) == 32 + 32);
  CHECK(BlockPool::class_of(BlockPool::kLargest) == 32 + 34 * 16);
}

TEST_CASE("block pool: a block is cut off, and joined with what is free beside it", "[allocator]") {
  Checked c;
  c.add(16 * kUnit, true);
  Part *a = c.pool.take(4 * kUnit), *b = c.pool.take(4 * kUnit), *d = c.pool.take(8 * kUnit);
  REQUIRE((a && b && d));
  CHECK(a->data + 4 * kUnit == b->data);
  CHECK(b->data + 4 * kUnit == d->data);
  CHECK(c.pool.take(kUnit) == nullptr);
  CHECK(c.pool.largest_whole() == nullptr);
  c.pool.put(*a), c.pool.put(*d);
  CHECK(c.pool.take(9 * kUnit) == nullptr);
  c.pool.put(*b);
  Part* const whole = c.pool.take(16 * kUnit);
  REQUIRE(whole != nullptr);
  CHECK(whole->data == at(kMiB));
}

TEST_CASE("block pool: the smallest part that fits, also within a class", "[allocator]") {
  Checked c;
  for (const std::size_t units : {65u, 64u, 66u, 67u}) c.add(units * kUnit, true);
  CHECK(BlockPool::class_of(64 * kUnit) == BlockPool::class_of(67 * kUnit));
  for (const std::size_t units : {65u, 66u, 67u}) {
    Part* const part = c.pool.take(65 * kUnit);
    REQUIRE(part != nullptr);
    CHECK(part->segment->size == units * kUnit);
  }
  CHECK(c.pool.take(65 * kUnit) == nullptr);
}

TEST_CASE("block pool: small blocks and large ones do not share a segment", "[allocator]") {
  Checked c;
  c.add(8 * kMiB, false);
  CHECK(c.pool.take(kUnit) == nullptr);
  CHECK(c.pool.smallest_whole(kUnit) == nullptr);
  CHECK(c.pool.smallest_whole(8 * kMiB) != nullptr);
  CHECK(c.pool.smallest_whole(8 * kMiB + kUnit) == nullptr);
  c.add(2 * kMiB, true);
  CHECK(c.pool.take(BlockPool::kSmall) != nullptr);
  CHECK(c.pool.take(BlockPool::kSmall + kUnit) != nullptr);
}

TEST_CASE("block pool: another pool adopts segments with the blocks in them", "[allocator]") {
  Checked c;
  BlockPool heir(nullptr, c.parts);
  c.add(16 * kUnit, true);
  c.add(32 * kUnit, true);
  Part* const live = c.pool.take(16 * kUnit);
  REQUIRE(live != nullptr);
  heir.adopt(c.pool);
  CHECK(c.pool.take(kUnit) == nullptr);
  CHECK(live->segment->pool == &heir);
  CHECK(heir.owns(at(kMiB)));
  heir.put(*live);
  CHECK(heir.take(32 * kUnit) != nullptr);
  CHECK(heir.take(16 * kUnit) != nullptr);
  CHECK(heir.take(kUnit) == nullptr);
}

TEST_CASE("block pool: random requests, against what a map of all bytes says", "[allocator]") {
  std::size_t served = 0, refused = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Checked c;
    for (int i = 0; i < 4; ++i) c.add((50 + random() % 1000) * kUnit, true);
    for (int i = 0; i < 2000; ++i) {
      if (c.taken.empty() || random() % 5 < 3) {
        const std::size_t size = (1 + random() % (random() % 4 == 0 ? 400 : 20)) * kUnit;
        const std::multiset<std::size_t> free = c.runs();
        Part* const part = c.pool.take(size);
        const auto largest = free.empty() ? std::size_t{0} : *free.rbegin();
        if (part == nullptr) {
          // no free range of a larger class, which would always fit
          REQUIRE(BlockPool::class_of(largest) <= BlockPool::class_of(size));
          ++refused;
        } else {
          REQUIRE(part->size == size);
          REQUIRE(largest >= size);
          c.taken.push_back(part);
          ++served;
        }
      } else {
        const std::size_t which = random() % c.taken.size();
        Part* const part = c.taken[which];
        c.taken.erase(c.taken.begin() + static_cast<std::ptrdiff_t>(which));
        c.pool.put(*part);
      }
      if (i % 100 == 0) (void)c.runs();
    }
    for (Part* part : c.taken) c.pool.put(*part);
    c.taken.clear();
    std::size_t whole = 0;  // all parts are merged again
    while (Segment* const segment = c.pool.largest_whole()) {
      CHECK(c.segments.at(segment->data) == segment->size);
      c.pool.remove(*segment);
      ++whole;
    }
    CHECK(whole == 4);
    CHECK(c.pool.take(kUnit) == nullptr);
  }
  CHECK(served > 10'000);
  CHECK(refused > 500);
}
