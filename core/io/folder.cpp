#include <braid/core/internal/io/folder.hpp>

#include <fcntl.h>

#include <algorithm>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/json.hpp>

#include "io/calls.hpp"

namespace braid::io {
namespace {

constexpr int kOpen = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

std::string joined(const std::string& folder, const std::string& name) {
  return folder.ends_with('/') ? folder + name : folder + '/' + name;
}

/// Throws IoError if the call failed.
template <class F> void check(const std::string& path, const char* operation, const F& call) {
  if (uninterrupted(call) < 0) throw IoError(path, operation, errno);
}

}  // namespace

void check_entry_name(const std::string& name) {
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
  if (!good || name.empty() || name.size() > 255 || name == "." || name == "..")
    throw ArgumentError(
        str("file: expected a name of letters, digits, '_', '.' and '-', got ", quoted(name)));
}

Folder::Folder(std::string path) : path_(std::move(path)) {
  check_path(path_);
  const int fd = uninterrupted([&] { return calls().open(AT_FDCWD, path_.c_str(), kOpen, 0); });
  if (fd < 0) throw IoError(path_, "open folder", errno);
  fd_ = Descriptor(fd);
}

Folder Folder::make(const std::string& path) {
  check_path(path);
  if (const int fd = uninterrupted([&] { return calls().open(AT_FDCWD, path.c_str(), kOpen, 0); });
      fd >= 0)
    return {path, Descriptor(fd)};
  if (errno != ENOENT) throw IoError(path, "open folder", errno);
  std::string own = path;
  while (own.size() > 1 && own.ends_with('/')) own.pop_back();
  const std::size_t slash = own.rfind('/');
  const std::string name = slash == std::string::npos ? own : own.substr(slash + 1);
  const Folder above = slash == std::string::npos ? Folder(".")
                       : slash == 0               ? Folder("/")
                                                  : make(own.substr(0, slash));
  if (uninterrupted([&] { return calls().mkdir(above.fd(), name.c_str(), 0777); }) != 0 &&
      errno != EEXIST)
    throw IoError(path, "make folder", errno);
  above.flush();
  return Folder(path);
}

std::vector<std::string> Folder::names() const {
  std::vector<std::string> list;
  check(path_, "list", [&] { return list.clear(), calls().list(fd(), list); });
  std::sort(list.begin(), list.end());
  return list;
}

Folder Folder::open(const std::string& name) const {
  check_entry_name(name);
  const int fd =
      uninterrupted([&] { return calls().open(this->fd(), name.c_str(), kOpen | O_NOFOLLOW, 0); });
  if (fd < 0) throw IoError(joined(path_, name), "open folder", errno);
  return {joined(path_, name), Descriptor(fd)};
}

void Folder::make_folder(const std::string& name) const {
  check_entry_name(name);
  check(joined(path_, name), "make folder",
        [&] { return calls().mkdir(fd(), name.c_str(), 0777); });
}

void Folder::remove(const std::string& name) const {
  check_entry_name(name);
  check(joined(path_, name), "remove", [&] { return calls().unlink(fd(), name.c_str()); });
}

void Folder::remove_folder(const std::string& name) const {
  check_entry_name(name);
  check(joined(path_, name), "remove folder", [&] { return calls().rmdir(fd(), name.c_str()); });
}

void Folder::rename(const std::string& from, const std::string& to) const {
  check_entry_name(from);
  check_entry_name(to);
  check(joined(path_, to), "rename",
        [&] { return calls().rename(fd(), from.c_str(), to.c_str()); });
}

void Folder::flush() const {
  check(path_, "fsync folder", [&] { return calls().fsync(fd()); });
}

}  // namespace braid::io
