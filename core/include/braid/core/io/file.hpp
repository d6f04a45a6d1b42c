#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <braid/core/io/file_system.hpp>
#include <braid/core/io/folder.hpp>

// Files, read and written with the system's own calls. Every failure is an IoError with path,
// operation, errno and offset.
namespace braid::io {

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
  /// Throws IoError if it cannot be opened or is not a regular file (a folder, a pipe, a device),
  /// ArgumentError for a path with a NUL character.
  explicit InputFile(std::string path);
  /// The same within a folder; a symbolic link is an IoError.
  InputFile(const Folder& folder, const std::string& name);
  [[nodiscard]] const std::string& path() const noexcept override { return path_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return size_; }
  /// IoError also where the file has become shorter since it was opened.
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const override;

 private:
  void open(int folder, const char* name, int flags);
  std::string path_;
  Descriptor fd_;
  std::uint64_t size_ = 0;
};

/// Somebody else's bytes, which must stay where they are.
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

/// A file that appears whole or not at all: written beside its place under a name of its own,
/// readable by nobody else, and moved there by commit(). Until then, and after any error, what was
/// at the path stays as it was. A symbolic link at the path is replaced, not followed.
class OutputFile {
 public:
  /// Also removes what a process that was killed in the middle of a save left in the folder: files
  /// called `.braid-*.tmp` on which nobody holds a lock.
  /// Throws IoError if the folder cannot be opened, or something that is not a regular file is at
  /// the path.
  explicit OutputFile(std::string path);
  /// The same within a folder, whose other entries are left alone.
  OutputFile(const Folder& folder, const std::string& name);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Removes what was written if commit() was not reached.
  ~OutputFile();
  /// Appends.
  void write(const void* from, std::uint64_t bytes);
  /// Of what was written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return written_; }
  [[nodiscard]] std::uint32_t crc32c() const noexcept { return crc32c_; }
  /// Counts crc32c() along from now on.
  void keep_checksum() noexcept { checksum_ = true; }
  /// Flushes to the disk, gives the file the mode of the one it replaces (else 0666 without the
  /// umask), renames, flushes the folder. Only if the very last step fails is the new file in place
  /// although IoError is thrown: whether it outlives a power loss is then unknown.
  void commit();

 private:
  void open();
  [[nodiscard]] int create(unsigned mode);
  [[nodiscard]] bool lock();
  void remove_stale() const;
  [[noreturn]] void fail(const char* operation, int error) const;
  std::string path_, name_;
  std::string temporary_;  // in the same folder; empty: nothing to remove
  // lock_: of the same file, held until it has its final name, which is after fd_ is closed
  Descriptor folder_, fd_, lock_;
  std::uint64_t written_ = 0;
  unsigned mode_ = 0;
  bool checksum_ = false;
  std::uint32_t crc32c_ = 0;
};

/// A log: written at its end, kept where it is. What is there after a crash may end in the middle
/// of a write.
class LogFile {
 public:
  enum class Start : std::uint8_t { append, anew };
  /// Throws IoError for anything but a regular file or none: a symbolic link (which is not
  /// followed), a folder, a pipe, a device.
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
