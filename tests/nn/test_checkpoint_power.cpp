// Power loss: after every call of a save, with unflushed data lost entirely, in part or at random,
// either the old or the new checkpoint loads.
#include "nn/train_run.hpp"
#include "support/check.hpp"
#include "support/recorded_disk.hpp"

using namespace braid;
using namespace braid::test;

namespace {

struct Tiny : nn::Module {
  nn::Buffer value{zeros({2})};
  BRAID_FIELDS(value)
};

struct Counts {
  int checked = 0, wrong = 0;
};

/// Records three saves, of the values 1, 2 and 3, then replays every prefix of their calls. These
/// count as wrong: an error, a warning, and any value but that of the last finished save or the
/// next.
Counts replay(bool no_file_flush, bool no_folder_flush) {
  const TemporaryFolder folder;
  disk_record = {};
  disk_record.root = folder.path();
  disk_record.no_file_flush = no_file_flush;
  disk_record.no_folder_flush = no_folder_flush;
  Tiny tiny;
  training::Checkpoint checkpoint({.folder = folder.path(), .keep = 1}, tiny);
  io::set_file_system(&recording_file_system());
  std::vector<std::size_t> ends;
  for (int i = 1; i <= 3; ++i) {
    tiny.value.fill_(i);
    checkpoint.save();
    ends.push_back(disk_record.calls.size());
  }
  io::set_file_system(nullptr);

  Counts counts;
  int warnings = 0;
  const auto old = set_warning_handler([&](std::string_view) { ++warnings; });
  for (std::size_t prefix = 0; prefix <= disk_record.calls.size(); ++prefix) {
    const Disk disk(disk_record, prefix);
    int finished = 0;
    for (const std::size_t end : ends) finished += end <= prefix ? 1 : 0;
    using Loss = Disk::Loss;
    std::vector<std::pair<Loss, std::uint32_t>> losses = {
        {Loss::nothing, 0}, {Loss::all, 0}, {Loss::data, 0}, {Loss::tails, 0}};
    for (std::uint32_t seed = 0; seed < 4; ++seed)
      losses.emplace_back(Loss::some, seed * 1000 + static_cast<std::uint32_t>(prefix));
    for (const auto& [loss, seed] : losses) {
      const TemporaryFolder left;
      disk.materialize(left.path(), loss, seed);
      Tiny loaded;
      training::Checkpoint again(left.path(), loaded);
      warnings = 0;
      ++counts.checked;
      try {
        int value = 0;
        if (again.load_latest()) {
          const std::vector<int> both = loaded.value.to_vector<int>();
          value = both[0] > 0 ? both[1] : -1;
        }
        if ((value != finished && value != finished + 1) || warnings > 0) ++counts.wrong;
      } catch (const Error&) {
        ++counts.wrong;
      }
    }
  }
  set_warning_handler(old);
  return counts;
}

}  // namespace

TEST_CASE("checkpoint: after a power loss at any call of a save the old or the new one loads",
          "[training][checkpoint][power]") {
  const Counts counts = replay(false, false);
  CHECK(counts.wrong == 0);
  CHECK(counts.checked > 500);
}

TEST_CASE("checkpoint: a replayed power loss sees a flush that is left out",
          "[training][checkpoint][power]") {
  CHECK(replay(true, false).wrong > 0);
  CHECK(replay(false, true).wrong > 0);
}
