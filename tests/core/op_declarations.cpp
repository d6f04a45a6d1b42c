#include "op_declarations.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "support/tests_dir.hpp"

namespace braid::test {
namespace {

/// Without comments and preprocessor lines.
std::string code_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string code;
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(' ') == std::string::npos ||
        line[line.find_first_not_of(' ')] != '#')
      code += line.substr(0, line.find("//")) + '\n';
  return code;
}

/// Each run of white space as one space, none at the ends.
std::string trimmed(const std::string& s) {
  std::string words;
  bool space = false;
  for (const char c : s) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      space = !words.empty();
      continue;
    }
    if (space) words += ' ';
    space = false;
    words += c;
  }
  return words;
}

/// What stands directly inside the braces that open after `head`, one declaration an entry; the
/// bodies of functions, structs and inner namespaces are left out.
std::vector<std::string> statements_in(const std::string& code, const std::string& head) {
  std::vector<std::string> list;
  for (std::size_t at = code.find(head); at != std::string::npos; at = code.find(head, at)) {
    at = code.find('{', at);
    std::string current;
    int braces = 1, parentheses = 0;
    for (++at; at < code.size() && braces > 0; ++at) {
      const char c = code[at];
      if (c == '(') ++parentheses;
      if (c == ')') --parentheses;
      if (c == '{') ++braces;
      if (c == '}') --braces;
      // A brace between parentheses is a default argument.
      const bool body_ends = c == '}' && braces == 1 && parentheses == 0,
                 statement_ends = c == ';' && braces == 1;
      if (body_ends || statement_ends) {
        list.push_back(trimmed(current));
        current.clear();
      } else if (braces == 1 || parentheses > 0) {
        if (c != '}' || parentheses > 0) current += c;
      }
    }
  }
  return list;
}

/// "const Shape& dims = {}, bool keepdim = false" as parameters; so also the fields of one type,
/// "Tensor mean, var".
std::vector<Parameter> parameters_in(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (c == ',' && depth == 0) parts.emplace_back();
    else parts.back() += c;
  }
  std::vector<Parameter> list;
  for (const std::string& part : parts) {
    const std::string declaration = trimmed(part.substr(0, part.find('=')));
    const std::size_t space = declaration.find_last_of(" &*");
    if (space != std::string::npos)
      list.push_back({trimmed(declaration.substr(0, space + 1)), declaration.substr(space + 1)});
    // a field beside another one
    else if (!list.empty() && !declaration.empty()) list.push_back({list.back().type, declaration});
  }
  return list;
}

/// The fields of each struct that stands in the text: "Tensor mean, var = {};" are two.
using Structs = std::map<std::string, std::vector<Parameter>>;
Structs structs_in(const std::string& code) {
  Structs found;
  static const std::regex head("struct (\\w+)( final)? ?(: [^{;]*)?\\{");
  for (std::sregex_iterator at(code.begin(), code.end(), head), end; at != end; ++at) {
    std::vector<Parameter>& fields = found[(*at)[1]];
    for (const std::string& s : statements_in(code, at->str()))
      if (s.substr(0, s.find('=')).find('(') == std::string::npos && s.rfind("using ", 0) != 0)
        for (const Parameter& p : parameters_in(s)) fields.push_back(p);
  }
  return found;
}

void fill_fields(Declarations& declarations, const Structs& structs) {
  static const std::regex qualifiers("const |&| ");
  for (auto& [name, parameters] : declarations)
    for (Parameter& p : parameters)
      if (const auto found = structs.find(std::regex_replace(p.type, qualifiers, ""));
          found != structs.end())
        p.fields = found->second;
}

void merge(Declarations& into, const Declarations& from) {
  for (const auto& [name, parameters] : from) {
    std::vector<Parameter>& known = into[name];
    for (const Parameter& p : parameters)
      if (std::none_of(known.begin(), known.end(),
                       [&](const Parameter& k) { return k.name == p.name; }))
        known.push_back(p);
  }
}

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot open " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

Declarations declarations_in(std::string_view text, std::string_view structure) {
  Declarations found;
  std::vector<std::string> statements =
      statements_in(code_of(text), structure.empty() ? "namespace braid {"
                                                     : "class " + std::string(structure) + " {");
  if (structure.empty())
    for (const std::string& s : statements_in(code_of(text), "namespace braid::nn {"))
      statements.push_back(s);
  const std::string result =
      structure.empty() ? "[A-Za-z_:][\\w:<>, ]*[&*]?" : "Tensor|const Tensor&|std::vector<Tensor>";
  const std::regex declaration(
      "^(?:public: )?(?:template ?<.*> ?)?(?:\\[\\[nodiscard\\]\\] )?(?:inline )?(?:" + result +
      ") (\\w+|operator\\[\\]) ?\\((.*)\\)( const)?( noexcept)?.*$");
  static const std::regex other(
      "^(struct|class|enum|using|namespace|friend|static_assert|extern|typedef|constexpr|inline "
      "constexpr).*");
  for (const std::string& s : statements) {
    std::smatch match;
    if (std::regex_match(s, other)) continue;
    // The parameters end with the parenthesis that closes the first one.
    if (!std::regex_match(s, match, declaration)) continue;
    const std::string name = match[1];
    std::size_t begin = s.find(name + "(") + name.size(), end = begin;
    int depth = 0;
    do {
      if (s[end] == '(') ++depth;
      if (s[end] == ')') --depth;
    } while (depth > 0 && ++end < s.size());
    if (name == "operator[]" || name.rfind("operator", 0) != 0)
      merge(found, {{name, parameters_in(s.substr(begin + 1, end - begin - 1))}});
  }
  fill_fields(found, structs_in(code_of(text)));
  return found;
}

namespace {

Declarations read_declarations() {
  const std::filesystem::path folder = tests_dir() + "/../core/include/braid/core";
  Declarations all = declarations_in(read(folder / "tensor.hpp"), "Tensor");
  Structs structs;
  const auto take = [&](const std::filesystem::path& header) {
    const std::string text = read(header);
    merge(all, declarations_in(text));
    structs.merge(structs_in(code_of(text)));
  };
  for (const auto& entry : std::filesystem::directory_iterator(folder / "ops"))
    if (entry.path().extension() == ".hpp") take(entry.path());
  take(tests_dir() + "/../nn/include/braid/nn/losses.hpp");
  fill_fields(all, structs);
  return all;
}

}  // namespace

const Declarations& declared_functions() {
  static const Declarations all = read_declarations();
  return all;
}

}  // namespace braid::test
