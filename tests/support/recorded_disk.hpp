#pragma once
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <braid/core/io/file_system.hpp>

#include "support/temporary.hpp"

// Records the file-system calls that a program makes under one folder, and simulates what a disk
// may hold of them if the power fails after any prefix of the calls.
namespace braid::test {

struct DiskCall {
  enum class Kind { create, make_folder, write, flush, rename, remove } kind;
  int node = 0;    // the file or folder that is written, flushed or created
  int folder = 0;  // the folder that contains it
  std::string name = {}, to = {}, bytes = {};
  std::int64_t offset = 0;
};

/// The recorded calls, and the node of each descriptor. Node 0 is the root folder.
struct DiskRecord {
  std::string root;
  std::vector<DiskCall> calls;
  int nodes = 1;
  std::map<int, int> node_of;                        // descriptor → node
  std::map<std::pair<int, std::string>, int> entry;  // (folder, name) → node, current state
  bool no_file_flush = false, no_folder_flush = false;
  std::map<int, bool> is_folder{{0, true}};
};
inline DiskRecord disk_record;

inline const io::FileSystem& recording_file_system() {
  static constexpr auto real = [] { return io::real_file_system(); };
  static const io::FileSystem table{
      .open =
          [](int folder, const char* path, int flags, unsigned mode) {
            DiskRecord& r = disk_record;
            const int fd = real().open(folder, path, flags, mode);
            if (fd < 0) return fd;
            if (folder == AT_FDCWD) {
              r.node_of[fd] = path == r.root ? 0 : -1;
              return fd;
            }
            const int above = r.node_of[folder];
            if (std::string(path) == ".") {
              r.node_of[fd] = above;
            } else if ((flags & O_CREAT) != 0) {
              const int node = r.nodes++;
              r.node_of[fd] = r.entry[{above, path}] = node;
              r.calls.push_back(
                  {.kind = DiskCall::Kind::create, .node = node, .folder = above, .name = path});
            } else {
              r.node_of[fd] = r.entry[{above, path}];
            }
            return fd;
          },
      .close = [](int fd) { return real().close(fd); },
      .fstat = [](int fd, struct stat* info) { return real().fstat(fd, info); },
      .stat_in = [](int folder, const char* path,
                    struct stat* info) { return real().stat_in(folder, path, info); },
      .pread = [](int fd, void* to, std::size_t bytes,
                  std::int64_t offset) { return real().pread(fd, to, bytes, offset); },
      .pwrite =
          [](int fd, const void* from, std::size_t bytes, std::int64_t offset) {
            const long done = real().pwrite(fd, from, bytes, offset);
            const std::string text(static_cast<const char*>(from), static_cast<std::size_t>(done));
            disk_record.calls.push_back({.kind = DiskCall::Kind::write,
                                         .node = disk_record.node_of[fd],
                                         .bytes = text,
                                         .offset = offset});
            return done;
          },
      .fsync =
          [](int fd) {
            const int node = disk_record.node_of[fd];
            const bool skip = disk_record.is_folder.contains(node) ? disk_record.no_folder_flush
                                                                   : disk_record.no_file_flush;
            if (node >= 0 && !skip)
              disk_record.calls.push_back({.kind = DiskCall::Kind::flush, .node = node});
            return 0;
          },
      .fchmod = [](int fd, unsigned mode) { return real().fchmod(fd, mode); },
      .lock = [](int fd) { return real().lock(fd); },
      .rename =
          [](int folder, const char* from, const char* to) {
            DiskRecord& r = disk_record;
            const int above = r.node_of[folder];
            r.calls.push_back(
                {.kind = DiskCall::Kind::rename, .folder = above, .name = from, .to = to});
            r.entry[{above, to}] = r.entry[{above, from}];
            return real().rename(folder, from, to);
          },
      .unlink =
          [](int folder, const char* path) {
            disk_record.calls.push_back({.kind = DiskCall::Kind::remove,
                                         .folder = disk_record.node_of[folder],
                                         .name = path});
            return real().unlink(folder, path);
          },
      .mkdir =
          [](int folder, const char* path, unsigned mode) {
            DiskRecord& r = disk_record;
            const int above = r.node_of[folder], node = r.nodes++;
            r.entry[{above, path}] = node;
            r.is_folder[node] = true;
            r.calls.push_back(
                {.kind = DiskCall::Kind::make_folder, .node = node, .folder = above, .name = path});
            return real().mkdir(folder, path, mode);
          },
      .rmdir =
          [](int folder, const char* path) {
            disk_record.calls.push_back({.kind = DiskCall::Kind::remove,
                                         .folder = disk_record.node_of[folder],
                                         .name = path});
            return real().rmdir(folder, path);
          },
      .list = [](int folder,
                 std::vector<std::string>& names) { return real().list(folder, names); },
  };
  return table;
}

/// The state after the first `count` calls: each node as the program sees it, and as it is certain
/// to be on the disk.
class Disk {
 public:
  /// What is lost of the data that was not flushed: nothing, everything, file contents, half of
  /// what was appended to each file, or some nodes at random.
  enum class Loss { nothing, all, data, tails, some };

