#pragma once
// Einstein sums by the definition: a loop over all values of all letters. The equation has no ellipsis and names its result.
#include <map>
#include <string>

#include "reference/array.hpp"

namespace reference {

inline Array einsum(const std::string& equation, const std::vector<Array>& operands) {
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  const std::string result = equation.substr(arrow + 2);
  std::map<char, std::int64_t> size;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      std::int64_t& n = size.try_emplace(terms[k][d], 1).first->second;
      if (n == 1) n = operands.at(k).shape.at(d);
    }
  std::string letters;
  Sizes all, shape;
  for (const auto& [letter, n] : size) letters += letter, all.push_back(n);
  for (const char c : result) shape.push_back(size.at(c));
  Array out(shape);
  for_each(all, [&](const Sizes& value) {
    const auto index_of = [&](const std::string& term, const Sizes& sizes) {
      Sizes index;
      for (std::size_t d = 0; d < term.size(); ++d) index.push_back(sizes[d] == 1 ? 0 : value[letters.find(term[d])]);
      return index;
    };
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) product *= reference::value(operands[k], index_of(terms[k], operands[k].shape));
    out[offset(index_of(result, shape), row_major(shape))] += product;
  });
  return out;
}

}  // namespace reference
