#include <braid/core/io/file_system.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include <braid/core/error.hpp>

#include "io/calls.hpp"

namespace braid::io {
namespace {

int list_entries(int folder, std::vector<std::string>& names) {
  // a separate descriptor, which has its own position
  const int fd = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  DIR* const open = ::fdopendir(fd);
  if (open == nullptr) {
    const int error = errno;
    ::close(fd);
    errno = error;
    return -1;
  }
  errno = 0;
  while (const dirent* entry = ::readdir(open)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
    errno = 0;
  }
  const int error = errno;
  ::closedir(open);
  errno = error;
  return error == 0 ? 0 : -1;
}

constexpr FileSystem kReal{
    .open = [](int folder, const char* path, int flags,
               unsigned mode) { return ::openat(folder, path, flags, mode); },
    .close = [](int fd) { return ::close(fd); },
    .fstat = [](int fd, struct stat* info) { return ::fstat(fd, info); },
    .stat_in = [](int folder, const char* path,
                  struct stat* info) { return ::fstatat(folder, path, info, AT_SYMLINK_NOFOLLOW); },
    .pread = [](int fd, void* to, std::size_t bytes, std::int64_t offset) -> long {
      return ::pread(fd, to, bytes, offset);
    },
    .pwrite = [](int fd, const void* from, std::size_t bytes, std::int64_t offset) -> long {
      return ::pwrite(fd, from, bytes, offset);
    },
    .fsync = [](int fd) { return ::fsync(fd); },
    .fchmod = [](int fd, unsigned mode) { return ::fchmod(fd, static_cast<mode_t>(mode)); },
    .lock = [](int fd) { return ::flock(fd, LOCK_EX | LOCK_NB); },
    .rename = [](int folder, const char* from,
                 const char* to) { return ::renameat(folder, from, folder, to); },
    .unlink = [](int folder, const char* path) { return ::unlinkat(folder, path, 0); },
    .mkdir = [](int folder, const char* path,
                unsigned mode) { return ::mkdirat(folder, path, static_cast<mode_t>(mode)); },
    .rmdir = [](int folder, const char* path) { return ::unlinkat(folder, path, AT_REMOVEDIR); },
    .list = list_entries,
};

std::atomic<const FileSystem*> replaced{nullptr};

}  // namespace

const FileSystem& real_file_system() noexcept { return kReal; }
void set_file_system(const FileSystem* other) noexcept {
  replaced.store(other, std::memory_order_release);
}

const FileSystem& calls() noexcept {
  const FileSystem* other = replaced.load(std::memory_order_acquire);
  return other != nullptr ? *other : kReal;
}

void check_path(const std::string& path) {
  if (path.empty()) throw ArgumentError("file: expected a path, got an empty one");
  if (path.find('\0') != std::string::npos)
    throw ArgumentError("file: expected a path without NUL, got one with NUL at position " +
                        std::to_string(path.find('\0')));
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

int Descriptor::release() noexcept { return std::exchange(fd_, -1); }

void Descriptor::reset() noexcept {
  if (fd_ >= 0) calls().close(fd_);
  fd_ = -1;
}

}  // namespace braid::io
