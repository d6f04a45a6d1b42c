#include "ptx/module.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <mutex>

namespace ptx {

namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string without_comments(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "//") == 0) i = std::min(text.find('\n', i), text.size() - 1);
    else if (text.compare(i, 2, "/*") == 0)
      i = std::min(text.find("*/", i + 2), text.size() - 2) + 1;
    else out += text[i] == '\t' || text[i] == '\r' ? ' ' : text[i];
  }
  return out;
}

/// Returns the position after the brace that closes the one at `open`.
std::size_t behind_braces(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i + 1;
  }
  throw Error("PTX: a brace is not closed");
}

// Read-only .const and .global variables of all modules: [begin, end).
struct Variables {
  std::mutex lock;
  std::map<std::uint64_t, std::uint64_t> ends;
};
Variables& variables() {
  static Variables all;
  return all;
}
bool in_variables(std::uint64_t address, std::size_t bytes) {
  const std::lock_guard held(variables().lock);
  auto it = variables().ends.upper_bound(address);
  return it != variables().ends.begin() && address + bytes <= std::prev(it)->second;
}

}  // namespace

bool (*allows)(std::uint64_t, std::size_t, bool) = nullptr;

char* locate(const Thread& t, Space space, std::uint64_t address, unsigned bytes, bool write) {
  const auto begins = [](const Window& w) { return reinterpret_cast<std::uint64_t>(w.data); };
  const auto inside = [&](const Window& w) {
    return address >= begins(w) && address + bytes <= begins(w) + w.bytes;
  };
  const auto fail = [&](const char* what) {
    char text[96];
    std::snprintf(text, sizeof text, "%s of %u bytes at %#llx", what, bytes,
                  static_cast<unsigned long long>(address));
    throw Error(text);
  };
  if (address % bytes != 0) fail("misaligned access");
  const auto in = [&](const Window& w, const char* what) {
    if (address > w.bytes || address + bytes > w.bytes) fail(what);
    return w.data + address;
  };
  switch (space) {
    case Space::shared: return in(t.shared, "access outside of shared memory");
    case Space::local: return in(t.local, "access outside of local memory");
    case Space::param: return in(t.param, "access outside of the parameters");
    case Space::generic:
      if (inside(t.shared) || inside(t.local) || inside(t.param)) break;
      [[fallthrough]];
    case Space::global:
      if (allows != nullptr && !allows(address, bytes, write) &&
          (write || !in_variables(address, bytes)))
        fail(write ? "illegal write" : "illegal read");
  }
  return reinterpret_cast<char*>(address);
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && is_space(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_space(s.back())) s.remove_suffix(1);
  return s;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size()) {
      if (std::strchr("{[(", text[i]) != nullptr) ++depth;
      if (std::strchr("}])", text[i]) != nullptr) --depth;
      if (text[i] != ',' || depth > 0) continue;
    }
    const std::string_view part = trim(text.substr(begin, i - begin));
    if (!part.empty() || i < text.size()) parts.emplace_back(part);
    begin = i + 1;
  }
  return parts;
}

unsigned bytes_of(std::string_view type) {
  if (type == "bf16") return 2;
  if (type.size() >= 2 && std::strchr("busf", type[0]) != nullptr)
    for (const unsigned bits : {8u, 16u, 32u, 64u})
      if (type.substr(1) == std::to_string(bits)) return bits / 8;
  throw Error("PTX: unknown type '" + std::string(type) + "'");
}

Declaration declaration(std::string_view text) {
  Declaration d;
  const std::size_t equals = text.find('=');
  if (equals != text.npos) d.values = trim(text.substr(equals + 1)), text = text.substr(0, equals);
  const std::size_t bracket = std::min(text.find('['), text.size());
  std::uint64_t count = 1;
  for (std::size_t at = bracket; at < text.size(); at = text.find('[', at + 1)) {
    std::uint64_t n = 0;  // no number: an extern array
    std::from_chars(text.data() + at + 1, text.data() + text.size(), n);
    count *= n;
  }
  std::string word;
  bool aligned = false;
  const std::string head = std::string(text.substr(0, bracket)) + ' ';
  for (const char c : head) {
    if (!is_space(c)) {
      word += c;
      continue;
    }
    if (word.empty()) continue;
    if (aligned) d.align = static_cast<unsigned>(std::stoul(word)), aligned = false;
    else if (word == ".align") aligned = true;
    else if (word == ".shared") d.space = Space::shared;
    else if (word == ".local") d.space = Space::local;
    else if (word == ".param") d.space = Space::param;
    else if (word == ".global" || word == ".const")
      d.space = Space::global, d.constant = word == ".const";
    else if (word == ".extern") d.external = true;
    else if (word[0] != '.') d.name = word;
    else if (word != ".visible" && word != ".weak")
      d.type = word.substr(1), d.element = bytes_of(d.type);
    word.clear();
  }
  if (d.name.empty() || d.element == 0)
    throw Error("PTX: unknown declaration: " + std::string(text));
  d.bytes = static_cast<unsigned>(d.element * count);
  d.align = std::max(d.align, d.element);
  return d;
}

