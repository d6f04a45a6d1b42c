#pragma once
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

// Temporary files for tests.
namespace braid::test {

/// A new temporary folder. The destructor removes it with all its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* base = std::getenv("TMPDIR");
    std::string name = std::string(base != nullptr ? base : "/tmp") + "/braid-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr)
      throw std::runtime_error("cannot make a temporary folder");
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { remove_all(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Returns the names of all entries.
  [[nodiscard]] std::vector<std::string> names() const { return names_in(path_); }
  [[nodiscard]] static std::vector<std::string> names_in(const std::string& path) {
    std::vector<std::string> list;
    DIR* folder = ::opendir(path.c_str());
    if (folder == nullptr) return list;
    while (const dirent* entry = ::readdir(folder)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") list.push_back(name);
    }
    ::closedir(folder);
    return list;
  }
  /// Removes a file, or a folder with all its contents.
  static void remove_all(const std::string& path) {
    if (::unlink(path.c_str()) == 0) return;
    for (const std::string& name : names_in(path)) remove_all(path + "/" + name);
    ::rmdir(path.c_str());
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  std::string bytes;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, file)) bytes.append(buffer, n);
  std::fclose(file);
  return bytes;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path);
  const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !ok) throw std::runtime_error("cannot write " + path);
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// Returns the permission bits of a file.
inline unsigned mode_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) throw std::runtime_error("cannot stat " + path);
  return info.st_mode & 07777;
}

}  // namespace braid::test
