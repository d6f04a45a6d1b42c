#include "ptx/decode.hpp"

#include <algorithm>

#include "ptx/module.hpp"

namespace ptx {

bool Line::take(std::string_view part) {
  const auto it = std::find(parts.begin(), parts.end(), part);
  if (it == parts.end()) return false;
  parts.erase(it);
  return true;
}

void Line::expect(std::string_view part) {
  if (!take(part)) unknown();
}

int Line::one_of(std::initializer_list<const char*> choices) {
  int number = 0;
  for (const char* choice : choices) {
    if (take(choice)) return number;
    ++number;
  }
  unknown();
}

std::string Line::type() {
  if (parts.empty()) unknown();
  std::string last = parts.back();
  parts.pop_back();
  return last;
}

void Line::rounding() {
  take("rn");  // the default
  for (const auto& [name, modifier] : {std::pair{"ftz", ftz}, {"rz", rz}, {"rm", rm}, {"rp", rp}})
    if (take(name)) i.modifiers |= modifier;
}

void Line::count(std::size_t least, std::size_t most) {
  if (operands.size() < least || operands.size() > most) unknown();
}

void Line::registers(std::size_t expected) {
  count(expected, expected);
  int* const to[] = {&i.d, &i.a, &i.b, &i.c, &i.e};
  for (std::size_t k = 0; k < expected; ++k) {
    *to[k] = value(k);
    if (*to[k] < 0) unknown();
  }
}

int Line::address(std::size_t operand, std::int64_t& offset) {
  std::string_view x = operands.at(operand);
  if (x.size() < 3 || x.front() != '[' || x.back() != ']') unknown();
  x = x.substr(1, x.size() - 2);
  const std::size_t plus = x.find('+');
  offset = plus == x.npos ? 0 : std::stoll(std::string(trim(x.substr(plus + 1))), nullptr, 0);
  return names.value(trim(x.substr(0, plus)));
}

bool Line::vector(std::size_t operand) {
  const std::string_view x = operands.at(operand);
  if (x.front() != '{') return false;
  const std::vector<std::string> list = split(x.substr(1, x.size() - 2));
  if (list.size() > i.lane.size()) unknown();
  i.lanes = static_cast<int>(list.size());
  for (std::size_t k = 0; k < list.size(); ++k) i.lane[k] = names.value(list[k]);
  return true;
}

int Line::second(std::string& operand) {
  const std::size_t bar = operand.find('|');
  if (bar == operand.npos) return -1;
  const int number = names.value(trim(std::string_view(operand).substr(bar + 1)));
  operand = trim(std::string_view(operand).substr(0, bar));
  return number;
}

void decode(Line& line) {
  for (const Decoders* table : {&arithmetic_decoders(), &conversion_decoders(), &memory_decoders(),
                                &thread_decoders(), &matrix_decoders()}) {
    const auto it = table->find(line.opcode);
    if (it == table->end()) continue;
    it->second(line);
    if (line.i.run == nullptr || !line.parts.empty()) line.unknown();
    return;
  }
  line.unknown();
}

}  // namespace ptx
