#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <braid/core/error.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/core/safetensors.hpp>

#include "support/catch.hpp"
#include "support/errors.hpp"
#include "support/temporary.hpp"
#include "support/tensors.hpp"
#include "support/tests_dir.hpp"

using namespace braid;
using namespace braid::test;

namespace {

std::string length_of(std::uint64_t n) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &n, 8);
  return bytes;
}

/// A file with this header and as many zero bytes of data.
std::string file(const std::string& header, std::size_t data = 0) {
  return length_of(header.size()) + header + std::string(data, '\0');
}

Safetensors parse(const std::string& bytes, const SafetensorsOptions& options = {}) {
  return load_safetensors(as_bytes(bytes), options);
}

/// Dense, of the bytes 1, 2, 3, … (bool: 1, 0, 1, …).
Tensor patterned(const Shape& shape, DType dtype) {
  Tensor t = make_tensor(shape, dtype, Device());
  auto* bytes = static_cast<unsigned char*>(t.impl()->data());
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.numel()) * size_of(dtype); ++i)
    bytes[i] = static_cast<unsigned char>(dtype == DType::bool_ ? (i + 1) % 2 : i + 1);
  return t;
}

std::string bytes_of(const Tensor& t) {
  REQUIRE(t.is_contiguous());
  return {static_cast<const char*>(t.impl()->data()),
          static_cast<std::size_t>(t.numel()) * size_of(t.dtype())};
}

void check_same(const Tensor& a, const Tensor& b) {
  CHECK(a.shape() == b.shape());
  CHECK(a.dtype() == b.dtype());
  CHECK(bytes_of(a) == bytes_of(b));
}

constexpr DType kAll[] = {DType::bool_,   DType::uint8,    DType::int32,   DType::int64,
                          DType::float16, DType::bfloat16, DType::float32, DType::float64};

}  // namespace

TEST_CASE("safetensors: round trip of all dtypes and shapes, in the order given", "[safetensors]") {
  const TemporaryFolder folder;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const DType dtype : kAll) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3}, Shape{2, 3}, Shape{2, 0, 3},
                               Shape{1, 1, 1, 1, 1, 1, 1, 2}}) {
      tensors.emplace_back(str(dtype, shape), patterned(shape, dtype));
    }
  }
  save_safetensors(
      folder / "all", tensors,
      {{"format", "pt"}, {"note", "line\nquote\" back\\slash \x01 caf\xc3\xa9"}, {"", ""}});
  const Safetensors loaded = load_safetensors(folder / "all");
  REQUIRE(loaded.tensors.size() == tensors.size());
  std::size_t i = 0;
  for (const auto& [name, tensor] : loaded.tensors) {
    INFO(name);
    CHECK(name == tensors[i].first);
    check_same(tensor, tensors[i].second);
    CHECK(tensor.device() == Device("cpu"));
    CHECK_FALSE(tensor.requires_grad());
    ++i;
  }
  const std::vector<std::pair<std::string, std::string>> metadata{
      {"format", "pt"}, {"note", "line\nquote\" back\\slash \x01 caf\xc3\xa9"}, {"", ""}};
  CHECK(loaded.metadata == metadata);
  CHECK(folder.names() == std::vector<std::string>{"all"});
}

TEST_CASE("safetensors: every tensor begins at a multiple of its element size", "[safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "x", {{"a", patterned({3}, DType::uint8)},
                                  {"b", patterned({1}, DType::float64)},
                                  {"c", patterned({3}, DType::float16)},
                                  {"d", patterned({}, DType::float32)}});
  std::string header =
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[18,21]},"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
      R"("c":{"dtype":"F16","shape":[3],"data_offsets":[12,18]},"d":{"dtype":"F32","shape":[],"data_offsets":[8,12]}})";
  while (header.size() % 8 != 0) header += ' ';
  const std::string data =
      "\x01\x02\x03\x04\x05\x06\x07\x08"
      "\x01\x02\x03\x04"
      "\x01\x02\x03\x04\x05\x06"
      "\x01\x02\x03";
  CHECK(read_file(folder / "x") == length_of(header.size()) + header + data);
}

TEST_CASE("safetensors: no tensors at all", "[safetensors]") {
  const TemporaryFolder folder;
  save_safetensors(folder / "none", std::map<std::string, Tensor>());
  CHECK(load_safetensors(folder / "none").tensors.empty());
  CHECK(parse(file("{}")).tensors.empty());
}

