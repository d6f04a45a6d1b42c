#include <braid/braid.hpp>

#include "nn/refused.hpp"
#include "support/numpy_arrays.hpp"
#include "support/temporary.hpp"
#include "support/tests_dir.hpp"

using namespace braid;
using namespace braid::test;

namespace {

std::string golden(const std::string& name) { return tests_dir() + "/goldens/numpy/" + name; }
StateDict read(const std::string& bytes, const data::NpzOptions& options = {}) {
  return data::load_npz(as_bytes(bytes), options);
}
void save(const std::string& path, const StateDict& dict) {
  data::save_npz(path, {dict.data(), dict.size()});
}
void check_identical(const StateDict& a, const StateDict& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, tensor] : a) {
    INFO(name);
    CHECK(identical(tensor, b.at(name)));
  }
}

}  // namespace

TEST_CASE("npz: what numpy wrote is read to the same bits", "[io][npz]") {
  check_identical(numpy_arrays(), data::load_npz(golden("stored.npz")));
#if BRAID_WITH_ZLIB
  check_identical(numpy_arrays(), data::load_npz(golden("deflated.npz")));
  CHECK(data::load_npz(golden("large.npz"), {.max_ratio = 2000}).at("zeros").numel() == 400000);
  CHECK_THROWS_TEXT(
      LimitError,
      "large.npz: sizes: expected at most * bytes of arrays from a file of * (max_ratio "
      "2; pass a larger one for a file that you trust), got more",
      data::load_npz(golden("large.npz")));
#else
  CHECK_THROWS_TEXT(IoError, "this build of Braid has no zlib",
                    data::load_npz(golden("deflated.npz")));
#endif
  CHECK_THROWS_TEXT(LimitError, "at most 100 bytes in all",
                    data::load_npz(golden("stored.npz"), {.max_bytes = 100}));
}

TEST_CASE("npz: round trips; BRAID_NPZ_OUT keeps the files, for numpy to read", "[io][npz]") {
  const TemporaryFolder folder;
  const char* out = std::getenv("BRAID_NPZ_OUT");
  const std::string base = out != nullptr ? out : folder / "x";
  const StateDict arrays = numpy_arrays();
  save(base + ".npz", arrays);
  save_npy(base + ".npy", arrays.at("f4"));
  check_identical(arrays, data::load_npz(base + ".npz"));
  save(folder / "none.npz", {});
  CHECK(data::load_npz(folder / "none.npz").empty());
  save(folder / "names.npz", {{"a/b", ones({1})}, {"\xc3\xa9", ones({2})}, {"x.npy", ones({3})}});
  CHECK(data::load_npz(folder / "names.npz").at("x.npy").numel() == 3);
  for (const char* name : {"", "a\n", "\xff"})
    CHECK_THROWS_TEXT(ArgumentError, "save_npz: expected names of 1 to 1020 bytes",
                      save(folder / "y.npz", {{name, ones({1})}}));
  CHECK_THROWS_TEXT(DTypeError, "save_npz: expected a type that numpy has",
                    save(folder / "y.npz", {{"a", ones({1}, {.dtype = DType::bfloat16})}}));
  const std::pair<std::string, Tensor> twice[] = {{"a", ones({1})}, {"a", ones({1})}};
  CHECK_THROWS_TEXT(ArgumentError, "each name once, got a second \"a.npy\"",
                    data::save_npz(folder / "y.npz", twice));
  CHECK(folder.names().size() <= 4);
}

