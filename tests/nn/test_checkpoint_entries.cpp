// Entries in a checkpoint's folder that do not belong to it: files, links, pipes, folders, and
// numbers that are too large.
#include <sys/stat.h>
#include <unistd.h>

#include "nn/train_run.hpp"
#include "support/errors.hpp"
#include "support/temporary.hpp"
#include "support/warnings.hpp"

using namespace braid;
using namespace braid::test;

namespace {

using Numbers = std::vector<std::int64_t>;

struct Tiny : nn::Module {
  nn::Buffer value{zeros({1})};
  BRAID_FIELDS(value)
};

/// A folder with the checkpoints 1, 2, …; each stores its number in its buffer.
struct Folder {
  explicit Folder(int count, int keep = 2)
      : checkpoint({.folder = folder.path(), .keep = keep}, tiny) {
    for (int i = 0; i < count; ++i) save();
  }
  void save() {
    tiny.value.fill_(static_cast<double>(checkpoint.last() + 1));
    checkpoint.save();
  }
  /// Returns the number that the newest checkpoint stores, or 0 if there is none.
  double loaded() {
    tiny.value.fill_(-1);
    return checkpoint.load_latest() ? tiny.value.item<double>() : 0;
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return folder / name; }
  [[nodiscard]] bool has(const std::string& name) const {
    struct stat info{};
    return ::lstat((folder / name).c_str(), &info) == 0;
  }
  const TemporaryFolder folder;
  Tiny tiny;
  training::Checkpoint checkpoint;
};

void make_folder(const std::string& path) { REQUIRE(::mkdir(path.c_str(), 0777) == 0); }
void make_link(const std::string& to, const std::string& path) {
  REQUIRE(::symlink(to.c_str(), path.c_str()) == 0);
}

}  // namespace

TEST_CASE("checkpoint: a number that does not fit is no checkpoint, and none is made",
          "[training][checkpoint][errors]") {
  Folder f(2);
  for (const char* name : {"step-999999999999999999", "step-1000000000000000"}) {
    REQUIRE(::rename((f / "step-00000001").c_str(), (f / name).c_str()) == 0);
    Warnings warnings;
    CHECK(f.loaded() == 2);
    f.save();
    f.save();
    CHECK(f.checkpoint.numbers() == Numbers{3, 4});
    CHECK(f.loaded() == 4);
    REQUIRE(warnings.texts.size() == 1);  // one warning, not one per save
    CHECK(matches(warnings.texts[0], "Checkpoint: left alone: *" + std::string(name)));
    TemporaryFolder::remove_all(f / name);
    TemporaryFolder::remove_all(f / "step-00000003");
    REQUIRE(::rename((f / "step-00000004").c_str(), (f / "step-00000001").c_str()) == 0);
    f.checkpoint.load(1);
    f.save();
  }
  // The largest number that fits: no checkpoint can follow it.
  REQUIRE(::rename((f / "step-00000001").c_str(), (f / "step-999999999999999").c_str()) == 0);
  const auto before = f.folder.names().size();
  CHECK_THROWS_TEXT(ArgumentError,
                    "Checkpoint: save: expected a number of at most 999999999999999, got "
                    "1000000000000000*step-999999999999999*",
                    f.save());
  CHECK(f.folder.names().size() == before);
}