Module::Module(const std::string& with_comments) {
  const std::string text = without_comments(with_comments);
  const std::string_view view = text;
  for (std::size_t i = 0; i < text.size();) {
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    bool line = false;
    for (const char* word : {".version", ".target", ".address_size", ".file"})
      line = line || text.compare(i, std::strlen(word), word) == 0;
    if (line) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    const std::size_t end = text.find(';', i), brace = text.find('{', i),
                      equals = text.find('=', i);
    const bool body = brace < end && brace < equals;
    if (!body && end == text.npos) throw Error("PTX: unknown text: " + text.substr(i, 60));
    const std::size_t behind = body ? behind_braces(view, brace) : end + 1;
    add(trim(view.substr(i, (body ? brace : end) - i)),
        body ? view.substr(brace, behind - brace) : std::string_view());
    i = behind;
  }
}

void Module::add(std::string_view statement, std::string_view body) {
  const std::size_t entry = statement.find(".entry ");
  if (entry != statement.npos && !body.empty()) {
    const std::size_t open = std::min(statement.find('('), statement.size());
    const std::string_view name = trim(statement.substr(entry + 7, open - entry - 7));
    const std::size_t close = std::min(statement.rfind(')') + 1, statement.size());
    kernels_[std::string(name)] =
        std::string(statement.substr(open, close - open)) + ' ' + std::string(body);
    // Limits follow the parameters. Those other than .maxntid change nothing here.
    const std::size_t limit = statement.find(".maxntid", close);
    if (limit == statement.npos) return;
    unsigned& most = most_threads_[std::string(name)] = 1;
    const std::string_view sizes = trim(statement.substr(limit + std::strlen(".maxntid")));
    for (const std::string& size : split(sizes.substr(0, sizes.find('.'))))
      most *= static_cast<unsigned>(std::stoul(size));
    return;
  }
  const std::size_t func = statement.find(".func ");
  if (func != statement.npos) {
    if (body.empty()) return;  // a declaration
    std::string_view rest = trim(statement.substr(func + 6));
    Function f;
    if (rest.front() == '(') {
      f.result = rest.substr(1, rest.find(')') - 1);
      rest = trim(rest.substr(rest.find(')') + 1));
    }
    const std::size_t open = rest.find('('), close = rest.rfind(')');
    if (open == rest.npos || close == rest.npos)
      throw Error("PTX: unknown function: " + std::string(rest));
    f.parameters = rest.substr(open + 1, close - open - 1);
    f.body = body;
    functions_[std::string(trim(rest.substr(0, open)))] = f;
    return;
  }
  if (statement.find(".entry") != statement.npos)
    throw Error("PTX: unknown kernel: " + std::string(statement.substr(0, 90)));
  Declaration d = declaration(statement);
  variables_[d.name] = d;
}

const Function* Module::function(std::string_view name) const {
  const auto it = functions_.find(name);
  return it == functions_.end() ? nullptr : &it->second;
}

const Declaration* Module::variable(std::string_view name) const {
  const auto it = variables_.find(name);
  return it == variables_.end() ? nullptr : &it->second;
}

std::uint64_t Module::address(const Declaration& variable) {
  auto& memory = memory_[variable.name];
  if (!memory) {
    memory = std::make_unique<std::uint64_t[]>(variable.bytes / 8 + 1);
    char* to = reinterpret_cast<char*>(memory.get());
    if (!variable.values.empty() && variable.values.front() == '{') {
      const auto inside = std::string_view(variable.values).substr(1, variable.values.size() - 2);
      for (const std::string& value : split(inside)) {
        const bool bits = value.size() > 2 && value[0] == '0' && std::strchr("fFdD", value[1]);
        const std::uint64_t number = bits ? std::stoull(value.substr(2), nullptr, 16)
                                     : value[0] == '-'
                                         ? static_cast<std::uint64_t>(std::stoll(value, nullptr, 0))
                                         : std::stoull(value, nullptr, 0);
        std::memcpy(to, &number, variable.element);
        to += variable.element;
      }
    } else if (!variable.values.empty()) {
      throw Error("PTX: unknown values of " + variable.name);
    }
    const auto begin = reinterpret_cast<std::uint64_t>(memory.get());
    const std::lock_guard held(variables().lock);
    variables().ends[begin] = begin + variable.bytes;
  }
  return reinterpret_cast<std::uint64_t>(memory.get());
}

const Program& Module::kernel(const std::string& name) {
  const auto it = programs_.find(name);
  if (it != programs_.end()) return it->second;
  const auto text = kernels_.find(name);
  if (text == kernels_.end()) throw Error("PTX: there is no kernel " + name);
  Program program = parse(name, text->second, *this);
  const auto most = most_threads_.find(name);
  if (most != most_threads_.end()) program.most_threads = most->second;
  return programs_.emplace(name, std::move(program)).first->second;
}

}  // namespace ptx
