#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/core/state_dict.hpp>
#include <braid/core/tensor.hpp>

// The safetensors format: named tensors in one file, data only, never code. Little-endian; readable
// by other implementations.
namespace braid {

namespace io {
class OutputFile;
class Source;
}  // namespace io

/// Content of a safetensors file: named tensors in the order of its header, and string metadata.
struct Safetensors {
  StateDict tensors;
  std::vector<std::pair<std::string, std::string>> metadata;

  /// Throws ArgumentError if the file has no tensor of this name.
  [[nodiscard]] const Tensor& at(std::string_view name) const { return tensors.at(name); }
  [[nodiscard]] bool contains(std::string_view name) const { return tensors.contains(name); }
};

/// The options of load_safetensors.
struct SafetensorsOptions {
  Device device = {};                           ///< where the tensors are made
  std::uint64_t max_header = 16 * 1024 * 1024;  ///< bytes; a longer header throws LimitError
};

/// Reads a file and validates its structure: a malformed file throws an exception and never gives a
/// wrong tensor.
///
/// Types     BOOL (bytes 0 and 1), U8, I32, I64, F16, BF16, F32, F64; another type of the format
///           throws FormatError, which names it
/// Limits    100,000 tensors, rank 8 (a tensor's own limit; the format has none), names of 1,024
///           bytes, 1 MiB of metadata
/// Memory    besides the values, at most four bytes for each byte of the header while it is read,
///           and then 600 bytes for each tensor: its handle and its name twice. That exceeds twice
///           the file only if most of the tensors are empty: a file of 5.4 MiB with 100,000 of them
///           needs up to 65 MiB.
/// Throws    IoError; FormatError, LimitError (path, byte, field, expected, got); OutOfMemoryError
[[nodiscard]] Safetensors load_safetensors(const std::string& path,
                                           const SafetensorsOptions& options = {});
/// The same from memory; `name` is used as the path in messages.
[[nodiscard]] Safetensors load_safetensors(std::span<const std::byte> bytes,
                                           const SafetensorsOptions& options = {},
                                           const std::string& name = "memory");

namespace detail {
struct NamedTensor {
  std::string_view name;
  const Tensor* tensor;
};
/// The tensors of a file to be written.
class TensorsToSave {
 public:
  void add(std::string_view name, const Tensor& tensor);
  void save(const std::string& path,
            const std::vector<std::pair<std::string, std::string>>& metadata) const;

 private:
  std::vector<NamedTensor> list_;
};
/// Appends a complete safetensors file to `file`, which the caller commits.
void write_safetensors(io::OutputFile& file, std::span<const NamedTensor> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata);
[[nodiscard]] Safetensors read_safetensors(const io::Source& file,
                                           const SafetensorsOptions& options);
}  // namespace detail

/// Writes pairs (name, tensor): a state dict, a map, a vector of pairs. The file appears completely
/// or not at all: it is written under another name, flushed to the disk and renamed. It may replace
/// the file that the tensors were loaded from. Tensors may be on any device and have any strides; a
/// tensor with two names is written twice.
///
/// Throws    ArgumentError before anything is written (an undefined tensor; a name that is
///           duplicate, not UTF-8, over 1,024 bytes or with control characters); IoError
///
///     save_safetensors("net.safetensors", state_dict(model), {{"epoch", "3"}});
///     const Safetensors file = load_safetensors("net.safetensors");
///     load_state_dict(model, file.tensors);
///     print(file.metadata[0].second);  // 3
template <class Range>
  requires requires(const Range& r) { r.begin() != r.end(); } &&
           std::is_lvalue_reference_v<decltype(*std::declval<const Range&>().begin())>
void save_safetensors(const std::string& path, const Range& tensors,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {}) {
  detail::TensorsToSave list;
  for (const auto& [name, tensor] : tensors) list.add(name, tensor);
  list.save(path, metadata);
}
/// The same for a braced list: save_safetensors(path, {{"weight", w}, {"bias", b}}).
void save_safetensors(const std::string& path,
                      std::initializer_list<std::pair<std::string_view, Tensor>> tensors,
                      const std::vector<std::pair<std::string, std::string>>& metadata = {});

}  // namespace braid