  Disk(const DiskRecord& record, std::size_t count)
      : now_(static_cast<std::size_t>(record.nodes)), safe_(now_) {
    now_[0].folder = safe_[0].folder = true;
    for (std::size_t i = 0; i < count; ++i) apply(record.calls[i]);
  }

  /// Writes the remaining files to a real folder.
  void materialize(const std::string& path, Loss loss, std::uint32_t seed) const {
    std::mt19937 random(seed);
    put(path, 0, loss, random);
  }

 private:
  struct Node {
    bool folder = false;
    std::string bytes;
    std::map<std::string, int> entries;
  };
  Node& at(std::vector<Node>& nodes, int node) { return nodes[static_cast<std::size_t>(node)]; }

  void apply(const DiskCall& c) {
    switch (c.kind) {
      case DiskCall::Kind::make_folder:
        at(now_, c.node).folder = at(safe_, c.node).folder = true;
        [[fallthrough]];
      case DiskCall::Kind::create: at(now_, c.folder).entries[c.name] = c.node; break;
      case DiskCall::Kind::write: {
        std::string& bytes = at(now_, c.node).bytes;
        const auto end = static_cast<std::size_t>(c.offset) + c.bytes.size();
        if (bytes.size() < end) bytes.resize(end);
        bytes.replace(static_cast<std::size_t>(c.offset), c.bytes.size(), c.bytes);
        break;
      }
      case DiskCall::Kind::flush: at(safe_, c.node) = at(now_, c.node); break;
      case DiskCall::Kind::rename: {
        auto& entries = at(now_, c.folder).entries;
        entries[c.to] = entries.at(c.name);
        entries.erase(c.name);
        break;
      }
      case DiskCall::Kind::remove: at(now_, c.folder).entries.erase(c.name); break;
    }
  }

  void put(const std::string& path, int node, Loss loss, std::mt19937& random) const {
    const Node &now = now_[static_cast<std::size_t>(node)],
               &safe = safe_[static_cast<std::size_t>(node)];
    const bool kept = loss == Loss::nothing || (loss == Loss::some && random() % 2 == 0);
    if (!now.folder) {
      if (loss == Loss::tails && now.bytes.size() > safe.bytes.size())
        write_file(path, now.bytes.substr(0, (now.bytes.size() + safe.bytes.size()) / 2));
      else write_file(path, kept ? now.bytes : safe.bytes);
      return;
    }
    ::mkdir(path.c_str(), 0777);
    const bool names = kept || loss == Loss::data || loss == Loss::tails;
    for (const auto& [name, child] : names ? now.entries : safe.entries)
      put(path + "/" + name, child, loss, random);
  }

  std::vector<Node> now_, safe_;
};

}  // namespace braid::test
