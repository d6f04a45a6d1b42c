// Tests of malformed files. Each rule of the format is violated once, and the type and the text of
// the error are checked.
#include <sys/resource.h>

#include "safetensors_files.hpp"
#include "support/child.hpp"
#include "support/sanitized.hpp"

namespace braid::test {
namespace {

/// Returns a file with one tensor called x, and `data` bytes.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                std::size_t data = 0) {
  return file(R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
                  offsets + "}}",
              data);
}
std::string entry(const std::string& name, int begin, int end) {
  return "\"" + name + R"(":{"dtype":"U8","shape":[)" + std::to_string(end - begin) +
         R"(],"data_offsets":[)" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

/// Returns a file with these entries.
std::string of(const std::vector<std::string>& entries, std::size_t data = 0) {
  std::string header;
  for (const std::string& e : entries) header += (header.empty() ? "{" : ",") + e;
  return file(header + "}", data);
}

#define REFUSES(text, ...) CHECK_THROWS_TEXT(FormatError, text, parse(__VA_ARGS__))
#define LIMITS(text, ...) CHECK_THROWS_TEXT(LimitError, text, parse(__VA_ARGS__))

const std::string kGood = one("F32", "[2]", "[0,8]", 8);

}  // namespace

TEST_CASE("safetensors: the length of the header is checked before it is read",
          "[safetensors][hostile]") {
  CHECK(parse(kGood).tensors.size() == 1);
  REFUSES("file: file: expected at least 8 bytes (the header's length), got 0 bytes (byte 0)", "");
  REFUSES("file: file: expected at least 8 bytes (the header's length), got 7 bytes",
          std::string(7, '\0'));
  REFUSES("file: header: expected '{' as its first byte, got an empty header (byte 8)",
          length_of(0));
  REFUSES("file: header length: expected at most 2 (the rest of the file), got 3 (byte 0)",
          length_of(3) + "{}");
  REFUSES("header length: expected at most 2 (the rest of the file), got 18446744073709551615",
          length_of(~std::uint64_t{0}) + "{}");
  // adding 8 wraps to 0
  REFUSES("header length: expected at most 2 (the rest of the file), got 18446744073709551608",
          length_of(~std::uint64_t{0} - 7) + "{}");
  REFUSES("header: expected '{' as its first byte, got \" \"", file(" {}"));
  REFUSES("header: expected '{' as its first byte, got \"[\"", file("[]"));
  LIMITS("file: header length: expected at most 16777216, got 16777217",
         length_of(16777217) + std::string(16777217, ' '));
  LIMITS("header length: expected at most 4, got 5", file("{}   "), {.max_header = 4});
  CHECK(parse(file("{}  "), {.max_header = 4}).tensors.empty());
}

TEST_CASE("safetensors: the header is JSON of one form", "[safetensors][hostile]") {
  REFUSES("header: expected '}', got the end of the header", file("{" + entry("x", 0, 1), 1));
  REFUSES("tensor name: expected a string, got \"}\"", file("{" + entry("x", 0, 1) + ",}", 1));
  REFUSES("tensor name: expected a string, got \"x:", file("{x:1}"));
  REFUSES("tensor name: expected a string, got \"'x'", file("{'x':1}"));
  REFUSES("header: expected ':', got \"}\"", file("{\"x\"}"));
  REFUSES("header: expected nothing but spaces after the closing brace, got \"{}\" (byte 10)",
          file("{}{}"));
  REFUSES("nothing but spaces after the closing brace, got \"\\x00\"",
          file(std::string("{}\0", 3)));
  REFUSES("nothing but spaces after the closing brace, got \"\\x0a\"", file("{}\n"));
  REFUSES("tensor of \"x\": expected '{', got \"[", file(R"({"x":[]})"));
  REFUSES("tensor of \"x\": expected '{', got \"null", file(R"({"x":null})"));
  REFUSES("tensor of \"x\": expected the keys dtype, shape, data_offsets, got none called dtype",
          file(R"({"x":{}})"));
  REFUSES("got none called shape", file(R"({"x":{"dtype":"U8","data_offsets":[0,0]}})"));
  REFUSES("got none called data_offsets", file(R"({"x":{"dtype":"U8","shape":[0]}})"));
  REFUSES("key of \"x\": expected one of dtype, shape, data_offsets, got \"stride\"",
          file(R"({"x":{"stride":[1],"dtype":"U8"}})"));
  REFUSES("key of \"x\": expected each key once, got a second dtype",
          file(R"({"x":{"dtype":"U8","dtype":"U8"}})"));
  REFUSES("dtype of \"x\": expected a string, got \"5", file(R"({"x":{"dtype":5}})"));
  REFUSES("shape of \"x\": expected '[', got \"\\x22", file(R"({"x":{"shape":"[1]"}})"));
  REFUSES("shape of \"x\": expected ']', got \"}", file(R"({"x":{"shape":[1}})"));
  // nested arrays are not parsed
  REFUSES("shape of \"x\": expected a whole number*got \"[",
          file(R"({"x":{"shape":[[[[[[[[1]]]]]]]]}})"));
  REFUSES("shape of \"x\": expected a whole number*got \"]", file(R"({"x":{"shape":[1,]}})"));
  REFUSES("data_offsets of \"x\": expected ',', got \"]", file(R"({"x":{"data_offsets":[0]}})"));
  REFUSES("data_offsets of \"x\": expected ']', got \",",
          file(R"({"x":{"data_offsets":[0,1,2]}})"));
}

TEST_CASE("safetensors: numbers are plain decimal integers", "[safetensors][hostile]") {
  const auto with_offset = [](const std::string& number) {
    return one("U8", "[0]", "[" + number + ",0]");
  };
  CHECK(parse(with_offset("0")).tensors.size() == 1);
  for (const char* number : {"-0", "+0", "00", "01", "0.0", "0e0", "0E1", ".0", "0x0", "\"0\"",
                             "true", "null", "NaN", "", "1e999999999"}) {
    INFO(number);
    REFUSES("data_offsets of \"x\": expected ", with_offset(number));
  }
  REFUSES("expected a whole number from 0 to 2^63 - 1 in decimal digits, got \"9223372036854775",
          with_offset("9223372036854775808"));
  // 2^64 wraps to 0
  REFUSES("expected a whole number from 0 to 2^63 - 1 in decimal digits, got \"1844674407370955",
          with_offset("18446744073709551616"));
  REFUSES("expected a whole number", with_offset(std::string(10'000, '9')));
  REFUSES("expected begin <= end <= 0, got [9223372036854775807, 0]",
          with_offset("9223372036854775807"));
}

TEST_CASE("safetensors: dtypes are ours, and named where they are not", "[safetensors][hostile]") {
  for (const char* dtype : {"F4", "F6_E2M3", "F6_E3M2", "F8_E5M2", "F8_E4M3", "F8_E8M0", "I8",
                            "I16", "U16", "U32", "U64", "C64"}) {
    INFO(dtype);
    REFUSES(
        str("file: dtype of \"x\": expected one of BOOL, U8, I32, I64, F16, BF16, F32, F64, got ",
            dtype, ", which Braid does not have"),
        one(dtype, "[0]", "[0,0]"));
  }
  REFUSES("dtype of \"x\": expected one of BOOL, U8, I32, I64, F16, BF16, F32, F64, got \"f32\"",
          one("f32", "[0]", "[0,0]"));
  REFUSES("got \"\"", one("", "[0]", "[0,0]"));
}

TEST_CASE("safetensors: shapes are checked before anything is made of them",
          "[safetensors][hostile]") {
  LIMITS("shape of \"x\": expected at most 8 sizes (a tensor has no more), got more",
         one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]", 1));
  REFUSES("shape of \"x\": expected at most 2^63 - 1 bytes",
          one("F32", "[9223372036854775807]", "[0,8]", 8));
  // 2^32 * 2^32 wraps to 0 elements, 2^62 * 4 to 0 bytes: neither may become an empty tensor.
  REFUSES("shape of \"x\": expected at most 2^63 - 1 bytes, got [4294967296, 4294967296] uint8",
          one("U8", "[4294967296,4294967296]", "[0,0]"));
  REFUSES("shape of \"x\": expected at most 2^63 - 1 bytes, got [4611686018427387904] float32",
          one("F32", "[4611686018427387904]", "[0,0]"));
  REFUSES("shape of \"x\": expected at most 2^63 - 1 bytes",
          one("U8", "[0,4294967296,4294967296]", "[0,0]"));
  CHECK(parse(one("F64", "[0,1152921504606846975]", "[0,0]")).at("x").numel() == 0);
  REFUSES("data_offsets of \"x\": expected 8 bytes for [2] float32, got 4",
          one("F32", "[2]", "[0,4]", 4));
  REFUSES("data_offsets of \"x\": expected 8 bytes for [2] float32, got 9",
          one("F32", "[2]", "[0,9]", 9));
  REFUSES("data_offsets of \"x\": expected 4 bytes for [] float32, got 0",
          one("F32", "[]", "[0,0]"));
  REFUSES("data_offsets of \"x\": expected 4398046511104 bytes for [1099511627776] float32, got 8",
          one("F32", "[1099511627776]", "[0,8]", 8));
}

TEST_CASE("safetensors: the tensors cover the data once", "[safetensors][hostile]") {
  REFUSES("data_offsets of \"x\": expected begin <= end <= 8, got [8, 0]",
          one("F32", "[2]", "[8,0]", 8));
  REFUSES("data_offsets of \"x\": expected begin <= end <= 7, got [0, 8]",
          one("F32", "[2]", "[0,8]", 7));
  REFUSES(
      "data_offsets of \"x\": expected begin <= end <= 8, got [9223372036854775800, "
      "9223372036854775807]",
      one("U8", "[7]", "[9223372036854775800,9223372036854775807]", 8));
  REFUSES("data_offsets of \"x\": expected begin == 0 (no gap, no overlap), got 1",
          of({entry("x", 1, 3)}, 3));
  struct Second {
    int end_of_a, begin, end, data;
  };
  for (const Second& b : {Second{2, 3, 4, 4}, Second{2, 1, 4, 4}, Second{2, 0, 2, 2},
                          Second{4, 2, 2, 4}})  // the last: an empty tensor inside
    REFUSES(str("data_offsets of \"b\": expected begin == ", b.end_of_a,
                " (no gap, no overlap), got ", b.begin),
            of({entry("a", 0, b.end_of_a), entry("b", b.begin, b.end)},
               static_cast<std::size_t>(b.data)));
  REFUSES("file: file: expected its end after 2 bytes of data, got 3 bytes",
          of({entry("a", 0, 2)}, 3));
  REFUSES("file: expected its end after 0 bytes of data, got 1 bytes", file("{}", 1));
  // Any order is valid, with empty tensors at the ends and in between.
  CHECK(parse(of({entry("c", 3, 3), entry("b", 2, 3), entry("e", 2, 2), entry("a", 0, 2),
                  entry("d", 0, 0)},
                 3))
            .tensors.size() == 5);
}

TEST_CASE("safetensors: names", "[safetensors][hostile]") {
  REFUSES("tensor name: expected each name once, got a second \"a\" (byte ",
          of({entry("a", 0, 2), entry("a", 2, 4)}, 4));
  REFUSES("tensor name: expected each name once, got a second \"a\"",
          of({entry("a", 0, 2), entry("\\u0061", 2, 4)}, 4));
  LIMITS("tensor name: expected at most 1024 bytes, got a longer string",
         of({entry(std::string(1025, 'n'), 0, 0)}));
  CHECK(parse(of({entry(std::string(1024, 'n'), 0, 0)})).tensors.size() == 1);
  REFUSES("tensor name: expected no control characters, got \"a\\x00b\"",
          of({entry("a\\u0000b", 0, 0)}));
  REFUSES("tensor name: expected no control characters, got \"\\x1b[31m\"",
          of({entry("\\u001b[31m", 0, 0)}));
  REFUSES("tensor name: expected no control characters, got \"\\x7f\"", of({entry("\x7f", 0, 0)}));
  REFUSES("tensor name: expected no control character in a string, got \"\\x0a",
          of({entry("a\nb", 0, 0)}));
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xe2\x82", "a\xc3"}) {
    REFUSES("tensor name: expected valid UTF-8, got \"", of({entry(bad, 0, 0)}));
  }
  REFUSES("expected a low surrogate after the high one", of({entry("\\ud83d", 0, 0)}));
  REFUSES("expected a low surrogate after the high one", of({entry("\\ud83d\\u0041", 0, 0)}));
  REFUSES("expected a high surrogate before the low one", of({entry("\\ude00", 0, 0)}));
  REFUSES("expected four hexadecimal digits after \\u", of({entry("\\u00g0", 0, 0)}));
  REFUSES("expected four hexadecimal digits after \\u, got the end of the header",
          file("{\"\\u00"));
  REFUSES("expected one of \" \\ / b f n r t u after a backslash, got \"x41",
          of({entry("\\x41", 0, 0)}));
  REFUSES("tensor name: expected the end of the string, got the end of the header", file("{\"abc"));
  // A message escapes and shortens text from the file.
  try {
    static_cast<void>(parse(of({entry("\\u0007" + std::string(900, 'n'), 0, 0)})));
    FAIL("nothing was thrown");
  } catch (const FormatError& e) {
    CHECK(std::string(e.what()).size() < 200);
    CHECK(std::string(e.what()).find("nnn\"...") != std::string::npos);
    CHECK(e.path == "file");
    CHECK(e.offset == 9);
    CHECK(e.field == "tensor name");
  }
}

TEST_CASE("safetensors: metadata is strings by strings, and bounded", "[safetensors][hostile]") {
  REFUSES("__metadata__: expected '{', got \"\\x22pt\\x22}\"", file(R"({"__metadata__":"pt"})"));
  REFUSES("metadata value: expected a string, got \"1", file(R"({"__metadata__":{"a":1}})"));
  REFUSES("metadata value: expected a string, got \"{", file(R"({"__metadata__":{"a":{}}})"));
  REFUSES("metadata key: expected each key once, got a second \"a\"",
          file(R"({"__metadata__":{"a":"","b":"","a":""}})"));
  REFUSES("__metadata__: expected one entry of this name, got a second one",
          file(R"({"__metadata__":{},"__metadata__":{}})"));
  const std::string half(600'000, 'v');
  LIMITS("__metadata__: expected at most 1048576 bytes, got more",
         file(R"({"__metadata__":{"a":")" + half + R"(","b":")" + half + R"("}})"));
  LIMITS("metadata value: expected at most 1048576 bytes, got a longer string",
         file(R"({"__metadata__":{"a":")" + half + half + R"("}})"));
  CHECK(parse(file(R"({"__metadata__":{"a":")" + half + R"("}})")).metadata.front().second == half);
}

TEST_CASE("safetensors: at most 100,000 tensors", "[safetensors][hostile]") {
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i) header += entry(std::to_string(i), 0, 0) + ",";
  header.back() = '}';
  CHECK(parse(file(header)).tensors.size() == 100'000);
  header.back() = ',';
  LIMITS("tensors: expected at most 100000, got more", file(header + entry("last", 0, 0) + "}"));
}

#if defined(__linux__) && !BRAID_SANITIZED  // sanitizers need extra memory for each byte

namespace {

/// Returns the largest memory of this process so far, in bytes.
std::size_t peak_memory() {
  rusage usage{};
  REQUIRE(::getrusage(RUSAGE_SELF, &usage) == 0);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

constexpr std::size_t kMiB = 1024 * 1024;

/// 100,000 empty tensors: these need the most memory per byte of the file.
std::string many_empty() {
  std::string bytes(8, '\0');
  bytes.reserve(6 * kMiB);
  bytes += '{';
  for (int i = 0; i < 100'000; ++i) bytes += entry(std::to_string(i), 0, 0) + ",";
  bytes.back() = '}';
  const std::uint64_t length = bytes.size() - 8;
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

}  // namespace

TEST_CASE("safetensors child: memory of a file that is refused", "[.child][safetensors-refused]") {
  std::string bytes = many_empty();
  bytes[bytes.size() - 2] = ']';  // the last byte that is read
  const std::size_t before = peak_memory();
  REFUSES("tensor of \"99999\": expected '}', got \"]}\"", bytes);
  CHECK(peak_memory() - before <= 4 * bytes.size() + kMiB);
}

TEST_CASE("safetensors child: memory of many empty tensors", "[.child][safetensors-many]") {
  const std::string bytes = many_empty();
  const std::size_t before = peak_memory();
  CHECK(parse(bytes).tensors.size() == 100'000);
  const std::size_t taken = peak_memory() - before;
  CHECK(taken <= 100'000 * std::size_t{600} + 2 * bytes.size() + kMiB);
  CHECK(taken <= 66 * kMiB);  // as the documentation says
}

TEST_CASE("safetensors: memory is bounded by the file and the number of tensors",
          "[safetensors][hostile]") {
  CHECK_CHILD("", "[.child][safetensors-refused]");
  CHECK_CHILD("", "[.child][safetensors-many]");
}

#endif

TEST_CASE("safetensors: a bool is 0 or 1", "[safetensors][hostile]") {
  const std::string empty = one("BOOL", "[3]", "[0,3]");
  CHECK(parse(empty + std::string("\0\1\1", 3)).tensors.size() == 1);
  REFUSES(str("data of \"x\": expected 0 or 1 for BOOL, got 2 (byte ", empty.size() + 1, ")"),
          empty + std::string("\0\2\1", 3));
}

TEST_CASE("safetensors: every prefix of a valid file is refused", "[safetensors][hostile]") {
  for (const std::string& whole : {kGood, read_file(kPython)}) {
    CHECK(parse(whole).tensors.size() >= 1);
    for (std::size_t n = 0; n < whole.size(); ++n) {
      INFO(n);
      REFUSES("file: ", whole.substr(0, n));
    }
    REFUSES("expected its end after", whole + '\0');
  }
}

TEST_CASE("safetensors: every changed byte gives valid tensors or an error",
          "[safetensors][hostile]") {
  const std::string whole = read_file(kPython);
  int loaded = 0, refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = whole;
      changed[at] = static_cast<char>(value);
      if (changed == whole) continue;
      try {
        const Safetensors result = parse(changed);
        ++loaded;
        std::size_t bytes = 0;
        for (const auto& [name, tensor] : result.tensors) {
          REQUIRE(tensor.is_contiguous());
          REQUIRE(static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype()) <=
                  tensor.storage()->bytes());
          const auto* data = static_cast<const unsigned char*>(tensor.impl()->data());
          for (std::int64_t i = 0;
               i < tensor.numel() * static_cast<std::int64_t>(size_of(tensor.dtype())); ++i)
            bytes += tensor.dtype() != DType::bool_ || data[i] <= 1;
        }
        REQUIRE(bytes == 27);  // all of the data, under any names
      } catch (const FormatError&) {
        ++refused;
      }
    }
  }
  CHECK(loaded >= 24 * 255);  // any byte is valid in the data, except in the bools
  CHECK(refused > 5 * loaded);
}

}  // namespace braid::test
