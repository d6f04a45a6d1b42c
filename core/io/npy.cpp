#include <braid/core/npy.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/backend.hpp>
#include <braid/core/error.hpp>
#include <braid/core/io/checked.hpp>
#include <braid/core/io/file.hpp>
#include <braid/core/io/json.hpp>

namespace braid {
namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};
constexpr std::uint64_t kMaxHeader = 64 * 1024;

struct Name {
  DType dtype;
  std::string_view descr;
};
constexpr std::array<Name, 7> kNames{{{DType::bool_, "|b1"},
                                      {DType::uint8, "|u1"},
                                      {DType::int32, "<i4"},
                                      {DType::int64, "<i8"},
                                      {DType::float16, "<f2"},
                                      {DType::float32, "<f4"},
                                      {DType::float64, "<f8"}}};

/// Parses the header, which is a Python dict with three keys: {'descr': '<f4', 'fortran_order':
/// False, 'shape': (3, 4), }. Other Python syntax is an error.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, std::uint64_t begin, const std::string& path)
      : text_(text), begin_(begin), path_(path) {}

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;

  void read() {
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") once(descr, key) = string();
      else if (key == "fortran_order") once(fortran_order, key) = boolean();
      else if (key == "shape") once(shape, key) = tuple();
      else fail("the keys descr, fortran_order and shape", io::quoted(key));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) fail("nothing after the closing brace");
    if (!descr || !fortran_order || !shape)
      fail("the keys descr, fortran_order and shape", "not all of them");
  }

  [[noreturn]] void fail(std::string expected, std::string got) const {
    throw FormatError(path_, static_cast<std::int64_t>(begin_ + at_), "header", std::move(expected),
                      std::move(got));
  }

 private:
  [[noreturn]] void fail(std::string expected) const {
    fail(std::move(expected), at_ < text_.size() ? io::quoted(text_.substr(at_, 16)) : "its end");
  }
  template <class T> std::optional<T>& once(std::optional<T>& value, const std::string& key) const {
    if (value) fail("each key once", "a second " + io::quoted(key));
    return value;
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(str("'", c, "'"));
  }
  std::string string() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("the end of the string");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    if (value.find('\\') != std::string::npos) fail("a string without escapes");
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail("True or False");
  }
  std::int64_t integer() {
    skip();
    const std::size_t first = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (!io::checked_mul<std::int64_t>(value, 10, value) ||
          !io::checked_add<std::int64_t>(value, text_[at_] - '0', value))
        fail("a size below 2^63");
      ++at_;
    }
    if (at_ == first || (at_ - first > 1 && text_[first] == '0')) fail("a size in decimal digits");
    return value;
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    bool comma = true;
    while (!accept(')')) {
      if (!comma) fail("',' or ')'");
      sizes.push_back(integer());
      if (sizes.size() > kMaxRank) fail(str("at most ", kMaxRank, " sizes"), "more");
      comma = accept(',');
    }
    if (sizes.size() == 1 && !comma) fail("a tuple, (n,)", "a number in brackets");
    return sizes;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t begin_;
  const std::string& path_;
};

/// Returns a contiguous (C order) tensor of `shape`. `turned` has the elements in Fortran order.
Tensor from_fortran(const Tensor& turned, const Shape& shape) {
  Shape strides = shape;
  std::int64_t stride = 1;
  for (int d = 0; d < shape.rank(); ++d) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(shape[d], 1);
  }
  return make_view(turned, shape, strides, 0).contiguous();
}

}  // namespace