TEST_CASE("checkpoint: entries that are called like an unfinished save are left alone",
          "[training][checkpoint][errors]") {
  struct Stray {
    const char* name;
    void (*make)(const std::string& path);
    const char* said;
  };
  const Stray strays[] = {
      {"step-x.tmp", [](const std::string& path) { write_file(path, "mine"); },
       "left alone: *step-x.tmp"},
      {"step-a b.tmp", [](const std::string& path) { write_file(path, "mine"); },
       "left alone: *step-a b.tmp"},
      {"step-00000003.tmp", [](const std::string& path) { write_file(path, "mine"); },
       "left alone: *step-00000003.tmp"},
      {"step-00000004.tmp", [](const std::string& path) { make_link("/tmp", path); },
       "left alone: *step-00000004.tmp"},
      {"step-7.tmp",
       [](const std::string& path) {
         make_folder(path);
         make_folder(path + "/sub");
       },
       "left alone: *step-7.tmp"},
      {"step-00000005.tmp",
       [](const std::string& path) {
         make_folder(path);
         write_file(path + "/model.safetensors", "half");
         make_folder(path + "/sub");
       },
       "an interrupted save could not be removed: *step-00000005.tmp*sub"},
  };
  for (const Stray& stray : strays) {
    INFO(stray.name);
    Folder f(2);
    stray.make(f / stray.name);
    Warnings warnings;
    for (int i = 0; i < 4; ++i) f.save();
    CHECK(f.loaded() == static_cast<double>(f.checkpoint.last()));
    CHECK(f.checkpoint.numbers().size() == 2);
    CHECK(f.folder.names().size() == 3);
    CHECK(f.has(stray.name));
    REQUIRE(warnings.texts.size() == 1);
    INFO(warnings.texts[0]);
    CHECK(matches(warnings.texts[0], "Checkpoint: " + std::string(stray.said)));
  }
}

TEST_CASE("checkpoint: files and links that are called like a checkpoint are left alone",
          "[training][checkpoint][errors]") {
  for (const bool link : {false, true}) {
    INFO("link " << link);
    Folder f(3);
    const Warnings warnings;
    // step-00000004 has the number of the next save.
    for (const char* name : {"step-00000050", "step-00000004"}) {
      if (link) make_link("step-00000002", f / name);
      else write_file(f / name, "mine");
    }
    CHECK(f.checkpoint.numbers() == Numbers{2, 3});
    CHECK(f.loaded() == 3);
    f.save();
    CHECK(f.checkpoint.numbers() == Numbers{3, 5});
    f.save();
    CHECK(f.checkpoint.numbers() == Numbers{5, 6});
    CHECK(f.has("step-00000050"));
    CHECK(f.has("step-00000004"));
    CHECK(warnings.texts.size() == 2);
    CHECK_THROWS_AS(f.checkpoint.load(50), IoError);
  }
}

TEST_CASE("checkpoint: what somebody put into an older one stays, with a warning",
          "[training][checkpoint][errors]") {
  for (const char* name : {"notes (copy).txt", "notes.txt", "sub"}) {
    INFO(name);
    Folder f(2);
    if (std::string(name) == "sub") make_folder(f / "step-00000001/sub");
    else write_file(f / ("step-00000001/" + std::string(name)), "mine");
    const Warnings warnings;
    for (int i = 0; i < 3; ++i) f.save();
    CHECK(f.checkpoint.numbers() == Numbers{4, 5});
    CHECK(f.loaded() == 5);
    // The checkpoint's own files are removed; the foreign file stays.
    CHECK(TemporaryFolder::names_in(f / "step-00000001") == std::vector<std::string>{name});
    REQUIRE(warnings.texts.size() == 1);
    INFO(warnings.texts[0]);
    CHECK(matches(warnings.texts[0],
                  "Checkpoint: an older checkpoint could not be removed: "
                  "*step-00000001*" +
                      std::string(name)));
  }
}

TEST_CASE("checkpoint: what is no file in place of one of its files is damage",
          "[training][checkpoint][errors]") {
  for (const char* file : {"manifest.json", "model.safetensors", "random.safetensors"}) {
    for (const char* kind : {"pipe", "folder", "link", "loop"}) {
      INFO(file << " is a " << kind);
      Folder f(3);
      const std::string path = f / ("step-00000003/" + std::string(file));
      REQUIRE(::unlink(path.c_str()) == 0);
      if (kind == std::string("pipe")) REQUIRE(::mkfifo(path.c_str(), 0666) == 0);
      else if (kind == std::string("folder")) make_folder(path);
      else if (kind == std::string("link"))
        make_link("../step-00000002/" + std::string(file), path);
      else make_link(file, path);
      Warnings warnings;
      CHECK(f.loaded() == 2);
      REQUIRE(warnings.texts.size() == 1);
      INFO(warnings.texts[0]);
      CHECK(matches(warnings.texts[0],
                    "damaged checkpoint is passed over*step-00000003*" + std::string(file)));
      f.save();  // the damaged folder does not prevent a save
      CHECK(f.loaded() == 3);
      CHECK(f.checkpoint.last() == 4);
    }
  }
}
