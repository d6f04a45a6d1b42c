#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/checked.hpp>
#include <braid/core/internal/io/crc.hpp>
#include <braid/core/internal/io/file.hpp>

#include "io/calls.hpp"

namespace braid::io {
namespace {

// Linux transfers at most 2 GiB - 4 KiB per call
constexpr std::uint64_t kLargestTransfer = std::uint64_t{1} << 30;

/// The name of a temporary file: random, so that it cannot be predicted, and in a fixed format that
/// does not depend on the final name.
constexpr std::string_view kTemporary = ".braid-", kTemporaryEnd = ".tmp";
constexpr std::size_t kTemporaryDigits = 16;
std::string temporary_name() {
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    // O_EXCL makes a collision harmless
    number = (static_cast<std::uint64_t>(::getpid()) << 32) ^
             counter.fetch_add(1, std::memory_order_relaxed);
  }
  char text[40];
  std::snprintf(text, sizeof text, ".braid-%016llx.tmp", static_cast<unsigned long long>(number));
  return text;
}
bool is_temporary(std::string_view name) {
  return name.size() == kTemporary.size() + kTemporaryDigits + kTemporaryEnd.size() &&
         name.starts_with(kTemporary) && name.ends_with(kTemporaryEnd);
}

/// Writes all bytes at offset `at`, and advances `at`.
void write_all(const std::string& path, int fd, const void* from, std::uint64_t bytes,
               std::uint64_t& at) {
  const auto* next = static_cast<const char*>(from);
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min(bytes, kLargestTransfer));
    const long put = uninterrupted(
        [&] { return calls().pwrite(fd, next, part, static_cast<std::int64_t>(at)); });
    if (put < 0) throw IoError(path, "write", errno, static_cast<std::int64_t>(at));
    if (put == 0)
      throw IoError(path, "write", 0, static_cast<std::int64_t>(at),
                    str("expected to write ", part, " bytes, got none written"));
    next += put;
    bytes -= static_cast<std::uint64_t>(put);
    at += static_cast<std::uint64_t>(put);
  }
}

}  // namespace

std::string Source::read_all() const {
  std::string text(static_cast<std::size_t>(size()), '\0');
  if (!text.empty()) read(text.data(), text.size(), 0);
  return text;
}

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  check_path(path_);
  open(AT_FDCWD, path_.c_str(), 0);
}

InputFile::InputFile(const Folder& folder, const std::string& name)
    : path_(folder.path() + '/' + name) {
  check_entry_name(name);
  open(folder.fd(), name.c_str(), O_NOFOLLOW);
}

void InputFile::open(int folder, const char* name, int flags) {
  // O_NONBLOCK: without it, opening a pipe that has no writer would block. It has no effect on
  // regular files.
  const int fd = uninterrupted([&] {
    return calls().open(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0);
  });
  if (fd < 0) throw IoError(path_, "open", errno);
  fd_ = Descriptor(fd);
  struct stat info{};
  if (uninterrupted([&] { return calls().fstat(fd_.get(), &info); }) != 0)
    throw IoError(path_, "fstat", errno);
  if (!S_ISREG(info.st_mode))
    throw IoError(path_, "open", 0, -1, "expected a regular file, got something else");
  size_ = static_cast<std::uint64_t>(info.st_size);
}

void InputFile::read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min(bytes, kLargestTransfer));
    const long got = uninterrupted(
        [&] { return calls().pread(fd_.get(), at, part, static_cast<std::int64_t>(offset)); });
    if (got < 0) throw IoError(path_, "read", errno, static_cast<std::int64_t>(offset));
    if (got == 0)
      throw IoError(path_, "read", 0, static_cast<std::int64_t>(offset),
                    str("expected ", bytes, " more bytes, got the end of the file"));
    at += got;
    bytes -= static_cast<std::uint64_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

void MemorySource::read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
  if (!fits(offset, bytes, bytes_.size()))
    throw IoError(name_, "read", 0, static_cast<std::int64_t>(offset),
                  str("expected ", bytes, " more bytes, got the end"));
  if (bytes > 0) std::memcpy(to, bytes_.data() + offset, static_cast<std::size_t>(bytes));
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  check_path(path_);
  const std::size_t slash = path_.rfind('/');
  name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (name_.empty() || name_ == "." || name_ == "..") fail("open", EISDIR);
  const int folder_fd = uninterrupted([&] {
    return calls().open(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  });
  if (folder_fd < 0) fail("open folder", errno);
  folder_ = Descriptor(folder_fd);
  remove_stale();
  open();
}

