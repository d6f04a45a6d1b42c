// The memory traffic of each step, counted by the emulation: the numbers of docs/guides/ladder.md,
// each with its reason.
#include "simt/mode.hpp"
#if SIMT_EMULATED && defined(BRAID_SIMT_CHECK)
#include <fstream>
#include <string>

#include "ladder/counts.hpp"
#include "support/check.hpp"
#include "support/tests_dir.hpp"

namespace braid::ladder {
namespace {

/// Returns the line of a step's file that has the comment `words`. If the line has no code, returns
/// the next line.
int line_with(const std::string& file, const std::string& words) {
  std::ifstream in(braid::test::tests_dir() + "/../bench/ladder/" + file);
  std::string text;
  for (int line = 1; std::getline(in, text); ++line) {
    const std::size_t at = text.find("// " + words);
    if (at != std::string::npos) return text.find_first_not_of(' ') == at ? line + 1 : line;
  }
  return 0;
}

/// The expected cost of a marked line: the number of requests, the sectors (of global memory) or
/// passes (of shared memory) for each request, and the lowest number possible.
struct Cost {
  const char* words;
  bool shared;
  std::uint64_t requests;
  double each, least;
};
constexpr bool kGlobal = false, kShared = true;

/// Runs a step, compares its lines with `costs`, and returns the sums.
template <class Problem, class Trial>
Counts check_costs(const std::string& file, const Step<Problem>& step, const Trial& trial,
                   std::initializer_list<Cost> costs) {
  const simt::Profile profile;
  step.launch(trial.problem(true), stream());
  stream().synchronize();
  INFO(profile.table());
  for (const Cost& cost : costs) {
    INFO(file << ": " << cost.words);
    const int line = line_with(file, cost.words);
    REQUIRE(line > 0);
    const simt::ProfileLine at = profile.at(file.substr(file.find('/') + 1), line, cost.shared);
    CHECK(at.accesses == cost.requests);
    CHECK(at.each() == cost.each);
    CHECK(at.ideal_each() == cost.least);
  }
  return sum_of(profile);
}

// Requests of a warp for the counted product, 128 x 128 x 64.
constexpr std::uint64_t kTerms = 128 * 128 * 64 / 32;  // multiply-adds
constexpr std::uint64_t kElements = 128 * 128 / 32;    // elements of C, one per lane
constexpr std::uint64_t kElementsInFours = kElements / 4;
// A; the same for B
constexpr std::uint64_t kOperandInFours = 128 * 64 / 4 / 32;
// A and B read once, C written once
constexpr std::uint64_t kLeastSectors = (128 * 64 + 64 * 128 + 128 * 128) * 4 / 32;

// Requests of a warp for the same product of bfloat16.
// In tiles of 64 x 64, A and B are read twice, in chunks of 8 elements.
constexpr std::uint64_t kChunks = 2 * 2 * (128 * 64 / 8 / 32);
constexpr std::uint64_t kPairs = kElements / 2;                  // of elements of C
constexpr std::uint64_t kFragments = 2 * 2 * 4 * (64 / 16) * 2;  // 16 warps of 32 x 32: of A, of B
constexpr std::uint64_t kLeastHalfSectors = kLeastSectors / 2;

// Requests of a warp for the counted rows, 64 x 512.
constexpr std::uint64_t kPass = 64 * 512 / 32;  // one element per lane
constexpr std::uint64_t kLeastRowSectors = 2 * 64 * 512 * 4 / 32;

}  // namespace

TEST_CASE("ladder: sgemm, what each step asks of memory", "[sgemm][counts]") {
  const SgemmTrial trial = counted_sgemm();
  const Counts naive =
      check_costs("sgemm/1_naive.cu", kSgemmSteps[0], trial,
                  {{"reads A", kGlobal, kTerms, 32, 4},  // 32 rows, 64 floats apart
                   {"reads B", kGlobal, kTerms, 1, 1},   // one element
                   // 32 rows, 128 floats apart
                   {"writes C", kGlobal, kElements, 32, 4}});
  CHECK(naive.sectors == 33 * kTerms + 32 * kElements);
  CHECK(naive.shared == 0);

  const Counts coalesced = check_costs("sgemm/2_coalesced.cu", kSgemmSteps[1], trial,
                                       {{"reads A", kGlobal, kTerms, 1, 1},
                                        // 32 adjacent elements: 128 bytes
                                        {"reads B", kGlobal, kTerms, 4, 4},
                                        {"writes C", kGlobal, kElements, 4, 4}});
  CHECK(coalesced.sectors == 5 * kTerms + 4 * kElements);
  CHECK(coalesced.global == 2 * kTerms + kElements);  // as many requests as before

  const Counts tiles = check_costs("sgemm/3_shared.cu", kSgemmSteps[2], trial,
                                   // each element of a tile is used by 32 threads
                                   {{"fetches A", kGlobal, kTerms / 32, 4, 4},
                                    {"fetches B", kGlobal, kTerms / 32, 4, 4},
                                    {"writes C", kGlobal, kElements, 4, 4},
                                    {"fetches A", kShared, kTerms / 32, 1, 1},
                                    {"fetches B", kShared, kTerms / 32, 1, 1},
                                    {"reads A", kShared, kTerms, 1, 1},    // one word
                                    {"reads B", kShared, kTerms, 1, 1}});  // 32 adjacent words
  CHECK(tiles.shared == 2 * kTerms + 2 * kTerms / 32);
  CHECK(tiles.conflicts() == 0);

  const Counts registers =
      check_costs("sgemm/4_registers.cu", kSgemmSteps[3], trial,
                  {{"fetches A", kGlobal, kOperandInFours, 16, 16},  // 16 rows of 32 bytes
                   {"fetches B", kGlobal, kOperandInFours, 16, 16},  // 512 bytes of a row
                   // lanes 32 bytes apart: half of each sector
                   {"writes C", kGlobal, kElementsInFours, 32, 16},
                   // both groups of four of a row are in the same bank
                   {"turns A", kShared, 4 * kOperandInFours, 2, 1},
                   {"keeps B", kShared, kOperandInFours, 4, 4},  // 512 bytes: at least 4 passes
                   // 8 warps, two groups of four for each of 64 values of k. 8 lanes read the same
                   // group of A; their groups of B are 8 words apart, so two of them access the
                   // same banks.
                   {"reads A", kShared, 8 * 2 * 64, 4, 4},
                   {"reads B", kShared, 8 * 2 * 64, 8, 4}});
  CHECK(registers.sectors == kLeastSectors + 16 * kElementsInFours);
  CHECK(registers.conflicts() == 4 * kOperandInFours + 4 * (8 * 2 * 64));

  const Counts pipeline =
      check_costs("sgemm/5_pipeline.cu", kSgemmSteps[4], trial,
                  {{"fetches A", kGlobal, kOperandInFours, 16, 16},
                   {"fetches B", kGlobal, kOperandInFours, 16, 16},
                   // cp.async writes directly to shared memory
                   {"fetches B", kShared, kOperandInFours, 4, 4},
                   {"turns A", kShared, 4 * kOperandInFours, 1, 1},  // 16 rows x 2 in 32 banks
                   {"reads A", kShared, 8 * 2 * 64, 4, 4},
                   {"reads B", kShared, 8 * 2 * 64, 4, 4},  // 8 lanes read 32 adjacent words
                   {"writes C", kGlobal, kElementsInFours, 16, 16}});
  CHECK(pipeline.sectors == kLeastSectors);
  CHECK(pipeline.conflicts() == 0);

  const Counts ours = count(kSgemmSteps[5], trial);
  CHECK(ours.global == pipeline.global);
  CHECK(ours.sectors == kLeastSectors);
  CHECK(ours.conflicts() == 0);
  // A is not turned: it is copied in elements of 16 bytes, where step 5 stores 4 bytes. A thread
  // has 16 x 8 elements: 4 warps read six groups of four for each of 64 values of k, where the 8
  // warps of step 5 read four.
  constexpr std::uint64_t fewer = 3 * kOperandInFours + (8 * 4 - 4 * 6) * 64;
  // 4 warps keep two places, which they read in each of 8 steps. One thread keeps the position in
  // C, the length of the last step and the widths of the tiles, a few words, which all threads
  // read; the widths in each of the 5 steps that load a later one.
  constexpr std::uint64_t kept = 4 * 2 * (1 + 8) + 4 * 2 * 5, words = 7;
  CHECK(ours.shared + fewer > pipeline.shared + kept);
  CHECK(ours.shared + fewer <= pipeline.shared + kept + words * (1 + 4));
}

TEST_CASE("ladder: tensor cores, what each step asks of memory", "[tensor][counts]") {
  const TensorTrial trial = counted_tensor(Use::forward);
  const Counts floats =
      check_costs("tensor/1_floats.cu", kTensorSteps[0], trial,
                  {{"widens A", kShared, 8 * kChunks / 2, 1, 1},
                   {"widens B", kShared, 8 * kChunks / 2, 1, 1},
                   {"reads A", kShared, 4 * 8 * 64, 4, 4},  // 4 blocks of 8 warps, each k
                   {"reads B", kShared, 4 * 8 * 64, 4, 4},
                   // two rows of 16 lanes, which are 8 bytes apart: a quarter of each sector
                   {"writes C", kGlobal, kElements, 8, 2}});
  // each lane reads a chunk of another line: half of each sector
  CHECK(floats.sectors == 32 * kChunks + 8 * kElements);

  const Counts mma = check_costs("tensor/2_mma.cu", kTensorSteps[1], trial,
                                 // 8 lines, 64 bytes apart, are in two groups of banks
                                 {{"reads A", kShared, 4 * kFragments, 4, 1},
                                  {"reads B", kShared, 4 * kFragments, 4, 1},
                                  {"keeps A", kShared, kChunks / 2, 4, 4},
                                  {"keeps B", kShared, kChunks / 2, 4, 4}});
  CHECK(mma.global == kChunks + kPairs);
  CHECK(mma.sectors == 16 * kChunks + 8 * kPairs);  // 8 rows of 16 bytes: half of each sector

  const Counts ldmatrix = check_costs(
      "tensor/3_ldmatrix.cu", kTensorSteps[2], trial,
      {{"reads A", kShared, kFragments, 16, 4}, {"reads B", kShared, kFragments, 16, 4}});
  CHECK(ldmatrix.global == mma.global);
  CHECK(ldmatrix.conflicts() == mma.conflicts());

  const Counts swizzle =
      check_costs("tensor/4_swizzle.cu", kTensorSteps[3], trial,
                  {{"reads A", kShared, kFragments, 4, 4}, {"reads B", kShared, kFragments, 4, 4}});
  CHECK(swizzle.shared == ldmatrix.shared);
  CHECK(swizzle.conflicts() == 0);

  const Counts pipeline =
      check_costs("tensor/5_pipeline.cu", kTensorSteps[4], trial,
                  {{"reads A", kShared, kFragments, 4, 4}, {"reads B", kShared, kFragments, 4, 4}});
  CHECK(pipeline.shared == swizzle.shared);
  CHECK(pipeline.conflicts() == 0);

  for (const Use use : {Use::forward, Use::input, Use::weight}) {
    const TensorTrial each = counted_tensor(use);
    INFO(each.text());
    // 128 x 128 x 64 multiply-adds, 16 x 8 x 16 of them in an mma.sync of a warp
    constexpr std::uint64_t multiplies = 512;
    // One block reads A and B once. Its four warps read eight fragments for each 16 of k.
    const Counts backward = count(kBackwardSteps[0], each);
    CHECK(backward.global == kChunks / 2 + kPairs);
    CHECK(backward.sectors == kLeastHalfSectors + 4 * kPairs);
    CHECK(backward.shared == kChunks / 2 + 4 * 4 * 8);
    CHECK(backward.conflicts() == 0);
    CHECK(backward.multiplies == multiplies);
    CHECK(backward.slots() == backward.global + backward.shared + multiplies);
    const Counts ours = count(kBackwardSteps[1], each);
    CHECK(ours.multiplies == multiplies);
    CHECK(ours.sectors == kLeastHalfSectors);  // C goes through shared memory
    CHECK(ours.conflicts() == 0);
  }
}

TEST_CASE("ladder: the guide shows these counts", "[counts]") {
  std::ifstream in(braid::test::tests_dir() + "/../docs/guides/ladder.md");
  const std::string guide{std::istreambuf_iterator<char>(in), {}};
  const auto shown = [&](const auto& steps, const auto& trial) {
    // the table of this problem
    const std::size_t from = guide.find("\n" + trial.text() + " "), to = guide.find("```", from);
    REQUIRE(from != std::string::npos);
    const std::string table = guide.substr(from, to - from);
    for (const auto& step : steps) {
      const std::string line = line_of(step.name, true, count(step, trial));
      INFO(line);
#if defined(__clang__)  // counts fewer reads in step 2 of softmax
      if (std::string(step.name) == "2 tree") continue;
#endif
      CHECK(table.find("\n" + line + "\n") != std::string::npos);
    }
  };
  shown(kSgemmSteps, counted_sgemm());
  shown(kSoftmaxSteps, counted_softmax());
  shown(kTensorSteps, counted_tensor(Use::forward));
  shown(kBackwardSteps, counted_tensor(Use::input));
  shown(kBackwardSteps, counted_tensor(Use::weight));
}

TEST_CASE("ladder: softmax, what each step asks of memory", "[softmax][counts]") {
  const SoftmaxTrial trial = counted_softmax();
  const Counts naive = check_costs("softmax/1_naive.cu", kSoftmaxSteps[0], trial,
                                   // 32 rows, 512 floats apart
                                   {{"first pass", kGlobal, kPass, 32, 4},
                                    {"second pass", kGlobal, kPass, 32, 4},
                                    {"third pass", kGlobal, kPass, 32, 4},
                                    {"writes", kGlobal, kPass, 32, 4}});
  CHECK(naive.sectors == 4 * 32 * kPass);
  CHECK(naive.shared == 0);

  // A tree of 256, at `apart` 1, 2, 4, …, 128: 4 + 2 + 1 + 1 + 1 + 1 + 1 + 1 warps have work. Their
  // lanes are 2, 4, 8, … words apart. So 2, 4, 8, 8, 8 lanes access the same bank, then only the
  // remaining lanes: 4, 2, 1. Passes: 4·2 + 2·4 + 8 + 8 + 8 + 4 + 2 + 1.
  constexpr std::uint64_t trees = 2 * 64;
  const Counts tree = check_costs("softmax/2_tree.cu", kSoftmaxSteps[1], trial,
                                  {{"first pass", kGlobal, kPass, 4, 4},
                                   {"second pass", kGlobal, kPass, 4, 4},
                                   {"third pass", kGlobal, kPass, 4, 4},
                                   {"writes", kGlobal, kPass, 4, 4},
                                   {"reads right", kShared, 12 * trees, 47.0 / 12, 1},
                                   {"stores joined", kShared, 12 * trees, 47.0 / 12, 1},
#if !defined(__clang__)  // does not report a read before a write of the same word
                                   {"reads left", kShared, 12 * trees, 47.0 / 12, 1},
#endif
                                   {"stores parts", kShared, 8 * trees, 1, 1},
                                   {"reads result", kShared, 8 * trees, 1, 1}});
  CHECK(tree.sectors == 4 * 4 * kPass);
#if !defined(__clang__)
  CHECK(tree.conflicts() == 3 * (47 - 12) * trees);
#endif

  const Counts shuffles = check_costs("softmax/3_shuffles.cu", kSoftmaxSteps[2], trial,
                                      {{"first pass", kGlobal, kPass, 4, 4},
                                       {"second pass", kGlobal, kPass, 4, 4},
                                       {"third pass", kGlobal, kPass, 4, 4},
                                       {"writes", kGlobal, kPass, 4, 4}});
  CHECK(shuffles.global == 4 * kPass);
  CHECK(shuffles.shared == 0);
  const Counts online = check_costs("softmax/4_online.cu", kSoftmaxSteps[3], trial,
                                    {{"first pass", kGlobal, kPass, 4, 4},
                                     {"second pass", kGlobal, kPass, 4, 4},
                                     {"writes", kGlobal, kPass, 4, 4}});
  CHECK(online.global == 3 * kPass);
  CHECK(online.shared == 0);
  const Counts registers = check_costs(
      "softmax/5_registers.cu", kSoftmaxSteps[4], trial,
      {{"the only pass", kGlobal, kPass / 4, 16, 16}, {"writes", kGlobal, kPass / 4, 16, 16}});
  CHECK(registers.sectors == kLeastRowSectors);
  CHECK(registers.shared == 0);
  const Counts ours = count(kSoftmaxSteps[5], trial);
  CHECK(ours.global == registers.global);  // one read and one write, of 16 bytes: step 5
  CHECK(ours.sectors == ours.least_sectors);
  CHECK(ours.shared == 0);
}

}  // namespace braid::ladder
#endif
