#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

struct stat;  // <sys/stat.h>

// Files, read and written with the system's own calls. Every failure is an IoError with path, operation, errno and offset.
namespace braid::io {

/// The system calls that Braid's file code makes. Tests put their own in place to make the k-th call fail.
struct FileSystem {
  int (*open)(int folder, const char* path, int flags, unsigned mode);  ///< openat
  int (*close)(int fd);
  int (*fstat)(int fd, struct stat* info);
  int (*stat_in)(int folder, const char* path, struct stat* info);  ///< fstatat; does not follow a symbolic link
  long (*pread)(int fd, void* to, std::size_t bytes, std::int64_t offset);
  long (*pwrite)(int fd, const void* from, std::size_t bytes, std::int64_t offset);
  int (*fsync)(int fd);
  int (*fchmod)(int fd, unsigned mode);
  int (*rename)(int folder, const char* from, const char* to);  ///< renameat within one folder
  int (*unlink)(int folder, const char* path);
};
/// The operating system's.
[[nodiscard]] const FileSystem& real_file_system() noexcept;
/// Replaces the calls for the whole process; null restores the real ones. The table must stay alive.
void set_file_system(const FileSystem* calls) noexcept;

/// An open descriptor; closed on destruction.
class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const noexcept { return fd_; }
  /// Gives the descriptor away.
  [[nodiscard]] int release() noexcept;
  void reset() noexcept;

 private:
  int fd_ = -1;
};

/// Bytes that a parser reads: a file, or memory.
class Source {
 public:
  virtual ~Source() = default;
  /// Its path, for messages.
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Exactly `bytes` bytes from `offset` on, or IoError.
  virtual void read(void* to, std::uint64_t bytes, std::uint64_t offset) const = 0;
};

/// A regular file to be read. Its size is taken once, when it is opened.
class InputFile final : public Source {
 public:
  /// Throws IoError if it cannot be opened or is not a regular file (a folder, a pipe, a device), ArgumentError for a path with a NUL character.
  explicit InputFile(std::string path);
  [[nodiscard]] const std::string& path() const noexcept override { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  /// IoError also where the file has become shorter since it was opened.
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const override;

 private:
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

/// Somebody else's bytes, which must stay where they are.
class MemorySource final : public Source {
 public:
  explicit MemorySource(std::span<const std::byte> bytes, std::string name = "memory") : name_(std::move(name)), bytes_(bytes) {}
  [[nodiscard]] const std::string& path() const noexcept override { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const override;

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

/// A file that appears whole or not at all: written beside its place under a name of its own, readable by nobody else, and moved there by commit().
/// Until then, and after any error, what was at the path stays as it was. A symbolic link at the path is replaced, not followed.
class OutputFile {
 public:
  /// Throws IoError if the folder cannot be opened, or something that is not a regular file is at the path.
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes what was written if commit() was not reached.
  ~OutputFile();
  /// Appends.
  void write(const void* from, std::uint64_t bytes);
  /// Flushes to the disk, gives the file the mode of the one it replaces (else 0666 without the umask), renames, flushes the folder.
  /// Only if the very last step fails is the new file in place although IoError is thrown: whether it outlives a power loss is then unknown.
  void commit();

 private:
  [[noreturn]] void fail(const char* operation, int error) const;
  std::string path_, name_;
  std::string temporary_;  // in the same folder; empty: nothing to remove
  Descriptor folder_, fd_;
  std::uint64_t written_ = 0;
  unsigned mode_ = 0;
};

}  // namespace braid::io
