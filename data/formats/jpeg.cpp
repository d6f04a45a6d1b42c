#include "formats/jpeg.hpp"

#include <cstddef>
#include <cstdint>

#include <braid/core/error.hpp>

namespace braid::data {
namespace {

enum Marker : unsigned char {
  kTables = 0xc4,
  kScan = 0xda,
  kFill = 0xff,
};
constexpr int kMostCodes = 256, kMostScans = 100;

class Checker {
 public:
  Checker(std::span<const unsigned char> file, const std::string& name)
      : file_(file), name_(name) {}

  /// Before the first scan a segment's length says where the next one begins, and a segment may
  /// hold any bytes, as a thumbnail does. From there on a marker is a marker wherever it is:
  /// compressed data contains none.
  void check() {
    std::size_t at = 2;  // after the start of the image
    while (at < file_.size()) {
      if (byte(at++) != kFill) continue;
      while (byte(at) == kFill && at < file_.size()) ++at;
      const unsigned char marker = byte(at++);
      if (marker == kScan) break;
      if (marker == kTables) check_tables(at);
      const std::size_t length = word(at);
      if (length < 2)
        throw FormatError(name_, offset(at), "length of a segment", "at least 2", str(length));
      at += length;
    }
    for (int scans = 1; at + 1 < file_.size(); ++at) {
      if (byte(at) != kFill) continue;
      if (byte(at + 1) == kTables) check_tables(at + 2);
      if (byte(at + 1) == kScan && ++scans > kMostScans)
        throw LimitError(name_, offset(at), "scans", str("at most ", kMostScans), "more");
    }
  }

 private:
  /// 0 behind the end, as in stb.
  [[nodiscard]] unsigned char byte(std::size_t at) const {
    return at < file_.size() ? file_[at] : 0;
  }
  [[nodiscard]] std::size_t word(std::size_t at) const {
    return std::size_t{byte(at)} << 8 | byte(at + 1);
  }
  static std::int64_t offset(std::size_t at) { return static_cast<std::int64_t>(at); }

  /// A segment of Huffman tables, from its length on: for each table its number, then how many
  /// codes of 1 to 16 bits it has, then a byte for each code.
  void check_tables(std::size_t at) const {
    auto rest = static_cast<std::int64_t>(word(at)) - 2;
    at += 2;
    while (rest > 0) {
      int codes = 0;
      for (std::size_t bits = 1; bits <= 16; ++bits) codes += byte(at + bits);
      if (codes > kMostCodes)
        throw FormatError(name_, offset(at), "Huffman table", str("at most ", kMostCodes, " codes"),
                          str(codes));
      at += 17 + static_cast<std::size_t>(codes);
      rest -= 17 + codes;
    }
  }

  std::span<const unsigned char> file_;
  const std::string& name_;
};

}  // namespace

void check_jpeg(std::span<const unsigned char> file, const std::string& name) {
  Checker(file, name).check();
}

}  // namespace braid::data
