#include "shorthand.hpp"
#include "support/faulty_files.hpp"
#include "support/numpy_arrays.hpp"
#include "support/temporary.hpp"
#include "support/tests_dir.hpp"

namespace braid::test {
namespace {

std::string golden(const std::string& name) {
  return tests_dir() + "/goldens/numpy/" + name + ".npy";
}
Tensor read(const std::string& bytes) { return load_npy(as_bytes(bytes)); }
/// Returns a version 1 file with this header.
std::string file_of(const std::string& header, const std::string& data = "") {
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

}  // namespace

TEST_CASE("npy: what numpy wrote is read to the same bits", "[io][npy]") {
  for (const auto& [name, expected] : numpy_arrays()) {
    INFO(name);
    const Tensor t = load_npy(golden(name));
    CHECK(identical(t, expected));
    CHECK(t.is_contiguous());
  }
  CHECK(identical(load_npy(golden("version2")), numpy_arrays().at("f4")));
}

TEST_CASE("npy: round trips of every type, shape and layout", "[io][npy]") {
  const TemporaryFolder folder;
  for (const auto& [name, tensor] : numpy_arrays()) {
    INFO(name);
    save_npy(folder / "x.npy", tensor);
    CHECK(identical(load_npy(folder / "x.npy"), tensor));
    // the same bytes as numpy writes
    if (name != "fortran") CHECK(read_file(folder / "x.npy") == read_file(golden(name)));
  }
  const Tensor turned = arange(12, {.dtype = DType::float32}).reshape({3, 4}).transpose(0, 1);
  save_npy(folder / "x.npy", turned);
  CHECK(identical(load_npy(folder / "x.npy"), turned));
  save_npy(folder / "x.npy", zeros({1, 1, 1, 1, 1, 1, 1, 2}));
  CHECK(load_npy(folder / "x.npy").dim() == 8);
  CHECK_THROWS_TEXT(DTypeError, "save_npy: expected a type that numpy has, got bfloat16",
                    save_npy(folder / "x.npy", zeros({2}, {.dtype = DType::bfloat16})));
  CHECK_THROWS_TEXT(ArgumentError, "save_npy: expected a defined tensor",
                    save_npy(folder / "x.npy", Tensor()));
  CHECK(load_npy(folder / "x.npy").dim() == 8);
}

TEST_CASE("npy: files of other kinds are errors that say which", "[io][npy][errors]") {
  CHECK_THROWS_TEXT(FormatError, "big_endian.npy: descr: expected one of |b1*<f8, got \">f4\"",
                    load_npy(golden("big_endian")));
  CHECK_THROWS_TEXT(FormatError, "text.npy: descr*got \"<U2\"", load_npy(golden("text")));
  CHECK_THROWS_TEXT(FormatError, "objects.npy: descr*got \"|O\"", load_npy(golden("objects")));
  CHECK_THROWS_TEXT(FormatError, "structured.npy: header: expected a string",
                    load_npy(golden("structured")));
  CHECK_THROWS_AS(load_npy(golden("missing")), IoError);
}

TEST_CASE("npy: hostile headers", "[io][npy][errors]") {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
                    data = "12345678";
  CHECK(read(file_of(good, data)).numel() == 2);
  CHECK(read(file_of("{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"<f4\"}", data)).numel() ==
        2);
  struct Case {
    const char *from, *to, *text;
  };
  const Case cases[] = {
      {"(2,)", "(2)", "a tuple, (n,)"},
      {"(2,)", "(3,)", "data: expected 12 bytes*got 8"},
      {"(2,)", "(1,)", "data: expected 4 bytes*got 8"},
      {"(2,)", "(-2,)", "a size in decimal digits"},
      {"(2,)", "(02,)", "a size in decimal digits"},
      {"(2,)", "(2L,)", "',' or ')'"},
      {"(2,)", "(99999999999999999999,)", "a size below 2^63"},
      {"(2,)", "(9223372036854775807, 9223372036854775807)", "shape: expected below 2^63 bytes"},
      {"(2,)", "(0, 9223372036854775807, 4)", "shape: expected below 2^63 bytes"},
      {"(2,)", "(1, 1, 1, 1, 1, 1, 1, 1, 2)", "at most 8 sizes"},
      {"(2,)", "(2,,)", "a size in decimal digits"},
      {"(2,)", "(2, ", "a size in decimal digits"},
      {"False", "0", "True or False"},
      {"'<f4'", "'<f4", "header: expected '}', got \"fortran_order"},
      {"'<f4'", "'\\x3cf4'", "a string without escapes"},
      {"'<f4'", "__import__('os')", "a string"},
      {", }", ", 'x': 1}", "the keys descr, fortran_order and shape, got \"x\""},
      {", }", ", 'descr': '<f4'}", "each key once, got a second \"descr\""},
      {"'descr': '<f4', ", "", "got not all of them"},
      {"}", "}}", "nothing after the closing brace"},
      {"{", "", "'{'"},
  };
  for (const Case& c : cases) {
    std::string header = good;
    header.replace(header.find(c.from), std::string(c.from).size(), c.to);
    INFO(header);
    CHECK_THROWS_TEXT(FormatError, c.text, read(file_of(header, data)));
  }
  CHECK_THROWS_TEXT(FormatError, "0 or 1 for |b1, got 2",
                    read(file_of("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}",
                                 std::string("\1\2", 2))));
  CHECK_THROWS_TEXT(FormatError, "version: expected 1.0, 2.0 or 3.0, got 4.0",
                    read(std::string("\x93NUMPY\4\0\1\0\0\0x", 13)));
  CHECK_THROWS_TEXT(FormatError, "magic", read("PK\3\4 and so on and on"));
  CHECK_THROWS_TEXT(LimitError, "at most 65536 bytes, got 4294967295",
                    read(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12)));
  const std::string whole = file_of(good, data);
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_THROWS_AS(read(whole.substr(0, length)), FormatError);
  // Any flipped bit gives a tensor of these bytes or a FormatError, nothing else.
  for (std::size_t at = 0; at < whole.size() * 8; ++at) {
    std::string flipped = whole;
    flipped[at / 8] = static_cast<char>(flipped[at / 8] ^ (1 << at % 8));
    try {
      const Tensor t = read(flipped);
      CHECK(static_cast<std::size_t>(t.numel()) * size_of(t.dtype()) == data.size());
    } catch (const FormatError&) {}
  }
}

TEST_CASE("npy: any failing call of a save or a load is an IoError", "[io][npy][errors]") {
  const TemporaryFolder folder;
  save_npy(folder / "x.npy", zeros({3}));
  const int files = open_files();
  for (const bool saves : {true, false}) {
    int k = 1;
    for (bool done = false; !done; ++k) {
      INFO("call " << k);
      const WithFaults with({.fail_at = k});
      try {
        if (saves) save_npy(folder / "x.npy", full({3}, 1.0));
        else static_cast<void>(load_npy(folder / "x.npy"));
        done = faults.calls < k || faults.failed == "close";
      } catch (const IoError& e) {
        CHECK(e.error_number == EIO);
      }
      CHECK(open_files() == files);
    }
    CHECK(k > 4);
  }
}

}  // namespace braid::test