OutputFile::OutputFile(const Folder& folder, const std::string& name)
    : path_(folder.path() + '/' + name), name_(name) {
  check_entry_name(name);
  const int folder_fd = uninterrupted(
      [&] { return calls().open(folder.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (folder_fd < 0) fail("open folder", errno);
  folder_ = Descriptor(folder_fd);
  open();
}

void OutputFile::open() {
  bool replaces = false;
  struct stat info{};
  if (uninterrupted([&] { return calls().stat_in(folder_.get(), name_.c_str(), &info); }) == 0) {
    if (S_ISREG(info.st_mode)) {
      replaces = true;
      mode_ = info.st_mode & 0777;
    } else if (!S_ISLNK(info.st_mode)) {
      throw IoError(path_, "open", 0, -1, "expected a regular file or none, got something else");
    }
  } else if (errno != ENOENT) {
    fail("stat", errno);
  }

  // If there is no file to replace, the system applies the umask (or the folder's default ACL) to
  // 0666. The resulting mode is kept for commit().
  bool locked = false;
  for (int attempt = 0; attempt < 100 && !locked; ++attempt) {
    fd_ = Descriptor(create(replaces ? 0600 : 0666));
    int error = 0;
    if (!replaces) {
      if (uninterrupted([&] { return calls().fstat(fd_.get(), &info); }) != 0) error = errno;
      mode_ = info.st_mode & 0777;
      if (error == 0 && uninterrupted([&] { return calls().fchmod(fd_.get(), 0600); }) != 0)
        error = errno;
    }
    if (error == 0) {
      try {
        locked = lock();
      } catch (const IoError& e) {
        error = e.error_number;
      }
    }
    if (locked) continue;
    // a constructor that throws runs no destructor, so remove the file here
    calls().unlink(folder_.get(), temporary_.c_str());
    if (error != 0) fail("create", error);
  }
  if (!locked) fail("create", EBUSY);
}

/// Creates a temporary file with a unique name in the folder, and returns its descriptor.
int OutputFile::create(unsigned mode) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = -1;
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    temporary_ = temporary_name();
    fd = uninterrupted(
        [&] { return calls().open(folder_.get(), temporary_.c_str(), kFlags, mode); });
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) {
    const int error = errno;
    temporary_.clear();
    fail("create", error);
  }
  return fd;
}

/// Takes the lock that keeps remove_stale() of other processes from removing the temporary file.
/// Returns false if another process has locked or removed it before.
bool OutputFile::lock() {
  const int fd = uninterrupted([&] {
    return calls().open(folder_.get(), temporary_.c_str(),
                        O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0);
  });
  if (fd < 0 && errno == ENOENT) return false;
  if (fd < 0) fail("create", errno);
  lock_ = Descriptor(fd);
  if (uninterrupted([&] { return calls().lock(fd); }) != 0) {
    // If the file system has no locks, remove_stale() gets none either and removes nothing.
    return errno != EWOULDBLOCK;
  }
  struct stat info{};
  if (uninterrupted([&] { return calls().fstat(fd, &info); }) != 0) fail("fstat", errno);
  return info.st_nlink > 0;
}

/// Removes the temporary files of killed processes, which are those that nobody has locked. Skips
/// files that cannot be opened or removed.
void OutputFile::remove_stale() const {
  std::vector<std::string> names;
  if (uninterrupted([&] { return names.clear(), calls().list(folder_.get(), names); }) != 0) return;
  for (const std::string& name : names) {
    if (!is_temporary(name)) continue;
    const int fd = uninterrupted([&] {
      return calls().open(folder_.get(), name.c_str(),
                          O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    });
    if (fd < 0) continue;
    const Descriptor file(fd);
    struct stat info{};
    if (uninterrupted([&] { return calls().fstat(fd, &info); }) != 0 || !S_ISREG(info.st_mode))
      continue;
    if (uninterrupted([&] { return calls().lock(fd); }) == 0)
      calls().unlink(folder_.get(), name.c_str());
  }
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) calls().unlink(folder_.get(), temporary_.c_str());
}

void OutputFile::fail(const char* operation, int error) const {
  throw IoError(path_, operation, error, written_ > 0 ? static_cast<std::int64_t>(written_) : -1);
}

void OutputFile::write(const void* from, std::uint64_t bytes) {
  if (checksum_) crc32c_ = io::crc32c(from, static_cast<std::size_t>(bytes), crc32c_);
  write_all(path_, fd_.get(), from, bytes, written_);
}

void OutputFile::commit() {
  // Each error here is final. A failed fsync may have dropped the dirty pages, so that a second
  // attempt could report success for lost data.
  if (uninterrupted([&] { return calls().fsync(fd_.get()); }) != 0) fail("fsync", errno);
  if (uninterrupted([&] { return calls().fchmod(fd_.get(), mode_); }) != 0) fail("fchmod", errno);
  // Linux closes the descriptor even if close() fails with EINTR
  if (calls().close(fd_.release()) != 0 && errno != EINTR) fail("close", errno);
  if (uninterrupted(
          [&] { return calls().rename(folder_.get(), temporary_.c_str(), name_.c_str()); }) != 0)
    fail("rename", errno);
  temporary_.clear();
  lock_.reset();
  if (uninterrupted([&] { return calls().fsync(folder_.get()); }) != 0) fail("fsync folder", errno);
}

LogFile::LogFile(std::string path, Start start) : path_(std::move(path)) {
  check_path(path_);
  open(AT_FDCWD, path_.c_str(), start);
}

LogFile::LogFile(const Folder& folder, const std::string& name, Start start)
    : path_(folder.path() + '/' + name) {
  check_entry_name(name);
  open(folder.fd(), name.c_str(), start);
}

void LogFile::open(int folder, const char* name, Start start) {
  // O_NONBLOCK: without it, opening a pipe that has no reader would block. It has no effect on
  // regular files.
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK |
                    (start == Start::truncate ? O_TRUNC : 0);
  const int fd = uninterrupted([&] { return calls().open(folder, name, flags, 0666); });
  if (fd < 0 && errno != ELOOP && errno != ENXIO) throw IoError(path_, "open", errno);
  struct stat info{};
  if (fd >= 0) {
    fd_ = Descriptor(fd);
    if (uninterrupted([&] { return calls().fstat(fd_.get(), &info); }) != 0)
      throw IoError(path_, "fstat", errno);
  }
  if (fd < 0 || !S_ISREG(info.st_mode))  // ELOOP: a symbolic link; ENXIO: a pipe without a reader
    throw IoError(path_, "open", 0, -1,
                  str("expected a regular file, got ",
                      fd < 0 && errno == ELOOP ? "a symbolic link" : "something else"));
  size_ = static_cast<std::uint64_t>(info.st_size);
}

void LogFile::write(const void* from, std::uint64_t bytes) {
  write_all(path_, fd_.get(), from, bytes, size_);
}

}  // namespace braid::io
