// Tests that saved tensors load unchanged: dtypes, shapes, metadata, files.
#include <sys/stat.h>
#include <unistd.h>

#include "safetensors_files.hpp"

namespace braid::test {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

/// Returns a contiguous tensor of the bytes 1, 2, 3, … (bool: 1, 0, 1, …).
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

}  // namespace

TEST_CASE("safetensors: round trip of all dtypes and shapes, in the order given", "[safetensors]") {
  const TemporaryFolder folder;
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const DType dtype : all_dtypes()) {
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{1}, Shape{3}, Shape{2, 3}, Shape{2, 0, 3},
                               Shape{1, 1, 1, 1, 1, 1, 1, 2}}) {
      tensors.emplace_back(str(dtype, shape), patterned(shape, dtype));
    }
  }
  const Metadata metadata{
      {"format", "pt"}, {"note", "line\nquote\" back\\slash \x01 caf\xc3\xa9"}, {"", ""}};
  save_safetensors(folder / "all", tensors, metadata);
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
  CHECK(loaded.at("transposed").is_contiguous());
  CHECK_SAME_BITS(loaded.at("transposed"), transposed);
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
  const Safetensors loaded = parse(read_file(kPython));
  REQUIRE(loaded.tensors.size() == 4);
  check_shapes({{loaded.at("weight"), {1, 3}}, {loaded.at("steps"), {}}});
  check_lists({{loaded.at("weight"), {1, -2, 0.5}},
               {loaded.at("steps"), {7}},
               {loaded.at("half"), {0.5, 65504}}});
  CHECK(loaded.at("weight").dtype() == DType::float32);
  CHECK(
      (loaded.at("steps").dtype() == DType::int64 && loaded.at("half").dtype() == DType::float16));
  CHECK(bytes_of(loaded.at("mask")) == std::string("\1\0\1", 3));
  CHECK(loaded.metadata == Metadata{{"format", "pt"}});
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
  const auto refused = [&](const char* text,
                           const std::vector<std::pair<std::string, Tensor>>& tensors,
                           const Metadata& metadata = {}) {
    CHECK_THROWS_TEXT(ArgumentError, text, save_safetensors(path, tensors, metadata));
  };
  refused("save_safetensors: expected defined tensors, got an undefined one called \"u\"",
          {{"x", x}, {"u", Tensor()}});
  refused("save_safetensors: expected each name once, got a second \"x\"",
          {{"x", x}, {"y", x}, {"x", x}});
  refused("without control characters*got \"a\\x0ab\"", {{"a\nb", x}});
  refused("UTF-8", {{"\xff", x}});
  refused("none of them __metadata__", {{"__metadata__", x}});
  refused("at most 1024 bytes", {{std::string(1025, 'n'), x}});
  refused("each metadata key once, got a second \"k\"", {{"x", x}}, {{"k", ""}, {"k", ""}});
  refused("metadata of UTF-8", {{"x", x}}, {{"k", "\xc0\x80"}});
  refused("1048576 bytes of metadata, got 1048578", {{"x", x}}, {{"k", std::string(1048577, 'v')}});
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
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_TEXT(IoError, "open*missing*No such file or directory",
                    load_safetensors(folder / "missing"));
  for (const std::string& path : {folder.path(), folder / "pipe", std::string("/dev/zero")})
    CHECK_THROWS_TEXT(IoError, "expected a regular file", load_safetensors(path));
  for (const std::string& path : {folder / "pipe", std::string("/dev/null")})
    CHECK_THROWS_TEXT(IoError, "expected a regular file or none",
                      save_safetensors(path, {{"x", x}}));
  CHECK_THROWS_TEXT(IoError, "Is a directory", save_safetensors(folder.path() + "/", {{"x", x}}));
  CHECK_THROWS_TEXT(IoError, "open folder*No such file",
                    save_safetensors(folder / "no/such/file", {{"x", x}}));
  // A symbolic link is replaced; its target does not change.
  write_file(folder / "target", "untouched");
  REQUIRE(::symlink((folder / "target").c_str(), (folder / "link").c_str()) == 0);
  save_safetensors(folder / "link", {{"x", x}});
  CHECK(read_file(folder / "target") == "untouched");
  check_same(load_safetensors(folder / "link").at("x"), x);
}

}  // namespace braid::test
