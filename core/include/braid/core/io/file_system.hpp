#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

struct stat;  // <sys/stat.h>

namespace braid::io {

/// The system calls that Braid's file code makes. Tests replace them, to make the k-th call fail or
/// to record what would be written to a disk.
struct FileSystem {
  int (*open)(int folder, const char* path, int flags, unsigned mode);  ///< openat
  int (*close)(int fd);
  int (*fstat)(int fd, struct stat* info);
  /// fstatat; does not follow a symbolic link
  int (*stat_in)(int folder, const char* path, struct stat* info);
  long (*pread)(int fd, void* to, std::size_t bytes, std::int64_t offset);
  long (*pwrite)(int fd, const void* from, std::size_t bytes, std::int64_t offset);
  int (*fsync)(int fd);
  int (*fchmod)(int fd, unsigned mode);
  int (*lock)(int fd);                                          ///< flock, exclusive; does not wait
  int (*rename)(int folder, const char* from, const char* to);  ///< renameat within one folder
  int (*unlink)(int folder, const char* path);
  int (*mkdir)(int folder, const char* path, unsigned mode);  ///< mkdirat
  int (*rmdir)(int folder, const char* path);
  /// readdir of an open folder: appends the names of all entries, in any order
  int (*list)(int folder, std::vector<std::string>& names);
};
/// The system calls of the operating system.
[[nodiscard]] const FileSystem& real_file_system() noexcept;
/// Replaces the calls for the whole process; null restores the real ones. The table must remain
/// valid.
void set_file_system(const FileSystem* calls) noexcept;

/// An open file descriptor; the destructor closes it.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// Returns the descriptor without closing it; the caller then owns it.
  [[nodiscard]] int release() noexcept;
  void reset() noexcept;

 private:
  int fd_ = -1;
};

}  // namespace braid::io
