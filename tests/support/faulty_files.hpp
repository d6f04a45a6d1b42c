#pragma once
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <braid/core/io/file.hpp>

namespace braid::test {

// A file system whose k-th call fails with a chosen error. It counts its calls and records which
// one failed.
struct Faults {
  int fail_at = 0;  // 0: no call fails
  int error = EIO;
  bool persistent = false;
  std::size_t most = ~std::size_t{0};  // the maximum of bytes per read or write
  int calls = 0;
  int last_fsync = 0, renamed = 0, folder_fsync = 0;  // the index of the call
  unsigned written_mode = 0;                          // of the temporary file, at its first write
  std::string failed = {};
};
inline Faults faults;

inline bool fails(const char* name) {
  ++faults.calls;
  if (faults.fail_at == 0 ||
      (faults.persistent ? faults.calls < faults.fail_at : faults.calls != faults.fail_at))
    return false;
  faults.failed = name;
  errno = faults.error;
  return true;
}

inline const io::FileSystem& real() { return io::real_file_system(); }
inline const io::FileSystem kFaulty{
    .open =
        [](int folder, const char* path, int flags, unsigned mode) {
          return fails("open") ? -1 : real().open(folder, path, flags, mode);
        },
    .close =
        [](int fd) {
          const bool failed = fails("close");
          const int result = real().close(fd);  // a close that fails releases the descriptor too
          if (failed) errno = faults.error;
          return failed ? -1 : result;
        },
    .fstat = [](int fd, struct stat* info) { return fails("fstat") ? -1 : real().fstat(fd, info); },
    .stat_in =
        [](int folder, const char* path, struct stat* info) {
          return fails("stat") ? -1 : real().stat_in(folder, path, info);
        },
    .pread =
        [](int fd, void* to, std::size_t bytes, std::int64_t offset) {
          return fails("pread") ? -1 : real().pread(fd, to, std::min(bytes, faults.most), offset);
        },
    .pwrite =
        [](int fd, const void* from, std::size_t bytes, std::int64_t offset) {
          struct stat info{};
          if (real().fstat(fd, &info) == 0 && offset == 0)
            faults.written_mode = info.st_mode & 07777;
          return fails("pwrite") ? -1
                                 : real().pwrite(fd, from, std::min(bytes, faults.most), offset);
        },
    .fsync =
        [](int fd) {
          if (fails("fsync")) return -1;
          (faults.renamed == 0 ? faults.last_fsync : faults.folder_fsync) = faults.calls;
          static_cast<void>(fd);  // no real fsync: it is slow, and no test here cuts the power
          return 0;
        },
    .fchmod = [](int fd, unsigned mode) { return fails("fchmod") ? -1 : real().fchmod(fd, mode); },
    .lock = [](int fd) { return fails("lock") ? -1 : real().lock(fd); },
    .rename =
        [](int folder, const char* from, const char* to) {
          if (fails("rename")) return -1;
          faults.renamed = faults.calls;
          return real().rename(folder, from, to);
        },
    .unlink = [](int folder,
                 const char* path) { return fails("unlink") ? -1 : real().unlink(folder, path); },
    .mkdir = [](int folder, const char* path,
                unsigned mode) { return fails("mkdir") ? -1 : real().mkdir(folder, path, mode); },
    .rmdir = [](int folder,
                const char* path) { return fails("rmdir") ? -1 : real().rmdir(folder, path); },
    .list =
        [](int folder, std::vector<std::string>& names) {
          return fails("list") ? -1 : real().list(folder, names);
        },
};

struct WithFaults {
  explicit WithFaults(Faults f) {
    faults = std::move(f);
    io::set_file_system(&kFaulty);
  }
  ~WithFaults() { io::set_file_system(nullptr); }
};

inline int open_files() {
  int n = 0;
  struct stat info{};
  for (int fd = 0; fd < 256; ++fd) n += ::fstat(fd, &info) == 0 ? 1 : 0;
  return n;
}

}  // namespace braid::test
