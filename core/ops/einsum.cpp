// Einstein summation. The equation becomes a list of labels for each operand. Then the operands are
// contracted from the left, two at a time.
#include <braid/core/ops/einsum.hpp>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <braid/core/internal/autocast.hpp>
#include <braid/core/ops/elementwise.hpp>
#include <braid/core/ops/matmul.hpp>
#include <braid/core/ops/reduce.hpp>

#include "common.hpp"

namespace braid {
namespace {

/// The name of a dim: its letter, or a number for a dim of the ellipsis, counted from the right.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;  // dim k from the right is kEllipsis + k

std::string name_of(Label l) {
  return l < kEllipsis ? str("'", static_cast<char>(l), "'")
                       : str("dim -", l - kEllipsis + 1, " of the ellipsis");
}
bool holds(const Labels& list, Label l) {
  return std::find(list.begin(), list.end(), l) != list.end();
}

[[noreturn]] void refuse(std::string_view equation, std::size_t at, std::string_view expected) {
  throw ArgumentError(
      str("einsum: expected ", expected, ", got ",
          at < equation.size() ? str("'", equation[at], "'") : std::string("the end"),
          " at position ", at, " of '", equation, "'"));
}

/// The labels of one operand or of the result. An ellipsis is one label, -1, until its number of
/// dims is known.
struct Term {
  Labels labels;
  bool ellipsis = false;
};

struct Equation {
  std::vector<Term> operands;
  Term result;
  bool has_result = false;
};

Equation parse(std::string_view text) {
  Equation e;
  e.operands.emplace_back();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    Term& term = e.has_result ? e.result : e.operands.back();
    if (c == ' ') continue;
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      if (e.has_result && holds(term.labels, c)) refuse(text, i, "each letter once in the result");
      term.labels.push_back(c);
    } else if (c == '.') {
      if (text.substr(i, 3) != "..." || term.ellipsis)
        refuse(text, i, term.ellipsis ? "one ellipsis a term" : "three dots");
      term.ellipsis = true;
      term.labels.push_back(-1);
      i += 2;
    } else if (c == ',' && !e.has_result) {
      e.operands.emplace_back();
    } else if (c == '-' && !e.has_result && text.substr(i, 2) == "->") {
      e.has_result = true;
      ++i;
    } else {
      refuse(text, i, "letters, ',', '->', '...' or blanks");
    }
  }
  return e;
}

/// Replaces the ellipsis by its `count` dims.
Labels expanded(const Term& term, int count) {
  Labels all;
  for (const Label l : term.labels) {
    if (l != -1) all.push_back(l);
    else
      for (int k = count - 1; k >= 0; --k) all.push_back(kEllipsis + k);
  }
  return all;
}

/// A tensor with a label for each of its dims.
struct Labelled {
  Tensor t;
  Labels labels;
  [[nodiscard]] int dim_of(Label l) const {
    return static_cast<int>(std::find(labels.begin(), labels.end(), l) - labels.begin());
  }
  [[nodiscard]] std::int64_t size_of(Label l) const { return t.shape()[dim_of(l)]; }
  void drop(Label l) { labels.erase(labels.begin() + dim_of(l)); }
};

/// Replaces dims a < b by their diagonal, at position a. Recorded: the gradient is dy in zeros.
Tensor diagonal(const Tensor& x, int a, int b) {
  const Tensor base = x.contiguous();
  Shape shape = base.shape(), strides = contiguous_strides(shape);
  strides[a] += strides[b];
  shape.erase(b);
  strides.erase(b);
  Tensor y = make_view(base, shape, strides, base.storage_offset());
  if (!needs_grad({base})) return y;
  return record("einsum", {base}, y, [whole = base.shape(), strides](const Tensor& dy) -> Grads {
    return {ops::embed("einsum", dy, whole, strides, 0)};
  });
}

void take_diagonals(Labelled& x) {
  for (int b = static_cast<int>(x.labels.size()) - 1; b > 0; --b) {
    const Label l = x.labels[static_cast<std::size_t>(b)];
    const int a = x.dim_of(l);
    if (a == b) continue;
    if (x.t.shape()[a] != x.t.shape()[b])
      throw ShapeError(str("einsum: expected equal sizes of the dims ", name_of(l),
                           " of one operand, got ", x.t.shape()[a], " and ", x.t.shape()[b]));
    x.t = diagonal(x.t, a, b);
    x.labels.erase(x.labels.begin() + b);
  }
}

/// Sums over the labels that are not needed any more. The result has the operand's dtype.
void sum_over(Labelled& x, const Labels& needed) {
  Shape dims;
  Labels left;
  for (std::size_t i = 0; i < x.labels.size(); ++i) {
    if (holds(needed, x.labels[i])) left.push_back(x.labels[i]);
    else dims.push_back(static_cast<std::int64_t>(i));
  }
  if (dims.empty()) return;
  x.t = sum(x.t, dims).to(x.t.dtype());
  x.labels = std::move(left);
}

