#include "io/safetensors_header.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <braid/core/error.hpp>
#include <braid/core/io/checked.hpp>

#include <braid/core/io/json.hpp>

static_assert(
    std::endian::native == std::endian::little,
    "safetensors files are little-endian, and are read and written as they lie in memory");

namespace braid::io {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::size_t kShortestEntry =
    std::string_view(R"("":{"dtype":"U8","shape":[],"data_offsets":[0,0]})").size();

struct TypeName {
  std::string_view name;
  DType dtype;
};
constexpr TypeName kTypes[] = {{"BOOL", DType::bool_},  {"U8", DType::uint8},
                               {"I32", DType::int32},   {"I64", DType::int64},
                               {"F16", DType::float16}, {"BF16", DType::bfloat16},
                               {"F32", DType::float32}, {"F64", DType::float64}};
constexpr std::string_view kOtherTypes[] = {"F4",      "F6_E2M3", "F6_E3M2", "F8_E5M2",
                                            "F8_E4M3", "F8_E8M0", "I8",      "I16",
                                            "U16",     "U32",     "U64",     "C64"};
constexpr std::string_view kExpectedTypes = "one of BOOL, U8, I32, I64, F16, BF16, F32, F64";

[[noreturn]] void bad(const Source& file, std::uint64_t at, std::string field, std::string expected,
                      std::string got) {
  throw FormatError(file.path(), static_cast<std::int64_t>(at), std::move(field),
                    std::move(expected), std::move(got));
}

/// Reads the text of the header. Checks its length against the size of the file before.
std::string read_text(const Source& file, std::uint64_t max_header) {
  if (file.size() < kLengthBytes)
    bad(file, 0, "file", "at least 8 bytes (the header's length)", str(file.size(), " bytes"));
  std::uint64_t length = 0;
  file.read(&length, kLengthBytes, 0);
  const std::uint64_t rest = file.size() - kLengthBytes;
  if (length > rest)
    bad(file, 0, "header length", str("at most ", rest, " (the rest of the file)"), str(length));
  if (length > max_header)
    throw LimitError(file.path(), 0, "header length", str("at most ", max_header), str(length));
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(text.data(), length, kLengthBytes);
  if (text.empty() || text[0] != '{')
    bad(file, kLengthBytes, "header", "'{' as its first byte",
        text.empty() ? "an empty header" : quoted(text.substr(0, 1)));
  return text;
}

class HeaderParser {
 public:
  HeaderParser(const Source& file, std::string_view text)
      : file_(file), json_(text, kLengthBytes, file.path()) {
    // Reserves at most as many entries as a text of this length can hold. Growing the vector step
    // by step would take twice as much memory.
    const auto braces = static_cast<std::size_t>(std::count(text.begin(), text.end(), '{'));
    header_.entries.reserve(std::min({braces, text.size() / kShortestEntry, kMaxTensors}));
  }

  SafetensorsHeader parse() {
    json_.expect('{', "header");
    if (!json_.accept('}')) {
      do {
        const std::uint64_t where = json_.offset();
        std::string name = json_.string("tensor name", kMaxNameBytes);
        if (!is_good_name(name))
          bad(file_, where, "tensor name", "no control characters", quoted(name));
        json_.expect(':', "header");
        if (name == kMetadataKey) metadata(where);
        else entry(std::move(name), where);
      } while (json_.accept(','));
      json_.expect('}', "header");
    }
    json_.expect_padding("header");
    return std::move(header_);
  }

 private:
  void metadata(std::uint64_t where) {
    if (has_metadata_)
      bad(file_, where, std::string(kMetadataKey), "one entry of this name", "a second one");
    has_metadata_ = true;
    json_.expect('{', kMetadataKey);
    if (json_.accept('}')) return;
    std::size_t bytes = 0;
    do {
      std::string key = json_.string("metadata key", kMaxNameBytes);
      json_.expect(':', kMetadataKey);
      std::string value = json_.string("metadata value", kMaxMetadataBytes);
      bytes += key.size() + value.size();  // both are parts of the header, so this cannot wrap
      if (bytes > kMaxMetadataBytes)
        throw LimitError(file_.path(), static_cast<std::int64_t>(where), std::string(kMetadataKey),
                         str("at most ", kMaxMetadataBytes, " bytes"), "more");
      header_.metadata.emplace_back(std::move(key), std::move(value));
    } while (json_.accept(','));
    json_.expect('}', kMetadataKey);
    std::vector<std::string_view> keys;
    for (const auto& pair : header_.metadata) keys.push_back(pair.first);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end())
      bad(file_, where, "metadata key", "each key once", str("a second ", quoted(*twice)));
  }

