#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <braid/core/io/file.hpp>

namespace braid::training::detail {

/// Writes scalars in TensorBoard's format: TFRecord records (length, data and their checksums),
/// each of them an `Event` in protobuf encoding.
class EventFile {
 public:
  /// Creates a new file in the folder, and the folder if it is missing. `seconds` since 1970.
  EventFile(const std::string& folder, double seconds);
  /// Queues a value; write() writes the queued values to the file.
  void add(std::int64_t step, double seconds, std::string_view name, double value);
  void write();

 private:
  void add_record(std::string_view event);
  std::string pending_;
  io::LogFile file_;
};

}  // namespace braid::training::detail
