#include <braid/data/npz.hpp>

#include <algorithm>
#include <limits>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/io/checked.hpp>
#include <braid/core/io/crc.hpp>
#include <braid/core/io/json.hpp>
#include <braid/core/npy.hpp>

#include "formats/zip.hpp"

namespace braid::data {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::uint64_t kMaxBytes = 0xffffffff;
constexpr std::uint64_t kFreeBytes = 1 << 20;  // always allowed, even from a few bytes

/// Returns the largest number of array bytes that a file of this size may contain.
std::uint64_t most_bytes(std::uint64_t file, std::uint64_t ratio) {
  std::uint64_t most = 0;
  const bool fits = io::checked_mul(file, ratio, most) && io::checked_add(most, kFreeBytes, most);
  return fits ? most : std::numeric_limits<std::uint64_t>::max();
}

/// A stored (not compressed) member as a separate source.
class Part final : public io::Source {
 public:
  Part(const io::Source& whole, const ZipMember& member)
      : whole_(whole), member_(member), name_(whole.path() + ':' + member.name) {}
  [[nodiscard]] const std::string& path() const noexcept override { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return member_.bytes; }
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const override {
    if (!io::fits(offset, bytes, size()))
      throw IoError(name_, "read", 0, static_cast<std::int64_t>(offset),
                    str("expected ", bytes, " more bytes, got the end"));
    whole_.read(to, bytes, member_.begin + offset);
  }

 private:
  const io::Source& whole_;
  const ZipMember& member_;
  std::string name_;
};

void check_crc(const io::Source& part, const ZipMember& member) {
  std::vector<char> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(part.size(), 1 << 18)));
  std::uint32_t sum = 0;
  for (std::uint64_t at = 0; at < part.size(); at += buffer.size()) {
    const std::uint64_t bytes = std::min<std::uint64_t>(buffer.size(), part.size() - at);
    part.read(buffer.data(), bytes, at);
    sum = io::crc32(buffer.data(), static_cast<std::size_t>(bytes), sum);
  }
  if (sum != member.crc32)
    throw FormatError(part.path(), 0, "crc32", std::to_string(member.crc32), std::to_string(sum));
}

StateDict load(const io::Source& file, const NpzOptions& options) {
  const std::vector<ZipMember> members = read_zip_directory(file);
  const std::uint64_t most = most_bytes(file.size(), options.max_ratio);
  std::uint64_t all = 0;
  for (const ZipMember& m : members) {  // checks all sizes before the first member is read
    const auto where = static_cast<std::int64_t>(m.where);
    if (!io::checked_add(all, m.bytes, all) || all > options.max_bytes)
      throw LimitError(file.path(), where, "size",
                       str("at most ", options.max_bytes, " bytes in all"), "more");
    if (all > most)
      throw LimitError(
          file.path(), where, "sizes",
          str("at most ", most, " bytes of arrays from a file of ", file.size(), " (max_ratio ",
              options.max_ratio, "; pass a larger one for a file that you trust)"),
          "more");
  }
  StateDict dict;
  for (const ZipMember& m : members) {
    const auto where = static_cast<std::int64_t>(m.where);
    if (!m.name.ends_with(kEnding) || m.name.size() == kEnding.size())
      throw FormatError(file.path(), where, "name", "one that ends in .npy", io::quoted(m.name));
    const std::string name = m.name.substr(0, m.name.size() - kEnding.size());
    if (dict.contains(name))
      throw FormatError(file.path(), where, "name", "each once", "a second " + io::quoted(m.name));
    const auto read = [&](const io::Source& part) {
      check_crc(part, m);
      dict.set(name, ::braid::detail::read_npy(part, {}));
    };
    if (!m.deflated) {
      read(Part(file, m));
    } else {
      const std::vector<std::byte> bytes = inflate_member(file, m);
      read(io::MemorySource(bytes, file.path() + ':' + m.name));
    }
  }
  return dict;
}

}  // namespace

StateDict load_npz(const std::string& path, const NpzOptions& options) {
  return load(io::InputFile(path), options);
}
StateDict load_npz(std::span<const std::byte> bytes, const NpzOptions& options,
                   const std::string& name) {
  return load(io::MemorySource(bytes, name), options);
}

void save_npz(const std::string& path, std::span<const StateDict::value_type> tensors) {
  const NoGrad guard;
  if (tensors.size() > 65534)
    throw ArgumentError(str("save_npz: expected at most 65534 tensors, got ", tensors.size()));
  std::vector<ZipMember> members;
  std::vector<std::string> headers, names;
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    const bool good = !name.empty() && name.size() + kEnding.size() <= 1024 && io::is_utf8(name) &&
                      std::none_of(name.begin(), name.end(), [](char c) {
                        return static_cast<unsigned char>(c) < 32 || c == 127;
                      });
    if (!good)
      throw ArgumentError(str(
          "save_npz: expected names of 1 to 1020 bytes of UTF-8 without control characters, got ",
          io::quoted(name)));
    headers.push_back(::braid::detail::npy_header("save_npz", tensor));
    ZipMember m;
    m.name = name + std::string(kEnding);
    m.stored = m.bytes = headers.back().size() +
                         static_cast<std::uint64_t>(tensor.numel()) * size_of(tensor.dtype());
    m.begin = at + zip_local_header(m).size();
    at = m.begin + m.stored;
    names.push_back(m.name);
    members.push_back(std::move(m));
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    throw ArgumentError(
        str("save_npz: expected each name once, got a second ", io::quoted(*twice)));
  if (at >= kMaxBytes)
    throw ArgumentError(str("save_npz: expected less than 4 GiB, got ", at, " bytes"));
  io::OutputFile file(path);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Tensor host = tensors[i].second.detach().to(Device()).contiguous();
    const auto bytes = static_cast<std::size_t>(host.numel()) * size_of(host.dtype());
    members[i].crc32 =
        io::crc32(host.impl()->data(), bytes, io::crc32(headers[i].data(), headers[i].size()));
    const std::string local = zip_local_header(members[i]);
    file.write(local.data(), local.size());
    file.write(headers[i].data(), headers[i].size());
    file.write(host.impl()->data(), bytes);
  }
  const std::string directory = zip_directory(members, at);
  file.write(directory.data(), directory.size());
  file.commit();
}

}  // namespace braid::data
