#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ptx/program.hpp"

namespace ptx {

/// The content of a declaration such as `.shared .align 16 .b8 name[64]`.
struct Declaration {
  Space space = Space::generic;
  bool constant = false, external = false;
  std::string type, name, values;  // values: the text after =
  unsigned element = 0, bytes = 0, align = 0;
};
Declaration declaration(std::string_view text);

/// A .func: the declarations of its result and parameters, and its body.
struct Function {
  std::string result, parameters, body;
};

/// The text of one .ptx file: its kernels, and its other functions and variables.
class Module {
 public:
  explicit Module(const std::string& text);
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& kernels() const {
    return kernels_;
  }
  /// Returns nullptr if there is none, or only a declaration.
  [[nodiscard]] const Function* function(std::string_view name) const;
  [[nodiscard]] const Declaration* variable(std::string_view name) const;
  /// Returns the address of a .global or .const variable.
  std::uint64_t address(const Declaration& variable);
  /// Returns the kernel of that name, which is parsed at the first call.
  const Program& kernel(const std::string& name);

 private:
  void add(std::string_view statement, std::string_view body);
  std::map<std::string, std::string, std::less<>> kernels_;  // parameters and body
  std::map<std::string, unsigned, std::less<>> most_threads_;
  std::map<std::string, Function, std::less<>> functions_;
  std::map<std::string, Declaration, std::less<>> variables_;
  std::map<std::string, std::unique_ptr<std::uint64_t[]>, std::less<>> memory_;
  std::map<std::string, Program, std::less<>> programs_;
};

/// Returns the instructions of a kernel. `text` is "(parameters) {body}".
Program parse(const std::string& name, const std::string& text, Module& module);

std::string_view trim(std::string_view s);
/// Splits at the commas that are outside of brackets.
std::vector<std::string> split(std::string_view text);
/// Returns 4 for "f32". Throws Error if it is not a type.
unsigned bytes_of(std::string_view type);

}  // namespace ptx