namespace detail {

Tensor read_npy(const io::Source& file, const NpyOptions& options) {
  const auto fail = [&](std::int64_t at, const char* field, std::string expected, std::string got) {
    throw FormatError(file.path(), at, field, std::move(expected), std::move(got));
  };
  std::array<unsigned char, 12> head{};
  const std::uint64_t size = file.size();
  if (size < 10) fail(0, "file", "at least 10 bytes", std::to_string(size));
  file.read(head.data(), 8, 0);
  if (std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0)
    fail(0, "magic", "\\x93NUMPY", io::quoted({reinterpret_cast<const char*>(head.data()), 6}));
  const unsigned major = head[6];
  if (major < 1 || major > 3 || head[7] != 0)
    fail(6, "version", "1.0, 2.0 or 3.0", str(major, '.', unsigned{head[7]}));
  const std::uint64_t length_bytes = major == 1 ? 2 : 4, begin = 8 + length_bytes;
  if (!io::fits(8, length_bytes, size))
    fail(8, "header length", str(length_bytes, " bytes"), "the end of the file");
  file.read(head.data() + 8, length_bytes, 8);
  std::uint64_t length = 0;
  for (std::uint64_t i = length_bytes; i-- > 0;) length = length << 8 | head[8 + i];
  if (length > kMaxHeader)
    throw LimitError(file.path(), 8, "header length", str("at most ", kMaxHeader, " bytes"),
                     std::to_string(length));
  if (!io::fits(begin, length, size))
    fail(8, "header length", str("at most ", size - begin, ", what is left of the file"),
         std::to_string(length));
  std::string text(static_cast<std::size_t>(length), '\0');
  file.read(text.data(), length, begin);
  HeaderReader header(text, begin, file.path());
  header.read();

  const auto* name = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const Name& n) { return n.descr == *header.descr; });
  if (name == kNames.end())
    fail(static_cast<std::int64_t>(begin), "descr", "one of |b1 |u1 <i4 <i8 <f2 <f4 <f8",
         io::quoted(*header.descr));
  const std::uint64_t data = begin + length;
  std::uint64_t bytes = 0;
  if (!io::checked_bytes(*header.shape, size_of(name->dtype), bytes))
    fail(static_cast<std::int64_t>(begin), "shape", "below 2^63 bytes", "more");
  if (bytes != size - data)
    fail(static_cast<std::int64_t>(data), "data", str(bytes, " bytes, as shape and descr say"),
         std::to_string(size - data));

  const NoGrad guard;
  const Shape shape{std::span<const std::int64_t>(*header.shape)};
  Tensor tensor = make_tensor(shape, name->dtype, Device());
  auto* to = static_cast<unsigned char*>(tensor.impl()->data());
  if (bytes > 0) file.read(to, bytes, data);
  if (name->dtype == DType::bool_) {
    const auto* wrong = std::find_if(to, to + bytes, [](unsigned char byte) { return byte > 1; });
    if (wrong != to + bytes)
      fail(static_cast<std::int64_t>(data) + (wrong - to), "data", "0 or 1 for |b1",
           std::to_string(*wrong));
  }
  if (*header.fortran_order && shape.rank() > 1) tensor = from_fortran(tensor, shape);
  return tensor.to(options.device);
}

std::string npy_header(const char* op, const Tensor& tensor) {
  if (!tensor.defined())
    throw ArgumentError(str(op, ": expected a defined tensor, got an undefined one"));
  const auto* name = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const Name& n) { return n.dtype == tensor.dtype(); });
  if (name == kNames.end())
    throw DTypeError(str(op, ": expected a type that numpy has, got ", tensor.dtype()));
  std::string dict = str("{'descr': '", name->descr, "', 'fortran_order': False, 'shape': (");
  for (int d = 0; d < tensor.dim(); ++d)
    dict += str(tensor.shape()[d], d + 1 < tensor.dim() ? ", " : "");
  dict += tensor.dim() == 1 ? ",), }" : "), }";
  while ((10 + dict.size() + 1) % 64 != 0) dict += ' ';  // aligns the data to 64 bytes
  dict += '\n';
  std::string header(kMagic);
  header += '\1';
  header += '\0';
  header += static_cast<char>(dict.size() & 255);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

}  // namespace detail

Tensor load_npy(const std::string& path, const NpyOptions& options) {
  return detail::read_npy(io::InputFile(path), options);
}
Tensor load_npy(std::span<const std::byte> bytes, const NpyOptions& options,
                const std::string& name) {
  return detail::read_npy(io::MemorySource(bytes, name), options);
}

void save_npy(const std::string& path, const Tensor& tensor) {
  const std::string header = detail::npy_header("save_npy", tensor);
  const NoGrad guard;
  const Tensor host = tensor.detach().to(Device()).contiguous();
  io::OutputFile file(path);
  file.write(header.data(), header.size());
  file.write(host.impl()->data(), static_cast<std::uint64_t>(host.numel()) * size_of(host.dtype()));
  file.commit();
}

}  // namespace braid
