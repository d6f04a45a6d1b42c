#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <braid/core/error.hpp>
#include <braid/core/io/checked.hpp>
#include <braid/core/io/file.hpp>

namespace braid::io {
namespace {

constexpr std::uint64_t kLargestTransfer = std::uint64_t{1} << 30;  // Linux moves at most 2 GiB - 4 KiB a call

constexpr FileSystem kReal{
    .open = [](int folder, const char* path, int flags, unsigned mode) { return ::openat(folder, path, flags, mode); },
    .close = [](int fd) { return ::close(fd); },
    .fstat = [](int fd, struct stat* info) { return ::fstat(fd, info); },
    .stat_in = [](int folder, const char* path, struct stat* info) { return ::fstatat(folder, path, info, AT_SYMLINK_NOFOLLOW); },
    .pread = [](int fd, void* to, std::size_t bytes, std::int64_t offset) -> long { return ::pread(fd, to, bytes, offset); },
    .pwrite = [](int fd, const void* from, std::size_t bytes, std::int64_t offset) -> long { return ::pwrite(fd, from, bytes, offset); },
    .fsync = [](int fd) { return ::fsync(fd); },
    .fchmod = [](int fd, unsigned mode) { return ::fchmod(fd, static_cast<mode_t>(mode)); },
    .rename = [](int folder, const char* from, const char* to) { return ::renameat(folder, from, folder, to); },
    .unlink = [](int folder, const char* path) { return ::unlinkat(folder, path, 0); },
};

std::atomic<const FileSystem*> replaced{nullptr};

const FileSystem& calls() noexcept {
  const FileSystem* other = replaced.load(std::memory_order_acquire);
  return other != nullptr ? *other : kReal;
}

/// Repeats a call that a signal interrupted. close is not to be repeated, so it does not come here.
template <class F>
auto uninterrupted(const F& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

void check_path(const std::string& path) {
  if (path.empty()) throw ArgumentError("file: expected a path, got an empty one");
  if (path.find('\0') != std::string::npos)
    throw ArgumentError("file: expected a path without NUL, got one with NUL at position " + std::to_string(path.find('\0')));
}

/// Random, so that nobody can foresee it, and from a fixed set of characters, whatever the file is called.
std::string temporary_name() {
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    number = (static_cast<std::uint64_t>(::getpid()) << 32) ^ counter.fetch_add(1, std::memory_order_relaxed);  // O_EXCL makes a collision harmless
  }
  char text[40];
  std::snprintf(text, sizeof text, ".braid-%016llx.tmp", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

const FileSystem& real_file_system() noexcept { return kReal; }
void set_file_system(const FileSystem* other) noexcept { replaced.store(other, std::memory_order_release); }

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

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  check_path(path_);
  // O_NONBLOCK: opening a pipe without a writer would wait for ever. It does nothing to regular files.
  const int fd = uninterrupted([&] { return calls().open(AT_FDCWD, path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0); });
  if (fd < 0) throw IoError(path_, "open", errno);
  fd_ = Descriptor(fd);
  struct stat info {};
  if (uninterrupted([&] { return calls().fstat(fd_.get(), &info); }) != 0) throw IoError(path_, "fstat", errno);
  if (!S_ISREG(info.st_mode)) throw IoError(path_, "open", 0, -1, "expected a regular file, got something else");
  size_ = static_cast<std::uint64_t>(info.st_size);
}

void InputFile::read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min(bytes, kLargestTransfer));
    const long got = uninterrupted([&] { return calls().pread(fd_.get(), at, part, static_cast<std::int64_t>(offset)); });
    if (got < 0) throw IoError(path_, "read", errno, static_cast<std::int64_t>(offset));
    if (got == 0) throw IoError(path_, "read", 0, static_cast<std::int64_t>(offset), str("expected ", bytes, " more bytes, got the end of the file"));
    at += got;
    bytes -= static_cast<std::uint64_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
}

void MemorySource::read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
  if (!fits(offset, bytes, bytes_.size()))
    throw IoError(name_, "read", 0, static_cast<std::int64_t>(offset), str("expected ", bytes, " more bytes, got the end"));
  if (bytes > 0) std::memcpy(to, bytes_.data() + offset, static_cast<std::size_t>(bytes));
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  check_path(path_);
  const std::size_t slash = path_.rfind('/');
  name_ = slash == std::string::npos ? path_ : path_.substr(slash + 1);
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (name_.empty() || name_ == "." || name_ == "..") fail("open", EISDIR);
  const int folder_fd = uninterrupted([&] { return calls().open(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0); });
  if (folder_fd < 0) fail("open folder", errno);
  folder_ = Descriptor(folder_fd);

  bool replaces = false;
  struct stat info {};
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

  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int fd = -1;
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    temporary_ = temporary_name();
    // Without a file to replace, the system itself takes the umask (and the folder's defaults) off 0666: the mode is kept for commit.
    fd = uninterrupted([&] { return calls().open(folder_.get(), temporary_.c_str(), kFlags, replaces ? 0600 : 0666); });
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) {
    const int error = errno;
    temporary_.clear();
    fail("create", error);
  }
  fd_ = Descriptor(fd);
  if (replaces) return;
  int error = 0;
  if (uninterrupted([&] { return calls().fstat(fd_.get(), &info); }) != 0) error = errno;
  mode_ = info.st_mode & 0777;
  if (error == 0 && uninterrupted([&] { return calls().fchmod(fd_.get(), 0600); }) != 0) error = errno;
  if (error != 0) {
    calls().unlink(folder_.get(), temporary_.c_str());  // no destructor runs for a constructor that throws
    fail("create", error);
  }
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) calls().unlink(folder_.get(), temporary_.c_str());
}

void OutputFile::fail(const char* operation, int error) const {
  throw IoError(path_, operation, error, written_ > 0 ? static_cast<std::int64_t>(written_) : -1);
}

void OutputFile::write(const void* from, std::uint64_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min(bytes, kLargestTransfer));
    const long put = uninterrupted([&] { return calls().pwrite(fd_.get(), at, part, static_cast<std::int64_t>(written_)); });
    if (put < 0) throw IoError(path_, "write", errno, static_cast<std::int64_t>(written_));
    if (put == 0) throw IoError(path_, "write", 0, static_cast<std::int64_t>(written_), str("expected to write ", part, " bytes, got none written"));
    at += put;
    bytes -= static_cast<std::uint64_t>(put);
    written_ += static_cast<std::uint64_t>(put);
  }
}

void OutputFile::commit() {
  // A failed fsync may have dropped the dirty pages: trying again could report success for lost data. So each error here is final.
  if (uninterrupted([&] { return calls().fsync(fd_.get()); }) != 0) fail("fsync", errno);
  if (uninterrupted([&] { return calls().fchmod(fd_.get(), mode_); }) != 0) fail("fchmod", errno);
  if (calls().close(fd_.release()) != 0 && errno != EINTR) fail("close", errno);  // Linux has closed it in any case
  if (uninterrupted([&] { return calls().rename(folder_.get(), temporary_.c_str(), name_.c_str()); }) != 0) fail("rename", errno);
  temporary_.clear();
  if (uninterrupted([&] { return calls().fsync(folder_.get()); }) != 0) fail("fsync folder", errno);
}

}  // namespace braid::io
