#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

struct stat;  // <sys/stat.h>

namespace braid::io {

/// The system calls that Braid's file code makes. Tests put their own in place, to make the k-th
/// call fail or to record what would reach a disk.
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
  int (*lock)(int fd);  ///< flock, for this descriptor alone; does not wait
  int (*rename)(int folder, const char* from, const char* to);  ///< renameat within one folder
  int (*unlink)(int folder, const char* path);
  int (*mkdir)(int folder, const char* path, unsigned mode);  ///< mkdirat
  int (*rmdir)(int folder, const char* path);
  /// readdir of an open folder: appends the names of all that is in it, in any order
  int (*list)(int folder, std::vector<std::string>& names);
};
/// The operating system's.
[[nodiscard]] const FileSystem& real_file_system() noexcept;
/// Replaces the calls for the whole process; null restores the real ones. The table must stay
/// alive.
void set_file_system(const FileSystem* calls) noexcept;

/// An open descriptor; closed on destruction.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// Gives the descriptor away.
  [[nodiscard]] int release() noexcept;
  void reset() noexcept;

 private:
  int fd_ = -1;
};

}  // namespace braid::io
