#include <sys/resource.h>
#include <unistd.h>
#include <algorithm>
#include <cmath>

#include <cstdio>
#include <cstring>
#include <map>

#include <braid/braid.hpp>

#include "formats/gzip.hpp"
#include "idx_files.hpp"
#include "nn/refused.hpp"
#include "support/child.hpp"
#include "support/sanitized.hpp"
#include "support/temporary.hpp"
#if BRAID_WITH_ZLIB
#include <zlib.h>
#endif

using namespace braid;
using namespace braid::test;

namespace {

std::string bytes(std::initializer_list<int> list) {
  std::string s;
  for (const int b : list) s += static_cast<char>(b);
  return s;
}

Tensor parse(const std::string& file, const data::IdxOptions& options = {}) {
  return data::read_idx(as_bytes(file), options, "file");
}

#define REFUSES(text, ...) CHECK_THROWS_TEXT(FormatError, text, parse(__VA_ARGS__))

}  // namespace

TEST_CASE("idx: every type of the format", "[data][idx]") {
  struct Row {
    int type;
    std::vector<std::uint32_t> sizes;
    std::string data;
    DType dtype;
    std::vector<double> numbers;
  };
  const Row rows[] = {
      {0x08, {2, 3}, bytes({0, 1, 2, 127, 128, 255}), DType::uint8, {0, 1, 2, 127, 128, 255}},
      {0x09, {3}, bytes({0x7f, 0x80, 0xff}), DType::int32, {127, -128, -1}},
      {0x0b, {3}, bytes({1, 2, 0x80, 0, 0xff, 0xfe}), DType::int32, {258, -32768, -2}},
      {0x0c, {2}, bytes({1, 2, 3, 4, 0x80, 0, 0, 0}), DType::int32, {0x01020304, -0x1p31}},
      {0x0d, {2}, bytes({0x3f, 0xc0, 0, 0, 0xff, 0x80, 0, 0}), DType::float32, {1.5, -INFINITY}},
      {0x0e, {1}, bytes({0xc0, 4, 0, 0, 0, 0, 0, 0}), DType::float64, {-2.5}},
  };
  for (const Row& row : rows) {
    const Tensor t = parse(header(row.type, row.sizes) + row.data);
    CHECK(t.shape() == Shape(std::vector<std::int64_t>(row.sizes.begin(), row.sizes.end())));
    CHECK(t.dtype() == row.dtype);
    CHECK(t.to_vector<double>() == row.numbers);
  }
}