TEST_CASE("safetensors: strides, aliases and devices do not matter when saving", "[safetensors]") {
  const TemporaryFolder folder;
  const Tensor x = patterned({2, 3}, DType::float32);
  const Tensor transposed = make_view(x, {3, 2}, {1, 3}, 0);
  const Tensor row = make_view(x, {3}, {1}, 3);
  save_safetensors(folder / "x",
                   {{"x", x}, {"transposed", transposed}, {"row", row}, {"again", x}});
  const Safetensors loaded = load_safetensors(folder / "x");
  check_same(loaded.at("x"), x);
  check_same(loaded.at("again"), x);
  const Tensor& t = loaded.at("transposed");
  REQUIRE(t.shape() == Shape{3, 2});
  REQUIRE(t.is_contiguous());
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 2; ++j)
      CHECK(std::memcmp(t.data<float>() + i * 2 + j, x.data<float>() + j * 3 + i, sizeof(float)) ==
            0);
  CHECK(bytes_of(loaded.at("row")) == bytes_of(x).substr(12));
  for (const Device& device : test_devices()) {
    const Safetensors there = load_safetensors(folder / "x", {.device = device});
    CHECK(there.at("x").device() == device);
    save_safetensors(folder / "y", there.tensors);
    CHECK(read_file(folder / "y") == read_file(folder / "x"));
  }
  CHECK_THROWS_TEXT(DeviceError, "cpu:63",
                    load_safetensors(folder / "x", {.device = Device("cpu:63")}));
}

TEST_CASE("safetensors: a bool of foreign memory is saved as 0 or 1", "[safetensors]") {
  const TemporaryFolder folder;
  unsigned char memory[3] = {0, 7, 1};
  save_safetensors(folder / "x",
                   {{"flags", from_blob(static_cast<void*>(memory), {3}, DType::bool_)}});
  CHECK(bytes_of(load_safetensors(folder / "x").at("flags")) == std::string("\0\1\1", 3));
}

TEST_CASE("safetensors: a file written by the Python package loads", "[safetensors]") {
  // Written by safetensors 0.8.0: weight float32 [[1, -2, 0.5]], steps int64 7, mask bool [true,
  // false, true], half float16 [0.5, 65504], metadata format = pt.
  const std::string bytes = read_file(tests_dir() + "/core/python.safetensors");
  REQUIRE(bytes.size() < 1024);
  const Safetensors loaded = parse(bytes);
  REQUIRE(loaded.tensors.size() == 4);
  CHECK(loaded.at("weight").shape() == Shape{1, 3});
  CHECK(std::vector<float>(loaded.at("weight").data<float>(),
                           loaded.at("weight").data<float>() + 3) ==
        std::vector<float>{1, -2, 0.5f});
  CHECK(loaded.at("steps").shape() == Shape{});
  CHECK(*loaded.at("steps").data<std::int64_t>() == 7);
  CHECK(bytes_of(loaded.at("mask")) == std::string("\1\0\1", 3));
  CHECK(static_cast<float>(loaded.at("half").data<float16>()[0]) == 0.5f);
  CHECK(static_cast<float>(loaded.at("half").data<float16>()[1]) == 65504.0f);
  CHECK(loaded.metadata == std::vector<std::pair<std::string, std::string>>{{"format", "pt"}});
}

TEST_CASE("safetensors: white space and escapes of JSON are understood", "[safetensors]") {
  const Safetensors loaded = parse(
      file("{ \"\\u0061\\ud83d\\ude00\\/\" :\t{\"shape\" : [ 2 , 1 ],\r\n \"data_offsets\":[0, 2 "
           "], \"dtype\":\"\\u0055\\u0038\"} , \"__metadata__\":{}}   ",
           2));
  REQUIRE(loaded.tensors.size() == 1);
  CHECK(loaded.contains("a\xf0\x9f\x98\x80/"));
  CHECK(loaded.at("a\xf0\x9f\x98\x80/").shape() == Shape{2, 1});
  CHECK_THROWS_TEXT(ArgumentError, "b", loaded.at("b"));
}

