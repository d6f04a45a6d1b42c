#pragma once
// Einstein sums by their definition: the references of einsum and of products.
#include <map>
#include <string>

#include "op_case_makers.hpp"

namespace braid::test {

/// Computes an Einstein sum by the definition: a loop over all values of all letters. The equation
/// must have no ellipsis and must name its result.
inline Array einstein_sum(const std::string& equation, Arrays operands) {
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  const std::string result = equation.substr(arrow + 2);
  std::map<char, I> size;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t d = 0; d < terms[k].size(); ++d) {
      I& n = size.try_emplace(terms[k][d], 1).first->second;
      if (n == 1) n = operands.at(k).shape.at(d);
    }
  std::string letters;
  Sizes all, shape;
  for (const auto& [letter, n] : size) letters += letter, all.push_back(n);
  for (const char c : result) shape.push_back(size.at(c));
  // For each letter, the stride of a term in an array of those sizes; 0 for a size of 1.
  const auto steps_of = [&](const std::string& term, const Sizes& sizes) {
    Sizes steps(letters.size(), 0);
    const Sizes strides = reference::row_major(sizes);
    for (std::size_t d = 0; d < term.size(); ++d)
      if (sizes.at(d) != 1) steps.at(letters.find(term[d])) += strides[d];
    return steps;
  };
  std::vector<Sizes> steps;
  for (std::size_t k = 0; k < terms.size(); ++k)
    steps.push_back(steps_of(terms[k], operands.at(k).shape));
  const Sizes out_steps = steps_of(result, shape);
  Array out(shape);
  reference::for_each(all, [&](const Sizes& value) {
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k)
      product *= operands[k][reference::offset(value, steps[k])];
    out[reference::offset(value, out_steps)] += product;
  });
  return out;
}

/// Adds a product that equals the Einstein sum `by`. Every rounding is of a partial sum: (terms + 2
/// per product) roundings of Σ |a| |b| ….
inline OpCase& add_einstein_sum(Cases& list, const std::string& op, const std::string& variant,
                                const std::vector<Sizes>& shapes, const std::string& by,
                                const std::string& torch, Function call) {
  OpCase& c = push(list, op, variant, torch, {}, kSigned);
  for (const Sizes& s : shapes) c.inputs.push_back({s});
  c.call = std::move(call);
  c.expected = [by](Arrays a) { return std::vector<Array>{einstein_sum(by, a)}; };
  bound_by_sizes(c, [](Arrays a, A) {
    double terms = 2;
    for (A x : a) terms += static_cast<double>(x.size() > 0 ? x.size() : 1);
    return terms;
  });
  return c;
}

}  // namespace braid::test
