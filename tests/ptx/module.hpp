#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ptx/program.hpp"

namespace ptx {

/// `.shared .align 16 .b8 name[64]`: what a declaration declares.
struct Declaration {
  Space space = Space::generic;
  bool constant = false, external = false;
  std::string type, name, values;  // values: behind =
  unsigned element = 0, bytes = 0, align = 0;
};
Declaration declaration(std::string_view text);

/// A .func: the declarations of its result and parameters, and its body.
struct Function {
  std::string result, parameters, body;
};

/// The text of one .ptx file: its kernels, and the functions and variables outside of them.
class Module {
 public:
  explicit Module(const std::string& text);
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& kernels() const {
    return kernels_;
  }
  /// nullptr: there is none, or nothing but its declaration.
  [[nodiscard]] const Function* function(std::string_view name) const;
  [[nodiscard]] const Declaration* variable(std::string_view name) const;
  /// Where a .global or .const variable lies.
  std::uint64_t address(const Declaration& variable);
  /// The kernel of that name, parsed at the first call.
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

/// The instructions of a kernel; `text` is "(parameters) {body}".
Program parse(const std::string& name, const std::string& text, Module& module);

std::string_view trim(std::string_view s);
/// The parts between commas that lie outside of brackets.
std::vector<std::string> split(std::string_view text);
/// 4 for "f32". An Error for what is no type.
unsigned bytes_of(std::string_view type);

}  // namespace ptx