  void entry(std::string name, std::uint64_t where) {
    if (header_.entries.size() == kMaxTensors)
      throw LimitError(file_.path(), static_cast<std::int64_t>(where), "tensors",
                       str("at most ", kMaxTensors), "more");
    SafetensorsEntry e;
    e.where = where;
    e.name = std::move(name);
    const std::string of = " of " + quoted(e.name);
    bool has_type = false, has_shape = false, has_offsets = false;
    json_.expect('{', "tensor" + of);
    if (!json_.accept('}')) {
      do {
        const std::uint64_t at = json_.offset();
        const std::string key = json_.string("key" + of, kMaxNameBytes);
        bool* const seen = key == "dtype"          ? &has_type
                           : key == "shape"        ? &has_shape
                           : key == "data_offsets" ? &has_offsets
                                                   : nullptr;
        if (seen == nullptr)
          bad(file_, at, "key" + of, "one of dtype, shape, data_offsets", quoted(key));
        if (*seen) bad(file_, at, "key" + of, "each key once", str("a second ", key));
        *seen = true;
        json_.expect(':', key + of);
        if (seen == &has_type) e.dtype = type(of);
        else if (seen == &has_shape) shape(e, of);
        else offsets(e, of);
      } while (json_.accept(','));
      json_.expect('}', "tensor" + of);
    }
    const char* missing = !has_type      ? "dtype"
                          : !has_shape   ? "shape"
                          : !has_offsets ? "data_offsets"
                                         : nullptr;
    if (missing != nullptr)
      bad(file_, where, "tensor" + of, "the keys dtype, shape, data_offsets",
          str("none called ", missing));
    header_.entries.push_back(std::move(e));
  }

  DType type(const std::string& of) {
    const std::uint64_t at = json_.offset();
    const std::string name = json_.string("dtype" + of, kMaxNameBytes);
    for (const TypeName& t : kTypes)
      if (name == t.name) return t.dtype;
    const bool known =
        std::find(std::begin(kOtherTypes), std::end(kOtherTypes), name) != std::end(kOtherTypes);
    bad(file_, at, "dtype" + of, std::string(kExpectedTypes),
        known ? str(name, ", which Braid does not have") : quoted(name));
  }

  void shape(SafetensorsEntry& e, const std::string& of) {
    json_.expect('[', "shape" + of);
    if (json_.accept(']')) return;
    do {
      if (e.shape.rank() == kMaxRank)
        throw LimitError(file_.path(), static_cast<std::int64_t>(json_.offset()), "shape" + of,
                         str("at most ", kMaxRank, " sizes (a tensor has no more)"), "more");
      e.shape.push_back(json_.integer("shape" + of));
    } while (json_.accept(','));
    json_.expect(']', "shape" + of);
  }

  void offsets(SafetensorsEntry& e, const std::string& of) {
    json_.expect('[', "data_offsets" + of);
    e.begin = static_cast<std::uint64_t>(json_.integer("data_offsets" + of));
    json_.expect(',', "data_offsets" + of);
    e.end = static_cast<std::uint64_t>(json_.integer("data_offsets" + of));
    json_.expect(']', "data_offsets" + of);
  }

  const Source& file_;
  JsonReader json_;
  SafetensorsHeader header_;
  bool has_metadata_ = false;
};

/// Checks that each tensor's bytes are in the file and are as many as its shape needs, that names
/// are unique, and that the tensors cover the data without gap or overlap. Makes `begin` and `end`
/// offsets from the start of the file.
void check_layout(const Source& file, SafetensorsHeader& header, std::uint64_t data_begin) {
  const std::uint64_t data_bytes = file.size() - data_begin;
  std::vector<SafetensorsEntry*> order;
  order.reserve(header.entries.size());
  for (SafetensorsEntry& e : header.entries) {
    const std::string of = " of " + quoted(e.name);
    std::uint64_t bytes = 0;
    if (!checked_bytes(e.shape.span(), size_of(e.dtype), bytes))
      bad(file, e.where, "shape" + of, "at most 2^63 - 1 bytes", str(e.shape, " ", e.dtype));
    if (e.begin > e.end || e.end > data_bytes)
      bad(file, e.where, "data_offsets" + of, str("begin <= end <= ", data_bytes),
          str("[", e.begin, ", ", e.end, "]"));
    if (e.end - e.begin != bytes)
      bad(file, e.where, "data_offsets" + of, str(bytes, " bytes for ", e.shape, " ", e.dtype),
          str(e.end - e.begin));
    order.push_back(&e);
  }

  std::sort(order.begin(), order.end(),
            [](const SafetensorsEntry* a, const SafetensorsEntry* b) { return a->name < b->name; });
  const auto twice = std::adjacent_find(
      order.begin(), order.end(),
      [](const SafetensorsEntry* a, const SafetensorsEntry* b) { return a->name == b->name; });
  if (twice != order.end())
    bad(file, std::max((*twice)->where, (*(twice + 1))->where), "tensor name", "each name once",
        str("a second ", quoted((*twice)->name)));

  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::uint64_t covered = 0;
  for (SafetensorsEntry* e : order) {
    if (e->begin != covered)
      bad(file, e->where, "data_offsets of " + quoted(e->name),
          str("begin == ", covered, " (no gap, no overlap)"), str(e->begin));
    covered = e->end;
  }
  if (covered != data_bytes)
    bad(file, data_begin + covered, "file", str("its end after ", covered, " bytes of data"),
        str(data_bytes, " bytes"));
  for (SafetensorsEntry& e : header.entries) {
    e.begin += data_begin;  // at most the file's size, so no overflow
    e.end += data_begin;
  }
}

}  // namespace

std::string_view safetensors_name(DType dtype) noexcept {
  for (const TypeName& t : kTypes)
    if (t.dtype == dtype) return t.name;
  return {};
}

bool is_good_name(std::string_view name) noexcept {
  return is_utf8(name) && std::none_of(name.begin(), name.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

SafetensorsHeader read_safetensors_header(const Source& file, std::uint64_t max_header) {
  const std::string text = read_text(file, max_header);
  SafetensorsHeader header = HeaderParser(file, text).parse();
  check_layout(file, header, kLengthBytes + text.size());
  return header;
}

}  // namespace braid::io
