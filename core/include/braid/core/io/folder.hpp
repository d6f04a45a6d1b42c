#pragma once
#include <string>
#include <vector>

#include <braid/core/io/file_system.hpp>

namespace braid::io {

/// A folder, opened once: what is in it is reached through its descriptor, whatever happens to its
/// path meanwhile. Names of entries are file names of letters, digits, `_`, `.` and `-`; anything
/// else is an ArgumentError. Every failure of the system is an IoError.
class Folder {
 public:
  explicit Folder(std::string path);
  /// The same, made first where it is missing, with the folders above it.
  [[nodiscard]] static Folder make(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// Of all entries, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  /// A folder in it; a symbolic link is an IoError.
  [[nodiscard]] Folder open(const std::string& name) const;
  void make_folder(const std::string& name) const;
  void remove(const std::string& name) const;
  /// An empty one.
  void remove_folder(const std::string& name) const;
  /// Replaces a file, or an empty folder, of the name `to`.
  void rename(const std::string& from, const std::string& to) const;
  /// Makes what was made, renamed and removed in it outlive a power loss.
  void flush() const;

 private:
  Folder(std::string path, Descriptor fd) noexcept : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  Descriptor fd_;
};

/// Throws ArgumentError unless it is a name that an entry of a Folder can have.
void check_entry_name(const std::string& name);

}  // namespace braid::io
