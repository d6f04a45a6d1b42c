#include "simt/symbols.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include <braid/core/error.hpp>

extern "C" char** environ;

namespace braid::simt {

namespace {

std::mutex mutex;

// The file that an address was loaded from, and the address relative to its load base.
struct Loaded {
  std::string path;
  std::uintptr_t offset = 0;
};

Loaded loaded_at(std::uintptr_t address) {
  struct Search {
    std::uintptr_t address;
    Loaded found;
  } search{address, {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) & p = info->dlpi_phdr[i];
          const std::uintptr_t begin = info->dlpi_addr + p.p_vaddr;
          if (p.p_type != PT_LOAD || s.address < begin || s.address >= begin + p.p_memsz) continue;
          s.found.offset = s.address - info->dlpi_addr;
          s.found.path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
          return 1;
        }
        return 0;
      },
      &search);
  if (search.found.path == "/proc/self/exe") {  // a child process would see itself under that path
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n > 0 && n < static_cast<ssize_t>(sizeof path))
      search.found.path.assign(path, static_cast<std::size_t>(n));
  }
  return search.found;
}

// Runs addr2line. Returns one `file:line` for each offset.
std::vector<SourceLine> ask_addr2line(const std::string& path,
                                      const std::vector<std::uintptr_t>& offsets) {
  std::vector<SourceLine> lines(offsets.size());
  std::vector<std::string> words = {"addr2line", "-e", path};
  for (const std::uintptr_t offset : offsets) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%lx", static_cast<unsigned long>(offset));
    words.emplace_back(text);
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return lines;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int spawned =
      posix_spawnp(&child, "addr2line", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string output;
  if (spawned == 0) {
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
      output.append(buffer, static_cast<std::size_t>(n));
    waitpid(child, nullptr, 0);
  }
  close(ends[0]);
  std::size_t begin = 0;
  for (SourceLine& line : lines) {
    const std::size_t end = output.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string text = output.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t colon = text.rfind(':');
    const int number = colon == std::string::npos ? 0 : std::atoi(text.c_str() + colon + 1);
    if (number > 0) line = {base_name(text.substr(0, colon)), number};
  }
  return lines;
}

// Returns the name of the function symbol that contains `offset`, from the file's symbol table.
std::string name_in_file(const Loaded& at) {
  const int file = open(at.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  struct stat info{};
  std::string name;
  if (fstat(file, &info) == 0 && info.st_size > static_cast<off_t>(sizeof(ElfW(Ehdr)))) {
    const auto bytes = static_cast<std::size_t>(info.st_size);
    void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    if (mapped != MAP_FAILED) {
      const char* base = static_cast<const char*>(mapped);
      const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
      const auto inside = [&](std::size_t begin, std::size_t count) {
        return begin <= bytes && count <= bytes - begin;
      };
      if (inside(header->e_shoff, header->e_shnum * sizeof(ElfW(Shdr)))) {
        const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(base + header->e_shoff);
        for (int i = 0; i < header->e_shnum && name.empty(); ++i) {
          const ElfW(Shdr) & table = sections[i];
          if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum ||
              !inside(table.sh_offset, table.sh_size))
            continue;
          const ElfW(Shdr) & strings = sections[table.sh_link];
          if (!inside(strings.sh_offset, strings.sh_size)) continue;
          const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(base + table.sh_offset);
          for (std::size_t s = 0; s < table.sh_size / sizeof(ElfW(Sym)); ++s) {
            const ElfW(Sym) & symbol = symbols[s];
            if ((symbol.st_info & 15) != STT_FUNC || at.offset < symbol.st_value ||
                at.offset >= symbol.st_value + std::max<ElfW(Xword)>(symbol.st_size, 1))
              continue;
            if (symbol.st_name < strings.sh_size) name = base + strings.sh_offset + symbol.st_name;
            break;
          }
        }
      }
      munmap(mapped, bytes);
    }
  }
  close(file);
  return name;
}

// `void a::f<int>(float*, int)` -> `a::f<int>`: removes the parameters, and the return type that
// templates have.
std::string without_signature(const std::string& full) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    if (full.compare(i, 22, "(anonymous namespace)") == 0) {
      i += 20;
      continue;
    }
    if (c == '<') ++depth;
    else if (c == '>') --depth;
    else if (c == ' ' && depth == 0) begin = i + 1;
    else if (c == '(' && depth == 0 && i > begin) return full.substr(begin, i - begin);
  }
  return full.substr(begin);
}

}  // namespace

std::string to_string(const SourceLine& where) {
  return where.file.empty() ? "?" : str(where.file, ":", where.line);
}

std::vector<SourceLine> source_lines(const std::vector<Site>& sites) {
  static std::unordered_map<Site, SourceLine> known;
  const std::lock_guard lock(mutex);
  std::map<std::string, std::pair<std::vector<Site>, std::vector<std::uintptr_t>>> unknown;
  for (const Site site : sites) {
    if (site == 0 || known.count(site)) continue;
    if (site >> 63) {
      const auto* file = reinterpret_cast<const char*>(site & 0xffffffffffffu);
      known[site] = {base_name(file), static_cast<int>(site >> 48 & 0x7fff)};
      continue;
    }
    // the address of the call, not of the instruction after it
    const Loaded at = loaded_at(static_cast<std::uintptr_t>(site) - 1);
    known[site] = {};
    if (at.path.empty()) continue;
    unknown[at.path].first.push_back(site);
    unknown[at.path].second.push_back(at.offset);
  }
  for (const auto& [path, list] : unknown) {
    const std::vector<SourceLine> lines = ask_addr2line(path, list.second);
    for (std::size_t i = 0; i < lines.size(); ++i) known[list.first[i]] = lines[i];
  }
  std::vector<SourceLine> result;
  for (const Site site : sites) result.push_back(site == 0 ? SourceLine{} : known[site]);
  return result;
}

SourceLine source_line(Site site) { return source_lines({site}).front(); }

std::string kernel_name(const void* function) {
  static std::unordered_map<const void*, std::string> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(function);
  if (found != known.end()) return found->second;
  std::string mangled;
  Dl_info info;
  if (dladdr(function, &info) != 0 && info.dli_sname && info.dli_saddr == function)
    mangled = info.dli_sname;
  else mangled = name_in_file(loaded_at(reinterpret_cast<std::uintptr_t>(function)));
  std::string name = "kernel";
  if (!mangled.empty()) {
    int status = 0;
    char* plain = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
    name = plain ? without_signature(plain) : mangled;
    std::free(plain);
  }
  known[function] = name;
  return name;
}

}  // namespace braid::simt
