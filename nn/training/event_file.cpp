#include "training/event_file.hpp"

#include <unistd.h>

#include <bit>

#include <braid/core/error.hpp>
#include <braid/core/io/crc.hpp>

namespace braid::training::detail {
namespace {

// Protobuf encoding: a field is its number and wire type in one varint, then its value.
enum Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
template <class T> void put_fixed(std::string& out, T value) {
  // little-endian, as in the format
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_key(std::string& out, std::uint32_t field, Wire wire) {
  put_varint(out, (field << 3) | wire);
}
void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

/// Event { double wall_time = 1; int64 step = 2; … }
std::string event_head(double seconds, std::int64_t step) {
  std::string event;
  put_key(event, 1, kFixed64);
  put_fixed(event, seconds);
  put_key(event, 2, kVarint);
  put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}

/// TFRecord's masked CRC, because a CRC over data that contains CRCs is weak.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(io::crc32c(bytes.data(), bytes.size()), 15) + 0xa282ead8u;
}

io::LogFile new_file(const std::string& folder, double seconds) {
  const io::Folder where = io::Folder::make(folder);
  return {where,
          str("events.out.tfevents.", static_cast<std::int64_t>(seconds), ".braid.", ::getpid()),
          io::LogFile::Start::append};
}

}  // namespace

EventFile::EventFile(const std::string& folder, double seconds) : file_(new_file(folder, seconds)) {
  std::string event = event_head(seconds, 0);
  put_bytes(event, 3, "brain.Event:2");  // file_version
  add_record(event);
  write();
}

void EventFile::add(std::int64_t step, double seconds, std::string_view name, double value) {
  std::string scalar, summary, event = event_head(seconds, step);
  put_bytes(scalar, 1, name);  // Summary.Value { string tag = 1; float simple_value = 2; }
  put_key(scalar, 2, kFixed32);
  put_fixed(scalar, static_cast<float>(value));
  put_bytes(summary, 1, scalar);  // Summary { repeated Value value = 1; }
  put_bytes(event, 5, summary);   // Event { Summary summary = 5; }
  add_record(event);
}

void EventFile::add_record(std::string_view event) {
  std::string length;
  put_fixed(length, static_cast<std::uint64_t>(event.size()));
  pending_ += length;
  put_fixed(pending_, masked_crc(length));
  pending_ += event;
  put_fixed(pending_, masked_crc(event));
}

void EventFile::write() {
  file_.write(pending_.data(), pending_.size());
  pending_.clear();
}

}  // namespace braid::training::detail