TEST_CASE("safetensors: saving refuses what it could not load, before it writes",
          "[safetensors][errors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  const Tensor x = patterned({2}, DType::float32);
  using Metadata = std::vector<std::pair<std::string, std::string>>;
  CHECK_THROWS_TEXT(ArgumentError,
                    "save_safetensors: expected defined tensors, got an undefined one called \"u\"",
                    save_safetensors(path, {{"x", x}, {"u", Tensor()}}));
  CHECK_THROWS_TEXT(ArgumentError, "save_safetensors: expected each name once, got a second \"x\"",
                    save_safetensors(path, {{"x", x}, {"y", x}, {"x", x}}));
  CHECK_THROWS_TEXT(ArgumentError, "without control characters*got \"a\\x0ab\"",
                    save_safetensors(path, {{"a\nb", x}}));
  CHECK_THROWS_TEXT(ArgumentError, "UTF-8", save_safetensors(path, {{"\xff", x}}));
  CHECK_THROWS_TEXT(ArgumentError, "none of them __metadata__",
                    save_safetensors(path, {{"__metadata__", x}}));
  CHECK_THROWS_TEXT(ArgumentError, "at most 1024 bytes",
                    save_safetensors(path, {{std::string(1025, 'n'), x}}));
  CHECK_THROWS_TEXT(ArgumentError, "each metadata key once, got a second \"k\"",
                    save_safetensors(path, {{"x", x}}, Metadata{{"k", ""}, {"k", ""}}));
  CHECK_THROWS_TEXT(ArgumentError, "metadata of UTF-8",
                    save_safetensors(path, {{"x", x}}, Metadata{{"k", "\xc0\x80"}}));
  CHECK_THROWS_TEXT(ArgumentError, "1048576 bytes of metadata, got 1048578",
                    save_safetensors(path, {{"x", x}}, Metadata{{"k", std::string(1048577, 'v')}}));
  CHECK_THROWS_TEXT(ArgumentError, "expected a path, got an empty one",
                    save_safetensors("", {{"x", x}}));
  CHECK_THROWS_TEXT(ArgumentError, "without NUL",
                    save_safetensors(std::string("a\0b", 3), {{"x", x}}));
  CHECK(folder.names().empty());
  save_safetensors(path, {{std::string(1024, 'n'), x}});
  check_same(load_safetensors(path).at(std::string(1024, 'n')), x);
}

TEST_CASE(
    "safetensors: saving over the file that was loaded keeps its mode; a new one follows the umask",
    "[safetensors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  const mode_t before = ::umask(027);
  save_safetensors(path, {{"x", patterned({1000}, DType::float32)}});
  ::umask(before);
  CHECK(mode_of(path) == 0640);
  ::chmod(path.c_str(), 0604);
  const Safetensors loaded = load_safetensors(path);
  const std::string bytes = read_file(path);
  save_safetensors(path, loaded.tensors);
  CHECK(read_file(path) == bytes);
  CHECK(mode_of(path) == 0604);
  check_same(loaded.at("x"), patterned({1000}, DType::float32));
  CHECK(folder.names() == std::vector<std::string>{"model.safetensors"});
}

TEST_CASE("safetensors: only regular files are read or replaced", "[safetensors][errors]") {
  const TemporaryFolder folder;
  const Tensor x = patterned({2}, DType::float32);
  CHECK_THROWS_TEXT(IoError, "open*missing*No such file or directory",
                    load_safetensors(folder / "missing"));
  CHECK_THROWS_TEXT(IoError, "expected a regular file", load_safetensors(folder.path()));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_TEXT(IoError, "expected a regular file", load_safetensors(folder / "pipe"));
  CHECK_THROWS_TEXT(IoError, "expected a regular file", load_safetensors("/dev/zero"));
  CHECK_THROWS_TEXT(IoError, "expected a regular file or none",
                    save_safetensors(folder / "pipe", {{"x", x}}));
  CHECK_THROWS_TEXT(IoError, "expected a regular file or none",
                    save_safetensors("/dev/null", {{"x", x}}));
  CHECK_THROWS_TEXT(IoError, "Is a directory", save_safetensors(folder.path() + "/", {{"x", x}}));
  CHECK_THROWS_TEXT(IoError, "open folder*No such file",
                    save_safetensors(folder / "no/such/file", {{"x", x}}));
  // A symbolic link is replaced; what it points to stays.
  write_file(folder / "target", "untouched");
  REQUIRE(::symlink((folder / "target").c_str(), (folder / "link").c_str()) == 0);
  save_safetensors(folder / "link", {{"x", x}});
  CHECK(read_file(folder / "target") == "untouched");
  check_same(load_safetensors(folder / "link").at("x"), x);
}