/// Returns x with its dims in the order of `labels`. Requires that x has all of them.
Tensor arranged(const Labelled& x, const Labels& labels) {
  Shape dims;
  for (const Label l : labels) dims.push_back(x.dim_of(l));
  return x.t.permute(dims);
}

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Multiplies two operands, and sums over the labels that both have and that are not needed later.
Labelled contract(Labelled a, Labelled b, const Labels& needed) {
  // if the sizes of a label differ, one of them is 1: remove that dim
  for (const Label l : Labels(a.labels)) {
    if (!holds(b.labels, l) || a.size_of(l) == b.size_of(l)) continue;
    Labelled& narrow = a.size_of(l) == 1 ? a : b;
    narrow.t = narrow.t.squeeze(narrow.dim_of(l));
    narrow.drop(l);
  }
  sum_over(a, joined(needed, b.labels));
  sum_over(b, joined(needed, a.labels));
  Labels batch, inner, rows, columns;
  for (const Label l : a.labels)
    (!holds(b.labels, l) ? rows : holds(needed, l) ? batch : inner).push_back(l);
  for (const Label l : b.labels)
    if (!holds(a.labels, l)) columns.push_back(l);
  Shape sizes, spread_a, spread_b;  // of the result, and of a and b when they broadcast to it
  for (const Label l : joined(joined(batch, rows), columns)) {
    const bool in_a = holds(a.labels, l), in_b = holds(b.labels, l);
    sizes.push_back(in_a ? a.size_of(l) : b.size_of(l));
    spread_a.push_back(in_a ? a.size_of(l) : 1);
    spread_b.push_back(in_b ? b.size_of(l) : 1);
  }
  Labelled c{{}, joined(joined(batch, rows), columns)};
  if (inner.empty()) {  // nothing is summed
    c.t = mul(arranged(a, joined(batch, rows)).reshape(spread_a),
              arranged(b, joined(batch, columns)).reshape(spread_b));
    return c;
  }
  const auto count = [](const Labelled& x, const Labels& labels) {
    std::int64_t n = 1;
    for (const Label l : labels) n *= x.size_of(l);
    return n;
  };
  const std::int64_t n = count(a, batch), m = count(a, rows), k = count(a, inner),
                     p = count(b, columns);
  const Tensor x = arranged(a, joined(joined(batch, rows), inner)),
               y = arranged(b, joined(joined(batch, inner), columns));
  c.t = (batch.empty() ? matmul(x.reshape({m, k}), y.reshape({k, p}))
                       : matmul(x.reshape({n, m, k}), y.reshape({n, k, p})))
            .reshape(sizes);
  return c;
}

/// Returns the labels of the result: the explicit ones, or else the ellipsis and then the letters
/// that occur once, capitals first.
Labels result_of(const Equation& e, std::string_view text, const std::vector<Labelled>& operands,
                 int ellipsis) {
  Labels all;
  for (const Labelled& x : operands) all = joined(std::move(all), x.labels);
  Labels result;
  if (e.has_result) {
    result = expanded(e.result, ellipsis);
    for (const Label l : result)
      if (!holds(all, l))
        throw ArgumentError(str("einsum: expected letters of the operands in the result, got ",
                                name_of(l), " in '", text, "'"));
    return result;
  }
  for (int k = ellipsis - 1; k >= 0; --k) result.push_back(kEllipsis + k);
  Labels letters;
  for (const Term& term : e.operands)
    for (const Label l : term.labels)
      if (l != -1) letters.push_back(l);
  std::sort(letters.begin(), letters.end());
  for (const Label l : letters)
    if (std::count(letters.begin(), letters.end(), l) == 1) result.push_back(l);
  return result;
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  if (operands.empty()) throw ArgumentError("einsum: expected at least one operand, got none");
  const Equation e = parse(equation);
  if (e.operands.size() != operands.size())
    throw ArgumentError(str("einsum: expected ", e.operands.size(), " operands for '", equation,
                            "', got ", operands.size()));
  int ellipsis = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    ops::check_device("einsum", operands[0], operands[i]);
    // in an Autocast matmul converts both, and mul takes the wider type
    if (!detail::autocasting(operands[0].dtype(), operands[i].dtype()))
      ops::check_dtype("einsum", operands[0], operands[i]);
    const int letters =
                  static_cast<int>(e.operands[i].labels.size()) - (e.operands[i].ellipsis ? 1 : 0),
              more = operands[i].dim() - letters;
    if (more < 0 || (more > 0 && !e.operands[i].ellipsis))
      throw ShapeError(str("einsum: expected an operand of rank ",
                           e.operands[i].ellipsis ? ">= " : "", letters, " at place ", i, " of '",
                           equation, "', got ", operands[i].shape()));
    ellipsis = std::max(ellipsis, more);
  }
  std::vector<Labelled> all;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const int letters =
        static_cast<int>(e.operands[i].labels.size()) - (e.operands[i].ellipsis ? 1 : 0);
    all.push_back({operands[i], expanded(e.operands[i], operands[i].dim() - letters)});
    take_diagonals(all.back());
  }
  for (const Labelled& x : all)
    for (const Labelled& y : all)
      for (const Label l : x.labels)
        if (holds(y.labels, l) && x.size_of(l) != y.size_of(l) && x.size_of(l) != 1 &&
            y.size_of(l) != 1)
          throw ShapeError(str("einsum: expected one size of ", name_of(l), " in '", equation,
                               "', got ", x.size_of(l), " and ", y.size_of(l)));
  const Labels result = result_of(e, equation, all, ellipsis);
  Labelled c = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) {
    Labels needed = result;
    for (std::size_t later = i + 1; later < all.size(); ++later)
      needed = joined(std::move(needed), all[later].labels);
    c = contract(std::move(c), all[i], needed);
  }
  sum_over(c, result);
  return arranged(c, result);
}

Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span<const Tensor>(operands.begin(), operands.size()));
}

}  // namespace braid