#if BRAID_WITH_ZLIB
TEST_CASE("npz: many small members are as limited as one large one", "[io][npz][errors]") {
  // 8 arrays of just under 1 MiB, each 1 kB in the file.
  const std::string bomb = read_file(golden("many.npz"));
  CHECK(bomb.size() < 10'000);
  const std::size_t before = memory_stats(Device("cpu")).in_use;
  reset_peak_memory(Device("cpu"));
  CHECK_THROWS_TEXT(LimitError, "sizes: expected at most", read(bomb));
  CHECK(memory_stats(Device("cpu")).peak - before <= 2 * bomb.size() + (1 << 20));
  CHECK(read(bomb, {.max_ratio = 2000}).size() == 8);
  CHECK_THROWS_TEXT(LimitError, "sizes: expected at most 1048576 bytes",
                    read(bomb, {.max_ratio = 0}));
  CHECK(read(bomb, {.max_ratio = ~std::uint64_t{0}}).size() == 8);
}
#endif

TEST_CASE("npz: prefixes, flipped bits and edited fields are errors or the same arrays",
          "[io][npz][errors]") {
  const TemporaryFolder folder;
  const StateDict arrays{{"a", arange(3, {.dtype = DType::float32})}, {"b", ones({2})}};
  save(folder / "x.npz", arrays);
  for (const std::string& whole :
       {read_file(folder / "x.npz"), read_file(golden("deflated.npz"))}) {
    const StateDict good = read(whole);
    for (std::size_t length = 0; length < whole.size(); length += 1 + whole.size() / 500)
      CHECK_THROWS_AS(read(whole.substr(0, length)), IoError);
    CHECK_THROWS_AS(read(whole + 'x'), FormatError);
    CHECK_THROWS_AS(read('x' + whole), FormatError);
    for (std::size_t at = 0; at < whole.size() * 8; at += 1 + whole.size() / 300) {
      std::string flipped = whole;
      flipped[at / 8] = static_cast<char>(flipped[at / 8] ^ (1 << at % 8));
      StateDict dict;
      try {
        dict = read(flipped);  // a name, a date or a version may change, but no number
      } catch (const IoError&) {
        continue;
      }
      CHECK(dict.size() == good.size());
      for (std::size_t i = 0; i < dict.size(); ++i)
        CHECK(identical(dict.data()[i].second, good.data()[i].second));
    }
  }
  const std::string whole = read_file(folder / "x.npz");
  const std::size_t entry = whole.find("PK\1\2"), second = whole.find("PK\1\2", entry + 4),
                    end = whole.find("PK\5\6");
  const auto edited = [&](std::size_t at, std::initializer_list<int> bytes) {
    std::string text = whole;
    for (const int b : bytes) text[at++] = static_cast<char>(b);
    return text;
  };
  struct Edit {
    std::size_t at;
    std::initializer_list<int> bytes;
    const char* text;
  };
  const Edit edits[] = {
      {entry + 8, {1, 8}, "flags: expected no encryption"},
      {entry + 10, {12, 0}, "method: expected 0 (stored) or 8 (deflated), got 12"},
      {entry + 16, {1, 2, 3, 4}, "crc32: expected"},
      {entry + 20, {1, 0, 0, 0}, "size: expected"},
      {entry + 42, {255, 255, 255, 127}, "local header"},
      {entry + 42, {1, 0, 0, 0}, "local header: expected PK\\3\\4"},
      {26, {4}, "local header: expected the name"},
      {second + 46, {'a'}, "local header: expected name and method"},
      {end + 4, {1}, "several"},
      {end + 20, {1}, "comment"},
      {end + 8, {3, 0, 3, 0}, "directory: expected"},
      {end + 8, {1, 0, 1, 0}, "directory"},
  };
  for (const Edit& e : edits) CHECK_THROWS_TEXT(FormatError, e.text, read(edited(e.at, e.bytes)));
  CHECK_THROWS_TEXT(LimitError, "zip64",
                    read(edited(entry + 20, {255, 255, 255, 255, 255, 255, 255, 255})));
  // The second entry becomes a copy of the first: two members with the same bytes of the file.
  std::string twin = whole;
  twin.replace(second, second - entry, whole.substr(entry, second - entry));
  CHECK_THROWS_TEXT(FormatError, "members: expected one after another, got two that overlap",
                    read(twin));
}
