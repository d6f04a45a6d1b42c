#pragma once
// Einstein sums by the definition: a loop over all values of all letters. The equation has no
// ellipsis and names its result.
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
  std::map<char, Int> size;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      Int& n = size.try_emplace(terms[k][d], 1).first->second;
      if (n == 1) n = operands.at(k).shape.at(d);
    }
  std::string letters;
  Sizes all, shape;
  for (const auto& [letter, n] : size) letters += letter, all.push_back(n);
  for (const char c : result) shape.push_back(size.at(c));
  // Of each letter the step of a term in an array of those sizes; a size of 1 stands still.
  const auto steps_of = [&](const std::string& term, const Sizes& sizes) {
    Sizes steps(letters.size(), 0);
    const Sizes strides = row_major(sizes);
    for (std::size_t d = 0; d < term.size(); ++d)
      if (sizes.at(d) != 1) steps.at(letters.find(term[d])) += strides[d];
    return steps;
  };
  std::vector<Sizes> steps;
  for (std::size_t k = 0; k < terms.size(); ++k)
    steps.push_back(steps_of(terms[k], operands.at(k).shape));
  const Sizes out_steps = steps_of(result, shape);
  Array out(shape);
  for_each(all, [&](const Sizes& value) {
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) product *= operands[k][offset(value, steps[k])];
    out[offset(value, out_steps)] += product;
  });
  return out;
}

}  // namespace reference
