#pragma once
#include <string_view>

// Libraries of GPU vendors (NCCL) are opened when they are first used. A backend whose build has
// such a library in the program instead registers it here.
namespace braid {

/// A function as dlsym returns it; its name determines the real type.
using LibraryFunction = void (*)();
/// Returns the function of that name, or null if the library has none.
using FindFunction = LibraryFunction (*)(const char* name) noexcept;

/// Registers a library ("nccl") that is linked into the program. Replaces an earlier registration.
/// Thread-safe.
void register_linked_library(std::string_view library, FindFunction find);
/// Returns what was registered, or null: the library is not linked, and has to be opened. A backend
/// registers its libraries before it has devices. Thread-safe.
[[nodiscard]] FindFunction find_linked_library(std::string_view library);

}  // namespace braid