TEST_CASE("idx: shapes", "[data][idx]") {
  CHECK(parse(header(0x08, {1, 1, 1, 1, 1, 1, 1, 2}) + "ab").shape() ==
        Shape{1, 1, 1, 1, 1, 1, 1, 2});
  CHECK(parse(header(0x08, {0})).shape() == Shape{0});
  CHECK(parse(header(0x0e, {0, 4294967295u})).shape() == Shape{0, 4294967295});
  const std::string large(200'001, 'x');  // several pieces, the last of them partial
  const Tensor t = parse(header(0x08, {200'001}) + large);
  CHECK(std::memcmp(t.data<std::uint8_t>(), large.data(), large.size()) == 0);
}

TEST_CASE("idx: hostile files", "[data][idx][hostile]") {
  const std::pair<const char*, std::string> rows[] = {
      {"header: expected 4 more bytes, got 0 (byte 0)", ""},
      {"header: expected 4 more bytes, got 3", bytes({0, 0, 8})},
      {"magic: expected 0x00 0x00, got 0x01 0x00 (byte 0)", bytes({1, 0, 8, 1, 0, 0, 0, 0})},
      {"magic: expected 0x00 0x00, got 0x00 0x89", bytes({0, 0x89, 8, 1, 0, 0, 0, 0})},
      {"number of dimensions: expected 1 to 8, got 0 (byte 3)", bytes({0, 0, 8, 0})},
      {"number of dimensions: expected 1 to 8, got 9",
       header(0x08, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "a"},
      {"number of dimensions: expected 1 to 8, got 255", bytes({0, 0, 8, 255})},
      {"header: expected 8 more bytes, got 7 (byte 4)", header(0x08, {1, 1}).substr(0, 11)},
      {"data: expected 6 bytes for [2, 3], got 5 (byte 12)", header(0x08, {2, 3}) + "abcde"},
      {"data: expected 6 bytes for [2, 3], got 7", header(0x08, {2, 3}) + "abcdefg"},
      {"data: expected 8 bytes for [2], got 2", header(0x0c, {2}) + "ab"},
      {"data: expected 0 bytes for [0], got 1", header(0x08, {0}) + "a"},
      // Products that wrap to 0 or to the size of the file.
      {"sizes: expected at most 2^63 - 1 bytes, got [65536, 65536, 65536, 65536]",
       header(0x08, {65536, 65536, 65536, 65536})},
      {"sizes: expected at most 2^63 - 1 bytes", header(0x08, {4294967295u, 4294967295u, 2})},
      {"sizes: expected at most 2^63 - 1 bytes", header(0x08, {0, 4294967295u, 4294967295u, 2})},
  };
  for (const auto& row : rows) REFUSES(str("file: ", row.first), row.second);
  for (const int type : {0x00, 0x07, 0x0a, 0x0f, 0x88, 0xff})
    REFUSES("file: type: expected one of 0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e, got 0x",
            header(type, {0}));
  CHECK_THROWS_TEXT(LimitError,
                    "file: sizes: expected at most 4294967296 bytes of numbers, got 4295032832 for "
                    "[65537, 65536]",
                    parse(header(0x08, {65537, 65536}) + "abc"));
  CHECK_THROWS_TEXT(LimitError, "file: sizes: expected at most 5 bytes of numbers, got 6 for [6]",
                    parse(header(0x08, {6}) + "abcdef", {.max_bytes = 5}));
  CHECK(parse(header(0x08, {6}) + "abcdef", {.max_bytes = 6}).numel() == 6);
}

TEST_CASE(
    "idx: every prefix is refused; every changed byte gives a tensor of its bytes or an error",
    "[data][idx][hostile]") {
  const std::string whole = header(0x0b, {2, 2}) + "abcdefgh";
  REQUIRE(parse(whole).numel() == 4);
  for (std::size_t n = 0; n < whole.size(); ++n) REFUSES("file: ", whole.substr(0, n));
  REFUSES("data: expected 8 bytes for [2, 2], got 9", whole + "i");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      try {
        const std::map<char, std::int64_t> sizes{{8, 1},  {9, 1},  {11, 2},
                                                 {12, 4}, {13, 4}, {14, 8}};
        const Tensor t = parse(changed);
        CHECK(t.numel() * sizes.at(changed[2]) == 8);
      } catch (const FormatError&) {
        CHECK(at < 12);
      }
    }
  }
}

TEST_CASE("idx: from a file, by content and not by name", "[data][idx]") {
  const TemporaryFolder folder;
  write_file(folder / "numbers.gz", header(0x08, {3}) + "abc");
  CHECK(data::read_idx(folder / "numbers.gz").numel() == 3);
  CHECK_THROWS_TEXT(IoError, "open*none*No such file", data::read_idx(folder / "none"));
  CHECK_THROWS_TEXT(IoError, "expected a regular file", data::read_idx(folder.path()));
}

#if BRAID_WITH_ZLIB

namespace {

std::string gzip(const std::string& text, int level = 9) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

TEST_CASE("idx: gzip gives the same tensor", "[data][idx][gzip]") {
  std::string text(300'007, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 5);
  for (const int level : {0, 1, 9}) {
    const Tensor t = parse(gzip(header(0x08, {300'007}) + text, level));
    REQUIRE(t.numel() == 300'007);
    CHECK(std::memcmp(t.data<std::uint8_t>(), text.data(), text.size()) == 0);
  }
  const std::string number = bytes({0xc0, 0x04, 0, 0, 0, 0, 0, 0});
  CHECK(parse(gzip(header(0x0e, {1}) + number)).item<double>() == -2.5);
  CHECK(parse(gzip(header(0x08, {0, 7}))).shape() == Shape{0, 7});
  const TemporaryFolder folder;
  write_file(folder / "plain-name", gzip(header(0x08, {3}) + "abc"));
  CHECK(data::read_idx(folder / "plain-name").numel() == 3);
}

TEST_CASE("idx: hostile gzip", "[data][idx][gzip][hostile]") {
  const std::string good = gzip(header(0x08, {2, 3}) + "abcdef");
  REQUIRE(parse(good).numel() == 6);
  for (std::size_t n = 2; n < good.size(); ++n) {
    INFO(n);
    REFUSES("file: gzip: expected more compressed data, got the end of the file",
            good.substr(0, n));
  }
  std::string checksum = good, length = good;
  checksum[good.size() - 6] = static_cast<char>(good[good.size() - 6] ^ 1);
  length[good.size() - 1] = static_cast<char>(good[good.size() - 1] ^ 1);
  const std::pair<const char*, std::string> rows[] = {
      {"gzip: expected the end of the file after one member, got more bytes", good + "x"},
      {"gzip: expected the end of the file after one member, got more bytes", good + good},
      {"data: expected 6 decompressed bytes for [2, 3], got 5",
       gzip(header(0x08, {2, 3}) + "abcde")},
      {"gzip: expected the end of the decompressed data, got more of it",
       gzip(header(0x08, {2, 3}) + "abcdefg")},
      {"gzip: expected the end of the decompressed data, got more of it",
       gzip(header(0x08, {0}) + std::string(1'000'000, 'x'))},
      {"header: expected 4 more decompressed bytes, got 0", gzip("")},
      {"header: expected 8 more decompressed bytes, got 4",
       gzip(header(0x08, {2, 3}).substr(0, 8))},
      {"magic: expected 0x00 0x00, got 0x1f 0x8b", gzip(good)},  // only one layer is decompressed
      {"gzip: expected valid compressed data, got incorrect data check", checksum},
      {"gzip: expected valid compressed data, got incorrect length check", length},
  };
  for (const auto& row : rows) REFUSES(str("file: ", row.first), row.second);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = good;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      try {
        // only these bits may change: gzip's flags, date and system, the padding of the last byte
        const Tensor t = parse(changed);
        CHECK((t.numel() == 6 && std::memcmp(t.data<std::uint8_t>(), "abcdef", 6) == 0));
      } catch (const FormatError&) {
        ++refused;
      }
    }
  }
  CHECK(refused >= 8 * (good.size() - 11));
}

TEST_CASE("idx: a gzip file that promises much costs no memory", "[data][idx][gzip][hostile]") {
  const std::size_t before = memory_stats(Device("cpu")).in_use;
  reset_peak_memory(Device("cpu"));
  const auto all = [](std::uint64_t most) {
    return data::IdxOptions{.max_bytes = most, .max_ratio = most};
  };
  // The header declares 3.9 GB. The file has 100 MB of zeros, compressed to 100 kB.
  REFUSES("file: data: expected 3900000000 decompressed bytes for [3900000000], got 100000000",
          gzip(header(0x08, {3'900'000'000u}) + std::string(100'000'000, '\0')),
          all(std::uint64_t{1} << 40));
  // The header declares 3 bytes, the file has 100 MB. Decompression stops there.
  REFUSES("file: gzip: expected the end of the decompressed data, got more of it",
          gzip(header(0x08, {3}) + std::string(100'000'000, '\0')));
  CHECK_THROWS_TEXT(LimitError,
                    "file: sizes: expected at most 4294967296 bytes of numbers, got 4294967297",
                    parse(gzip(header(0x08, {1, 641, 6700417}))));
  CHECK(memory_stats(Device("cpu")).peak == before);
}

TEST_CASE("idx: how much a compressed file may become", "[data][idx][gzip][hostile]") {
  constexpr std::uint32_t kPiece = 1 << 20;  // always allowed
  CHECK(parse(gzip(header(0x08, {kPiece}) + std::string(kPiece, '\0'))).numel() == kPiece);
  const std::string bomb = gzip(header(0x08, {kPiece + 1}) + std::string(kPiece + 1, '\0'));
  REQUIRE(bomb.size() * 100 < kPiece);
  CHECK_THROWS_TEXT(LimitError,
                    str("file: sizes: expected at most 1048576 bytes of numbers from ", bomb.size(),
                        " compressed ones (max_ratio 100), got 1048577 for [1048577] (byte 4)"),
                    parse(bomb));
  const std::uint64_t needed = kPiece / bomb.size() + 1;
  CHECK(parse(bomb, {.max_ratio = needed}).numel() == kPiece + 1);
  // its product with the size of the file does not overflow
  CHECK(parse(bomb, {.max_ratio = ~std::uint64_t{0}}).numel() == kPiece + 1);
  CHECK_THROWS_TEXT(LimitError, "sizes: expected at most", parse(bomb, {.max_ratio = needed - 1}));
  CHECK_THROWS_TEXT(LimitError, "sizes: expected at most 1048576", parse(bomb, {.max_ratio = 0}));
}

namespace {

// How many bytes the file code reads in all, and in its largest single read.
std::size_t bytes_read = 0, largest_read = 0;

/// Counts reads during its lifetime.
class ReadCount {
 public:
  ReadCount() {
    bytes_read = largest_read = 0;
    calls_ = io::real_file_system();
    calls_.pread = [](int fd, void* to, std::size_t bytes, std::int64_t offset) {
      const long got = io::real_file_system().pread(fd, to, bytes, offset);
      largest_read = std::max(largest_read, bytes);
      bytes_read += static_cast<std::size_t>(std::max(got, 0L));
      return got;
    };
    io::set_file_system(&calls_);
  }
  ReadCount(const ReadCount&) = delete;
  ReadCount& operator=(const ReadCount&) = delete;
  ~ReadCount() { io::set_file_system(nullptr); }

 private:
  io::FileSystem calls_;
};

}  // namespace

TEST_CASE("idx: a compressed file is read once, in pieces, and no further than its first mistake",
          "[data][idx][gzip][hostile]") {
  constexpr std::size_t kHole = std::size_t{64} << 20;
  const TemporaryFolder folder;
  const auto write_sparse = [&](const std::string& name, const std::string& text) {
    write_file(folder / name, text);
    REQUIRE(::truncate((folder / name).c_str(), kHole) == 0);
    return folder / name;
  };
  std::string noise(1'000'000, '\0');  // does not compress
  for (std::size_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<char>((i * 2654435761u) >> 13);
  const std::string whole = gzip(header(0x08, {1'000'000}) + noise);
  write_file(folder / "good", whole);
  {
    const ReadCount count;
    CHECK(data::read_idx(folder / "good").numel() == 1'000'000);
    CHECK(bytes_read == whole.size() + 2);  // 2 more bytes to detect the format
    CHECK(largest_read <= 64 * 1024);
  }
  for (const std::string& text : {std::string("\x1f\x8b"), gzip(header(0x08, {3}) + "abc")}) {
    const std::string path = write_sparse("hostile", text);
    const ReadCount count;
    CHECK_THROWS_TEXT(FormatError, "hostile: gzip: expected ", data::read_idx(path));
    CHECK(bytes_read <= 2 * 64 * 1024);
    CHECK(largest_read <= 64 * 1024);
  }
}

#if !BRAID_SANITIZED  // sanitizers reserve more memory than the limit leaves

TEST_CASE("idx child: too little memory", "[.child][idx-memory]") {
  const std::string file = gzip(header(0x08, {200'000'000u}) + std::string(200'000'000, '\0'));
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_AS, &limit) == 0);
  long pages = 0;
  std::FILE* statm = std::fopen("/proc/self/statm", "r");
  REQUIRE(statm != nullptr);
  REQUIRE(std::fscanf(statm, "%ld", &pages) == 1);
  std::fclose(statm);
  limit.rlim_cur = static_cast<rlim_t>(pages) * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) +
                   (rlim_t{64} << 20);
  REQUIRE(::setrlimit(RLIMIT_AS, &limit) == 0);
  CHECK_THROWS_TEXT(OutOfMemoryError, "cpu:0: allocate: expected *(reading file)",
                    parse(file, {.max_ratio = 2000}));
  CHECK(parse(gzip(header(0x08, {3}) + "abc")).numel() == 3);  // all memory was freed
}

TEST_CASE("idx: too little memory is an OutOfMemoryError", "[data][idx][gzip][hostile]") {
  CHECK_CHILD("", "[.child][idx-memory]");
}

#endif

#else

TEST_CASE("idx: gzip without zlib is a clear error", "[data][idx][gzip]") {
  CHECK_THROWS_TEXT(IoError,
                    "decompress: file: expected a file that is not compressed, got gzip: this "
                    "build of Braid has no zlib",
                    parse(bytes({0x1f, 0x8b, 8, 0})));
}

#endif
