#pragma once
#include <string>
#include <vector>

#include <braid/core/io/file_system.hpp>

namespace braid::io {

/// A folder that is opened once. Its entries are reached through the descriptor, whatever happens
/// to its path. Names of entries consist of letters, digits, `_`, `.` and `-`; others throw
/// ArgumentError. Every failure of a system call throws IoError.
class Folder {
 public:
  explicit Folder(std::string path);
  /// Opens a folder. If it is missing, first creates it and the missing folders above it.
  [[nodiscard]] static Folder make(const std::string& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  /// The names of all entries, sorted.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Opens a folder that is an entry of this one. Throws IoError for a symbolic link.
  [[nodiscard]] Folder open(const std::string& name) const;
  void make_folder(const std::string& name) const;
  void remove(const std::string& name) const;
  /// Removes an empty folder.
  void remove_folder(const std::string& name) const;
  /// Replaces a file, or an empty folder, with the name `to`.
  void rename(const std::string& from, const std::string& to) const;
  /// Flushes the folder: earlier creations, renames and removals in it then survive a power loss.
  void flush() const;

 private:
  Folder(std::string path, Descriptor fd) noexcept : path_(std::move(path)), fd_(std::move(fd)) {}
  std::string path_;
  Descriptor fd_;
};

/// Throws ArgumentError unless an entry of a Folder can have this name.
void check_entry_name(const std::string& name);

}  // namespace braid::io
