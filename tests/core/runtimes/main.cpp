// Loads the plugins given as arguments. Prints a line for each: the number of warnings, whether the
// plugin sees this program's NoGrad, and the text of the warning.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>

int main(int argc, char** argv) {
  int warnings = 0;
  std::string said;
  braid::set_warning_handler([&](std::string_view text) {
    ++warnings;
    said = text;
  });
  const braid::NoGrad guard;
  for (int i = 1; i < argc; ++i) {
    warnings = 0;
    void* const plugin = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    void* const function = plugin != nullptr ? dlsym(plugin, "plugin_grad_enabled") : nullptr;
    if (function == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    const bool sees = !reinterpret_cast<bool (*)()>(function)();
    std::printf("%d %s %s\n", warnings, sees ? "seen" : "unseen", warnings > 0 ? said.c_str() : "");
  }
  return 0;
}
