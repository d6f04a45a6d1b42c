#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <braid/core/io/file.hpp>

namespace braid::training::detail {

/// Writes numbers as TensorBoard reads them: records of length, data and their checksums
/// (TFRecord), each datum an `Event` in protobuf's encoding.
class EventFile {
 public:
  /// Makes a new file in the folder, which is made where it is missing. `seconds` since 1970.
  EventFile(const std::string& folder, double seconds);
  /// Takes it down; write() writes it.
  void add(std::int64_t step, double seconds, std::string_view name, double value);
  void write();

 private:
  void add_record(std::string_view event);
  std::string pending_;
  io::LogFile file_;
};

}  // namespace braid::training::detail
