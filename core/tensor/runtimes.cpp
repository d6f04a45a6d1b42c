// Detects a second copy of Braid in the process. A shared library that is linked with its own
// static Braid and hides its symbols (--exclude-libs) has a second seed, gradient mode and set of
// devices. Its symbols cannot be found, because they are hidden. So each copy puts an ELF note (as
// a build id is one) into the object that contains it, and looks for other notes when it loads.
#include "tensor/runtimes.hpp"

#include <link.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <braid/core/error.hpp>

extern "C" {

/// Calls the warning handler of this copy. The note contains the address of this function.
__attribute__((visibility("hidden"), used)) void braid_warn_of_runtime(const char* text) {
  braid::warn(text);
}

/// Two names of one variable. Another object may override the visible one, but not the hidden one.
/// If their addresses differ, the dynamic linker uses another copy in place of this one.
__attribute__((visibility("default"))) char braid_runtime = 0;
extern char braid_own_runtime __attribute__((alias("braid_runtime"), visibility("hidden")));
}

// The note: the sizes of name and content, the type, the name, and the content, which is the
// address of the function relative to the content.
asm(".pushsection .note.braid,\"a\",%note\n"
    ".balign 4\n"
    ".long 6, 4, 1\n"
    ".asciz \"Braid\"\n"
    ".balign 4\n"
    ".long braid_warn_of_runtime - .\n"
    ".popsection\n");

namespace braid::detail {
namespace {

struct Runtime {
  std::string object;
  void (*warn)(const char* text);
};

/// Returns the content of Braid's note in a segment of notes, or null.
const char* find_note(const char* at, std::size_t bytes) {
  struct Head {
    std::uint32_t name, content, type;
  };
  const auto padded = [](std::size_t n) { return (n + 3) / 4 * 4; };
  while (bytes >= sizeof(Head)) {
    Head head{};
    std::memcpy(&head, at, sizeof head);
    const std::size_t size = sizeof head + padded(head.name) + padded(head.content);
    if (size > bytes) return nullptr;
    if (head.name == 6 && head.content == 4 && head.type == 1 &&
        std::memcmp(at + sizeof head, "Braid", 6) == 0)
      return at + sizeof head + padded(head.name);
    at += size;
    bytes -= size;
  }
  return nullptr;
}

/// Adds one object of the process if it has the note. The program comes first, and has no name.
int add_runtime(dl_phdr_info* object, std::size_t /*size*/, void* list) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE || segment.p_align == 8) continue;  // 8: notes of the system
    const char* const note = find_note(
        reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    if (note == nullptr) continue;
    std::int32_t distance = 0;
    std::memcpy(&distance, note, sizeof distance);
    const bool named = object->dlpi_name != nullptr && *object->dlpi_name != '\0';
    static_cast<std::vector<Runtime>*>(list)->push_back(
        {named ? object->dlpi_name : "the program",
         reinterpret_cast<void (*)(const char*)>(const_cast<char*>(note + distance))});
    break;
  }
  return 0;
}

}  // namespace

void check_runtimes() noexcept {
  const char* volatile taken = &braid_runtime, * volatile own = &braid_own_runtime;
  if (taken != own) return;  // the copy in this object is not used
  try {
    std::vector<Runtime> all;
    dl_iterate_phdr(add_runtime, &all);
    for (const Runtime& r : all) {
      if (r.warn != braid_warn_of_runtime || &r == all.data()) continue;
      all.front().warn(
          str("a second copy of Braid is in this process, in ", r.object, " beside the one in ",
              all.front().object,
              ": each has its own seed, gradient mode, devices and memory limits, and NoGrad or "
              "manual_seed of one is not seen by the other. Build Braid as a shared library "
              "(BUILD_SHARED_LIBS=ON) and link both with that")
              .c_str());
    }
  } catch (...) {  // no memory for the list: no warning
  }
}

}  // namespace braid::detail
