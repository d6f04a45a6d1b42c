// What each step asks of memory, counted by the emulation: the numbers of docs/guides/ladder.md,
// each with its reason.
#include "simt/mode.hpp"
#if SIMT_EMULATED && defined(BRAID_SIMT_CHECK)
#include <fstream>
#include <string>

#include "ladder/counts.hpp"
#include "support/catch.hpp"
#include "support/tests_dir.hpp"

namespace braid::ladder {
namespace {

/// The line of a step's file that ends in the words.
int line_of(const std::string& file, const std::string& words) {
  std::ifstream in(braid::test::tests_dir() + "/../bench/ladder/" + file);
  std::string text;
  for (int line = 1; std::getline(in, text); ++line)
    if (text.find("// " + words) != std::string::npos) return line;
  return 0;
}

/// The profile of one run of a step, by the marks in its file.
template <class Trial> class Counted {
 public:
  Counted(std::string file, const Step<typename Trial::Problem>& step, const Trial& trial)
      : file_(std::move(file)) {
    step.launch(trial.problem(true), stream());
    stream().synchronize();
  }
  [[nodiscard]] Counts all() const { return sum_of(profile_); }
  [[nodiscard]] std::string table() const { return profile_.table(); }
  /// Requires that the marked line costs this: `requests`, and sectors (of global memory) or passes
  /// (of shared) for each.
  void global(const std::string& words, std::uint64_t requests, double sectors,
              double least) const {
    expect(words, false, requests, sectors, least);
  }
  void shared(const std::string& words, std::uint64_t requests, double passes, double least) const {
    expect(words, true, requests, passes, least);
  }

 private:
  void expect(const std::string& words, bool shared, std::uint64_t requests, double each,
              double least) const {
    INFO(file_ << ": " << words);
    const int line = line_of(file_, words);
    REQUIRE(line > 0);
    const simt::ProfileLine at = profile_.at(file_.substr(file_.find('/') + 1), line, shared);
    CHECK(at.accesses == requests);
    CHECK(at.each() == each);
    CHECK(at.ideal_each() == least);
  }
  simt::Profile profile_;
  std::string file_;
};
template <class Trial> Counted(std::string, const Step<Sgemm>&, const Trial&) -> Counted<Trial>;
template <class Trial> Counted(std::string, const Step<Softmax>&, const Trial&) -> Counted<Trial>;

// Of the counted product, 128 x 128 x 64, in requests of a warp.
constexpr std::uint64_t kTerms = 128 * 128 * 64 / 32;  // multiply-adds
constexpr std::uint64_t kElements = 128 * 128 / 32;    // elements of C, one a lane
constexpr std::uint64_t kElementsInFours = kElements / 4;
// A, and B as well
constexpr std::uint64_t kOperandInFours = 128 * 64 / 4 / 32;
// A and B read once, C written once
constexpr std::uint64_t kLeastSectors = (128 * 64 + 64 * 128 + 128 * 128) * 4 / 32;

// Of the counted rows, 64 x 512.
constexpr std::uint64_t kPass = 64 * 512 / 32;  // one element a lane
constexpr std::uint64_t kLeastRowSectors = 2 * 64 * 512 * 4 / 32;

}  // namespace

TEST_CASE("ladder: sgemm, naive and coalesced", "[ladder][sgemm][counts]") {
  const SgemmTrial trial = counted_sgemm();
  {
    const Counted naive("sgemm/1_naive.cu", kSgemmSteps[0], trial);
    INFO(naive.table());
    naive.global("reads A", kTerms, 32, 4);      // 32 rows, 64 floats apart
    naive.global("reads B", kTerms, 1, 1);       // one element
    naive.global("writes C", kElements, 32, 4);  // 32 rows, 128 floats apart
    CHECK(naive.all().sectors == 33 * kTerms + 32 * kElements);
    CHECK(naive.all().shared == 0);
  }
  {
    const Counted coalesced("sgemm/2_coalesced.cu", kSgemmSteps[1], trial);
    INFO(coalesced.table());
    coalesced.global("reads A", kTerms, 1, 1);
    coalesced.global("reads B", kTerms, 4, 4);  // 32 neighbours: 128 bytes
    coalesced.global("writes C", kElements, 4, 4);
    CHECK(coalesced.all().sectors == 5 * kTerms + 4 * kElements);
    CHECK(coalesced.all().global == 2 * kTerms + kElements);  // as many requests as before
  }
}

TEST_CASE("ladder: sgemm, tiles in shared memory", "[ladder][sgemm][counts]") {
  const SgemmTrial trial = counted_sgemm();
  const Counted tiles("sgemm/3_shared.cu", kSgemmSteps[2], trial);
  INFO(tiles.table());
  tiles.global("fetches A", kTerms / 32, 4, 4);  // a tile's element serves 32 threads
  tiles.global("fetches B", kTerms / 32, 4, 4);
  tiles.global("writes C", kElements, 4, 4);
  tiles.shared("fetches A", kTerms / 32, 1, 1);
  tiles.shared("fetches B", kTerms / 32, 1, 1);
  tiles.shared("reads A", kTerms, 1, 1);  // one word
  tiles.shared("reads B", kTerms, 1, 1);  // 32 neighbours
  CHECK(tiles.all().shared == 2 * kTerms + 2 * kTerms / 32);
  CHECK(tiles.all().conflicts() == 0);
}

TEST_CASE("ladder: sgemm, tiles in registers", "[ladder][sgemm][counts]") {
  const SgemmTrial trial = counted_sgemm();
  const Counted registers("sgemm/4_registers.cu", kSgemmSteps[3], trial);
  INFO(registers.table());
  registers.global("fetches A", kOperandInFours, 16, 16);  // 16 rows of 32 bytes
  registers.global("fetches B", kOperandInFours, 16, 16);  // 512 bytes of a row
  // lanes 32 bytes apart: half of each sector
  registers.global("writes C", kElementsInFours, 32, 16);
  // both fours of a row meet in the bank of the row
  registers.shared("turns A", 4 * kOperandInFours, 2, 1);
  registers.shared("keeps B", kOperandInFours, 4, 4);  // 512 bytes: 4 passes at least
  // 8 warps, two fours for each of 64 values of k. Of 8 lanes all want one four of A; their fours
  // of B lie 8 words apart, so two of them meet in each bank.
  registers.shared("reads A", 8 * 2 * 64, 4, 4);
  registers.shared("reads B", 8 * 2 * 64, 8, 4);
  CHECK(registers.all().sectors == kLeastSectors + 16 * kElementsInFours);
  CHECK(registers.all().conflicts() == 4 * kOperandInFours + 4 * (8 * 2 * 64));
}

TEST_CASE("ladder: sgemm, two buffers and no conflict", "[ladder][sgemm][counts]") {
  const SgemmTrial trial = counted_sgemm();
  const Counted pipeline("sgemm/5_pipeline.cu", kSgemmSteps[4], trial);
  INFO(pipeline.table());
  pipeline.global("fetches A", kOperandInFours, 16, 16);
  pipeline.global("fetches B", kOperandInFours, 16, 16);
  pipeline.shared("fetches B", kOperandInFours, 4, 4);    // cp.async writes shared memory itself
  pipeline.shared("turns A", 4 * kOperandInFours, 1, 1);  // 16 rows x 2 in 32 banks
  pipeline.shared("reads A", 8 * 2 * 64, 4, 4);
  pipeline.shared("reads B", 8 * 2 * 64, 4, 4);  // 8 lanes read 32 neighbours
  pipeline.global("writes C", kElementsInFours, 16, 16);
  CHECK(pipeline.all().sectors == kLeastSectors);
  CHECK(pipeline.all().conflicts() == 0);
}

TEST_CASE("ladder: sgemm, ours", "[ladder][sgemm][counts]") {
  const SgemmTrial trial = counted_sgemm();
  const Counts ours = count(kSgemmSteps[5], trial), pipeline = count(kSgemmSteps[4], trial);
  CHECK(ours.global == pipeline.global);
  CHECK(ours.sectors == kLeastSectors);
  CHECK(ours.conflicts() == 0);
  // As many as step 5, and what one block of 8 warps keeps for its end: its place in C, a few
  // words, written by one thread and read by all.
  CHECK(ours.shared >= pipeline.shared);
  CHECK(ours.shared <= pipeline.shared + 6 * 8 + 6);
}

TEST_CASE("ladder: softmax, naive and in a tree", "[ladder][softmax][counts]") {
  const SoftmaxTrial trial = counted_softmax();
  {
    const Counted naive("softmax/1_naive.cu", kSoftmaxSteps[0], trial);
    INFO(naive.table());
    // 32 rows, 512 floats apart
    for (const char* pass : {"first pass", "second pass", "third pass", "writes"})
      naive.global(pass, kPass, 32, 4);
    CHECK(naive.all().sectors == 4 * 32 * kPass);
    CHECK(naive.all().shared == 0);
  }
  {
    const Counted tree("softmax/2_tree.cu", kSoftmaxSteps[1], trial);
    INFO(tree.table());
    for (const char* pass : {"first pass", "second pass", "third pass", "writes"})
      tree.global(pass, kPass, 4, 4);
    CHECK(tree.all().sectors == 4 * 4 * kPass);
    // A tree of 256, at `apart` 1, 2, 4, …, 128: 4 + 2 + 1 + 1 + 1 + 1 + 1 + 1 warps have work,
    // whose lanes are 2, 4, 8, … words apart. So 2, 4, 8, 8, 8 lanes meet in a bank, then as many
    // as are left: 4, 2, 1. Passes: 4·2 + 2·4 + 8 + 8 + 8 + 4 + 2 + 1.
    constexpr std::uint64_t trees = 2 * 64;
    for (const char* access : {"reads right", "stores joined"})
      tree.shared(access, 12 * trees, 47.0 / 12, 1);
    tree.shared("stores parts", 8 * trees, 1, 1);
    tree.shared("reads result", 8 * trees, 1, 1);
#if !defined(__clang__)  // which does not tell of a read that a write of the same word follows
    tree.shared("reads left", 12 * trees, 47.0 / 12, 1);
    CHECK(tree.all().conflicts() == 3 * (47 - 12) * trees);
#endif
  }
}

TEST_CASE("ladder: softmax by shuffles, in one pass, in registers, ours",
          "[ladder][softmax][counts]") {
  const SoftmaxTrial trial = counted_softmax();
  {
    const Counted shuffles("softmax/3_shuffles.cu", kSoftmaxSteps[2], trial);
    INFO(shuffles.table());
    for (const char* pass : {"first pass", "second pass", "third pass", "writes"})
      shuffles.global(pass, kPass, 4, 4);
    CHECK(shuffles.all().global == 4 * kPass);
    CHECK(shuffles.all().shared == 0);
  }
  {
    const Counted online("softmax/4_online.cu", kSoftmaxSteps[3], trial);
    INFO(online.table());
    for (const char* pass : {"first pass", "second pass", "writes"})
      online.global(pass, kPass, 4, 4);
    CHECK(online.all().global == 3 * kPass);
    CHECK(online.all().shared == 0);
  }
  {
    const Counted registers("softmax/5_registers.cu", kSoftmaxSteps[4], trial);
    INFO(registers.table());
    for (const char* pass : {"the only pass", "writes"}) registers.global(pass, kPass / 4, 16, 16);
    CHECK(registers.all().sectors == kLeastRowSectors);
    CHECK(registers.all().shared == 0);
  }
  const Counts ours = count(kSoftmaxSteps[5], trial), registers = count(kSoftmaxSteps[4], trial);
  CHECK(ours.global == registers.global);  // one read and one write, of 16 bytes: step 5
  CHECK(ours.sectors == ours.least_sectors);
  CHECK(ours.shared == 0);
}

}  // namespace braid::ladder
#endif
