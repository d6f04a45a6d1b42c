#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "ptx/decode.hpp"
#include "ptx/module.hpp"

namespace ptx {

namespace {

bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

class Parser : public Names {
 public:
  Parser(Program& program, Module& module) : program_(program), module_(module) {}
  void parse(std::string_view text);
  int value(std::string_view operand) override;
  void branch(std::string_view label) override {
    branches_.emplace_back(program_.code.size(), inside_ + std::string(label));
  }

 private:
  int fresh() { return program_.registers++; }
  int constant(std::uint64_t value) {
    const auto [it, is_new] = constants_.try_emplace(value, 0);
    if (is_new) program_.constants.emplace_back(it->second = fresh(), value);
    return it->second;
  }
  void parameters(std::string_view list);
  void body(std::string_view text);
  void directive(const std::string& text);
  void registers(std::string_view list);
  void instruction(const std::string& text);
  void call(std::string_view operands);
  int special(std::string_view name) const;
  void fuse(std::string_view opcode, Instruction& i);
  unsigned place(unsigned& bytes, const Declaration& d) {
    const unsigned at = (bytes + d.align - 1) / d.align * d.align;
    bytes = at + d.bytes;
    return at;
  }

  Program& program_;
  Module& module_;
  std::vector<std::map<std::string, int, std::less<>>> scopes_;  // registers
  std::map<std::uint64_t, int> constants_;
  std::map<std::string, std::uint64_t, std::less<>> addresses_;  // variables and parameters
  std::map<std::string, int, std::less<>> labels_;
  std::string inside_;  // the call that is being expanded; prefixes its labels
  int calls_ = 0;
  std::vector<std::pair<std::size_t, std::string>> branches_;
  /// A product without an explicit rounding, whose operands are unchanged.
  struct Product {
    int d, a, b;
    std::string_view type;  // ".f32", ".ftz.f32", ".f64"
  };
  std::vector<Product> products_;  // of the present basic block
};

/// The assembler computes a sum with a product in one instruction, with one rounding, unless the
/// PTX asks for a rounding (mul.rn, which __fmul_rn is). So does this: the program must be right
/// with it.
void Parser::fuse(std::string_view opcode, Instruction& i) {
  constexpr std::string_view types[] = {".f32", ".ftz.f32", ".f64"};
  const std::string_view operation = opcode.substr(0, 3);
  const auto type = std::find(std::begin(types), std::end(types), opcode.substr(operation.size()));
  const bool floating = type != std::end(types);
  const bool product = floating && operation == "mul" && i.guard < 0;
  if (const bool difference = operation == "sub"; floating && (difference || operation == "add")) {
    for (const Product& p : products_) {
      if (p.type != *type || (p.d != i.a && p.d != i.b)) continue;
      const bool first = p.d == i.a;
      i.c = first ? i.b : i.a;
      i.a = p.a, i.b = p.b;
      i.run = fused(!difference ? Fused::sum
                    : first     ? Fused::product_first
                                : Fused::product_last,
                    *type == ".f64");
      break;
    }
  }
  const auto writes = [&](int number) {
    return number == i.d || std::find(i.lane.begin(), i.lane.end(), number) != i.lane.end();
  };
  std::erase_if(products_,
                [&](const Product& p) { return writes(p.d) || writes(p.a) || writes(p.b); });
  if (product && i.d != i.a && i.d != i.b) products_.push_back({i.d, i.a, i.b, *type});
}

int Parser::special(std::string_view name) const {
  const Place& at = program_.place;
  for (const auto& [word, registers] : {std::pair{"%tid.", &at.tid},
                                        {"%ntid.", &at.ntid},
                                        {"%ctaid.", &at.ctaid},
                                        {"%nctaid.", &at.nctaid}})
    if (name.substr(0, name.size() - 1) == word && name.back() >= 'x' && name.back() <= 'z')
      return (*registers)[static_cast<std::size_t>(name.back() - 'x')];
  return name == "%laneid" ? at.laneid : -1;
}

int Parser::value(std::string_view operand) {
  if (operand == "_") return -1;
  const auto fail = [&] { throw Error("PTX: unknown operand '" + std::string(operand) + "'"); };
  if (operand.empty()) fail();
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto it = scope->find(operand);
    if (it != scope->end()) return it->second;
  }
  if (operand[0] == '%') {
    const int number = special(operand);
    if (number < 0) fail();
    return number;
  }
  if (in_name(operand[0]) && !std::isdigit(static_cast<unsigned char>(operand[0]))) {
    if (operand == "WARP_SZ") return constant(32);
    const auto it = addresses_.find(operand);
    if (it != addresses_.end()) return constant(it->second);
    const Declaration* variable = module_.variable(operand);
    if (variable == nullptr) fail();
    if (variable->space != Space::shared) return constant(module_.address(*variable));
    if (variable->external) {
      if (program_.dynamic_shared < 0) program_.dynamic_shared = fresh();
      return program_.dynamic_shared;
    }
    return constant(addresses_[variable->name] = place(program_.shared_bytes, *variable));
  }
  const std::string text(operand);
  char* end = nullptr;
  std::uint64_t number = 0;
  if (text.size() > 2 && text[0] == '0' && std::strchr("fFdD", text[1]) != nullptr)
    number = std::strtoull(text.c_str() + 2, &end, 16);
  else if (text[0] == '-') number = static_cast<std::uint64_t>(std::strtoll(text.c_str(), &end, 0));
  else number = std::strtoull(text.c_str(), &end, 0);
  if (*end == 'U') ++end;
  if (*end != '\0') fail();
  return constant(number);
}

void Parser::parameters(std::string_view list) {
  for (const std::string& text : split(list)) {
    const Declaration d = declaration(text);
    const unsigned at = place(program_.parameter_bytes, d);
    program_.parameters.push_back({at, d.bytes});
    addresses_[d.name] = at;
  }
}

void Parser::registers(std::string_view list) {
  for (const std::string& name : split(list)) {
    const std::size_t bracket = name.find('<');
    if (bracket == name.npos) {
      scopes_.back()[name] = fresh();
      continue;
    }
    const int count = std::atoi(name.c_str() + bracket + 1);
    for (int k = 0; k < count; ++k)
      scopes_.back()[name.substr(0, bracket) + std::to_string(k)] = fresh();
  }
}

void Parser::directive(const std::string& text) {
  if (text.rfind(".reg ", 0) == 0) {
    const std::string_view rest = trim(std::string_view(text).substr(5));
    const std::size_t type = rest.find(' ');
    if (type == rest.npos) throw Error("PTX: unknown directive: " + text);
    registers(trim(rest.substr(type)));
  } else if (text.rfind(".pragma", 0) != 0) {
    const Declaration d = declaration(text);
    if (d.space == Space::shared && !d.external)
      addresses_[d.name] = place(program_.shared_bytes, d);
    else if (d.space == Space::local) addresses_[d.name] = place(program_.local_bytes, d);
    else if (d.space == Space::param)  // of a call
      addresses_[d.name] = place(program_.parameter_bytes, d);
    else throw Error("PTX: unknown directive: " + text);
  }
}

/// (result), function, (arguments): inlines the function's instructions. Its parameters become the
/// caller's variables.
void Parser::call(std::string_view operands) {
  std::vector<std::string> list = split(operands);
  std::string result;
  if (!list.empty() && list.front().front() == '(') {
    result = list.front();
    list.erase(list.begin());
  }
  const Function* f = list.empty() ? nullptr : module_.function(list.front());
  if (f == nullptr || list.size() > 2) throw Error("PTX: unknown call: " + std::string(operands));
  const auto bind = [&](const std::string& formal, const std::string& given) {
    const auto names = split(formal);
    const auto values = given.empty() ? names : split(given.substr(1, given.size() - 2));
    if (names.size() != values.size())
      throw Error("PTX: unknown arguments: " + std::string(operands));
    for (std::size_t k = 0; k < names.size() && !given.empty(); ++k)
      addresses_[declaration(names[k]).name] = addresses_.at(values[k]);
  };
  bind(f->result, result);
  bind(f->parameters, list.size() == 2 ? list[1] : "()");
  const std::string outside = inside_;
  auto scopes = std::move(scopes_);
  scopes_.clear();
  inside_ = "call" + std::to_string(++calls_) + ":";
  products_.clear();
  body(std::string_view(f->body).substr(1, f->body.size() - 2));
  labels_[inside_ + "return"] = static_cast<int>(program_.code.size());
  scopes_ = std::move(scopes);
  inside_ = outside;
  products_.clear();
}

void Parser::instruction(const std::string& text) {
  Line line{text, {}, {}, {}, *this, {}};
  std::string_view rest = text;
  const auto word = [&] {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view first = rest.substr(0, end);
    rest = trim(rest.substr(end));
    return first;
  };
  if (rest.front() == '@') {
    std::string_view guard = word().substr(1);
    line.i.unless = guard.front() == '!';
    line.i.guard = value(line.i.unless ? guard.substr(1) : guard);
  } else {
    line.i.guard = -1;
  }
  const std::string_view whole = word();
  for (std::size_t at = 0; at <= whole.size();) {
    const std::size_t dot = std::min(whole.find('.', at), whole.size());
    (at == 0 ? line.opcode : line.parts.emplace_back()) = whole.substr(at, dot - at);
    at = dot + 1;
  }
  if (line.opcode == "call") {
    if (line.i.guard >= 0) line.unknown();
    return call(rest);
  }
  if (line.opcode == "ret" && !inside_.empty()) line.opcode = "bra", line.operands = {"return"};
  else line.operands = split(rest);
  decode(line);
  fuse(whole, line.i);
  program_.code.push_back(line.i);
  program_.lines.push_back(text);
}

void Parser::body(std::string_view text) {
  scopes_.emplace_back();
  for (text = trim(text); !text.empty(); text = trim(text)) {
    if (text.front() == '{' || text.front() == '}') {
      if (text.front() == '{') scopes_.emplace_back();
      else if (scopes_.size() > 1) scopes_.pop_back();
      text.remove_prefix(1);
      continue;
    }
    std::size_t name = 0;
    while (name < text.size() && in_name(text[name])) ++name;
    if (name > 0 && name < text.size() && text[name] == ':') {
      labels_[inside_ + std::string(text.substr(0, name))] = static_cast<int>(program_.code.size());
      products_.clear();
      text.remove_prefix(name + 1);
      continue;
    }
    const std::size_t end = text.find(';');
    if (end == text.npos) throw Error("PTX: unknown text: " + std::string(text.substr(0, 60)));
    std::string statement(trim(text.substr(0, end)));
    for (char& c : statement)
      if (std::isspace(static_cast<unsigned char>(c))) c = ' ';
    if (!statement.empty())
      statement.front() == '.' ? directive(statement) : instruction(statement);
    text.remove_prefix(end + 1);
  }
}

void Parser::parse(std::string_view text) {
  Place& at = program_.place;
  for (auto* list : {&at.tid, &at.ntid, &at.ctaid, &at.nctaid})
    for (int& number : *list) number = fresh();
  at.laneid = fresh();
  const std::size_t open = text.find('{');
  const std::string_view head = trim(text.substr(0, open));
  if (!head.empty()) parameters(head.substr(1, head.size() - 2));
  body(text.substr(open + 1, text.rfind('}') - open - 1));
  instruction("exit");
  for (const auto& [number, label] : branches_) {
    const auto it = labels_.find(label);
    if (it == labels_.end()) throw Error("PTX: unknown label " + label);
    program_.code[number].target = it->second;
  }
  program_.shared_bytes = (program_.shared_bytes + 15) / 16 * 16;
  if (program_.dynamic_shared >= 0)
    program_.constants.emplace_back(program_.dynamic_shared, program_.shared_bytes);
}

}  // namespace

Program parse(const std::string& name, const std::string& text, Module& module) {
  Program program;
  program.name = name;
  program.constants.emplace_back(0, 0);
  Parser(program, module).parse(text);
  return program;
}

}  // namespace ptx
