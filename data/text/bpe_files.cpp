// GPT-2's files vocab.json and merges.txt.
#include <braid/core/internal/io/file.hpp>
#include <braid/core/internal/io/json.hpp>

#include <braid/core/error.hpp>
#include <braid/data/bpe.hpp>
#include <braid/data/dataset.hpp>

namespace braid::data {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
constexpr std::size_t kLongestToken = 1024;  // bytes

/// The files' table of bytes: printable characters of Latin-1 stand for themselves, and the other
/// bytes are characters from U+0100 on. The order of `bytes` is that of their ids in GPT-2.
struct ByteTable {
  std::array<std::uint8_t, 256> bytes{};
  std::array<std::int16_t, 0x200> byte_of{};  // by character; -1 if it stands for none

  constexpr ByteTable() {
    byte_of.fill(-1);
    std::size_t n = 0;
    const auto printable = [](int b) {
      return (b > 0x20 && b < 0x7f) || (b > 0xa0 && b < 0x100 && b != 0xad);
    };
    for (int b = 0; b < 256; ++b) {
      if (!printable(b)) continue;
      byte_of[static_cast<std::size_t>(b)] = static_cast<std::int16_t>(b);
      bytes[n++] = static_cast<std::uint8_t>(b);
    }
    std::size_t character = 0x100;
    for (int b = 0; b < 256; ++b) {
      if (printable(b)) continue;
      byte_of[character++] = static_cast<std::int16_t>(b);
      bytes[n++] = static_cast<std::uint8_t>(b);
    }
  }
};
constexpr ByteTable kTable;

std::string read_file(const std::string& path) {
  const io::InputFile file(path);
  if (file.size() > kMostBytes)
    throw LimitError(path, 0, "size", str("at most ", kMostBytes, " bytes"),
                     str(file.size(), " bytes"));
  return file.read_all();
}

/// Returns the bytes of a token that a file has at this offset.
std::string bytes_of(std::string_view written, const std::string& path, std::uint64_t offset) {
  std::string bytes;
  for (std::string_view rest = written; !rest.empty();) {
    std::uint32_t code = 0;
    const std::size_t length = io::first_utf8(rest, code);
    if (length == 0 || code >= kTable.byte_of.size() || kTable.byte_of[code] < 0)
      throw FormatError(path, static_cast<std::int64_t>(offset), "token",
                        "characters that stand for bytes", io::quoted(written));
    bytes += static_cast<char>(kTable.byte_of[code]);
    rest.remove_prefix(length);
  }
  if (bytes.empty() || bytes.size() > kLongestToken)
    throw LimitError(path, static_cast<std::int64_t>(offset), "token",
                     str("1 to ", kLongestToken, " bytes"), str(bytes.size(), " bytes"));
  return bytes;
}

}  // namespace

BytePairVocabulary::BytePairVocabulary() {
  for (const std::uint8_t b : kTable.bytes) {
    of_byte_[b] = size();
    tokens_.emplace_back(1, static_cast<char>(b));
  }
  end_ = size();
  tokens_.emplace_back(kEndOfText);
}

BytePairVocabulary::BytePairVocabulary(const std::string& vocab_json,
                                       const std::string& merges_txt) {
  const Ids ids = read_tokens(vocab_json);
  for (std::size_t b = 0; b < of_byte_.size(); ++b) {
    const char byte = static_cast<char>(b);
    const auto found = ids.find(std::string_view(&byte, 1));
    if (found == ids.end())
      throw FormatError(vocab_json, 0, "tokens", "a token for each byte", str("none for byte ", b));
    of_byte_[b] = found->second;
  }
  if (const auto end = ids.find(kEndOfText); end != ids.end()) end_ = end->second;
  read_merges(merges_txt, ids);
}

BytePairVocabulary::Ids BytePairVocabulary::read_tokens(const std::string& path) {
  const std::string text = read_file(path);
  struct Entry {
    std::string bytes;
    std::int64_t id;
    std::uint64_t offset;
  };
  std::vector<Entry> entries;
  io::JsonReader json(text, 0, path);
  json.expect('{', "tokens");
  if (!json.accept('}')) {
    do {
      const std::uint64_t offset = json.offset();
      // a byte is at most two bytes of UTF-8
      std::string bytes = bytes_of(json.string("token", 2 * kLongestToken), path, offset);
      json.expect(':', "token");
      entries.push_back({std::move(bytes), json.integer("id"), offset});
    } while (json.accept(','));
    json.expect('}', "tokens");
  }
  if (const auto at = text.find_first_not_of(" \t\r\n", json.offset()); at != text.npos)
    throw FormatError(path, static_cast<std::int64_t>(at), "tokens", "nothing after the last brace",
                      io::quoted(text.substr(at, 16)));
  tokens_.resize(entries.size());
  std::vector<bool> found(entries.size());
  for (Entry& e : entries) {
    const auto at = static_cast<std::size_t>(e.id);
    if (at >= found.size() || found[at])
      throw FormatError(path, static_cast<std::int64_t>(e.offset), "id",
                        str("each of 0 to ", found.size() - 1, " once"), str(e.id));
    found[at] = true;
    tokens_[at] = std::move(e.bytes);
  }
  Ids ids;
  for (const std::string& token : tokens_)
    ids.emplace(token, static_cast<std::int64_t>(ids.size()));
  if (ids.size() != tokens_.size())
    throw FormatError(path, 0, "tokens", "each token once", "one of them twice");
  return ids;
}

void BytePairVocabulary::read_merges(const std::string& path, const Ids& ids) {
  const std::string text = read_file(path);
  std::size_t begin = text.starts_with("#version") ? std::min(text.find('\n'), text.size()) : 0;
  if (begin > 0 && begin < text.size()) ++begin;
  for (std::size_t at = begin, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    const std::size_t space = line.find(' ');
    const auto fail = [&](const char* expected) {
      throw FormatError(path, static_cast<std::int64_t>(at), "merge", expected, io::quoted(line));
    };
    if (space == line.npos || line.find(' ', space + 1) != line.npos) fail("two tokens in a line");
    const std::string first = bytes_of(line.substr(0, space), path, at),
                      second = bytes_of(line.substr(space + 1), path, at);
    const auto a = ids.find(first), b = ids.find(second), both = ids.find(first + second);
    if (a == ids.end() || b == ids.end() || both == ids.end())
      fail("tokens of the vocabulary, which give a token of it");
    const auto key =
        (static_cast<std::uint64_t>(a->second) << 32) | static_cast<std::uint64_t>(b->second);
    const auto rank = static_cast<std::int64_t>(merges_.size());
    if (!merges_.try_emplace(key, Merge{rank, both->second}).second) fail("each pair once");
  }
}

}  // namespace braid::data
