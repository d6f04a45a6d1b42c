#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/internal/io/file_system.hpp>
#include <braid/core/internal/io/folder.hpp>

// Files, read and written with system calls. Every failure throws IoError, with path, operation,
// errno and offset.
namespace braid::io {

/// The bytes that a parser reads: a file, or memory.
class Source {
 public:
  virtual ~Source() = default;
  /// The path, for messages.
  [[nodiscard]] virtual const std::string& path() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Reads exactly `bytes` bytes from `offset` on, or throws IoError.
  virtual void read(void* to, std::uint64_t bytes, std::uint64_t offset) const = 0;
  /// Returns all bytes.
  [[nodiscard]] std::string read_all() const;
};

/// A regular file, open for reading. Its size is determined once, when it is opened.
class InputFile final : public Source {
 public:
  /// Throws IoError if it cannot be opened or is not a regular file (a folder, a pipe, a device),
  /// ArgumentError for an empty path or one with a NUL character.
  explicit InputFile(std::string path);
  /// The same within a folder. Throws IoError for a symbolic link.
  InputFile(const Folder& folder, const std::string& name);
  [[nodiscard]] const std::string& path() const noexcept override { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  /// Throws IoError also if the file has become shorter since it was opened.
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const override;

 private:
  void open(int folder, const char* name, int flags);
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

/// Bytes that the caller owns and must keep valid.
class MemorySource final : public Source {
 public:
  explicit MemorySource(std::span<const std::byte> bytes, std::string name = "memory")
      : name_(std::move(name)), bytes_(bytes) {}
  [[nodiscard]] const std::string& path() const noexcept override { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const override;

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

/// A file that appears completely or not at all. It is written in the same folder under a temporary
/// name, readable only by its owner, and renamed to its path by commit(). Until then, and after any
/// error, what was at the path stays as it was. A symbolic link at the path is replaced, not
/// followed.
class OutputFile {
 public:
  /// Also removes the temporary files that killed processes have left in the folder: files called
  /// `.braid-*.tmp` that nobody has locked. Throws IoError if the folder cannot be opened, or if
  /// the path names something other than a regular file or a symbolic link.
  explicit OutputFile(std::string path);
  /// The same within a folder, whose other entries are left alone.
  OutputFile(const Folder& folder, const std::string& name);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes the temporary file unless commit() has renamed it.
  ~OutputFile();
  /// Appends bytes. Throws IoError.
  void write(const void* from, std::uint64_t bytes);
  /// Number of bytes written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return written_; }
  /// Checksum of the bytes written since keep_checksum().
  [[nodiscard]] std::uint32_t crc32c() const noexcept { return crc32c_; }
  /// Computes crc32c() from now on.
  void keep_checksum() noexcept { checksum_ = true; }
  /// Flushes the file to the disk, gives it the mode of the one it replaces (else 0666 without the
  /// umask), renames it, and flushes the folder. Throws IoError; if only the last step failed, the
  /// new file is in place nevertheless, but it may not survive a power loss.
  void commit();

 private:
  void open();
  [[nodiscard]] int create(unsigned mode);
  [[nodiscard]] bool lock();
  void remove_stale() const;
  [[noreturn]] void fail(const char* operation, int error) const;
  std::string path_, name_;
  std::string temporary_;  // in the same folder; empty: nothing to remove
  // lock_ holds the lock on the temporary file until the file has its final name; fd_ is closed
  // before that
  Descriptor folder_, fd_, lock_;
  std::uint64_t written_ = 0;
  unsigned mode_ = 0;
  bool checksum_ = false;
  std::uint32_t crc32c_ = 0;
};

/// A log file: bytes are appended in place. After a crash it may end in the middle of a write.
class LogFile {
 public:
  /// `append` keeps the content of an existing file; `truncate` removes it.
  enum class Start : std::uint8_t { append, truncate };
  /// Throws IoError if the path names anything but a regular file: a symbolic link (which is not
  /// followed), a folder, a pipe, a device. Creates the file if there is none.
  LogFile(std::string path, Start start);
  LogFile(const Folder& folder, const std::string& name, Start start);
  void write(const void* from, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  void open(int folder, const char* name, Start start);
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

}  // namespace braid::io
