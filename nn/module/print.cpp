#include <ostream>
#include <string>
#include <vector>

#include <braid/nn/module.hpp>

namespace braid::nn {

namespace {

/// The printed parts of a tree: its modules, and the containers that hold modules.
class Printer {
 public:
  explicit Printer(const tree::Flat& flat)
      : flat_(flat), children_(flat.nodes.size()), shown_(flat.nodes.size(), false) {
    for (std::size_t i = flat.nodes.size(); i-- > 0;) {  // children come after their parents
      const tree::Node& node = flat.nodes[i];
      if (node.type->training) shown_[i] = true;
      if (node.parent >= 0 && shown_[i]) shown_[static_cast<std::size_t>(node.parent)] = true;
    }
    for (std::size_t i = 1; i < flat.nodes.size(); ++i) {
      if (shown_[i]) children_[static_cast<std::size_t>(flat.nodes[i].parent)].push_back(i);
    }
  }

  [[nodiscard]] std::string text(std::size_t i) const {
    const tree::Node& node = flat_.nodes[i];
    if (node.type->form == tree::Form::optional) return text(children_[i].front());
    const std::string extra = node.type->extra ? node.type->extra(node.object) : std::string();
    const std::vector<std::string> parts = this->parts(i);
    std::string out = name(node) + '(';
    if (parts.empty()) return out + extra + ')';
    if (!extra.empty()) out += "\n  " + indented(extra);
    for (const std::string& part : parts) out += "\n  " + indented(part);
    return out + "\n)";
  }

 private:
  [[nodiscard]] static std::string name(const tree::Node& node) {
    switch (node.type->form) {
      case tree::Form::map: return "ModuleDict";
      case tree::Form::tuple:
      case tree::Form::list: return "ModuleList";
      default: return std::string(::braid::detail::short_type_name(node.type->signature));
    }
  }

  /// Returns `(name): text` of each child. Equal neighbours in a list are merged into one,
  /// `(0-2): 3 x Linear(…)`.
  [[nodiscard]] std::vector<std::string> parts(std::size_t i) const {
    std::vector<std::string> parts;
    const auto& children = children_[i];
    // a field without a name (BRAID_UNNAMED_FIELD): its parts are those of the struct
    if (children.size() == 1 && flat_.nodes[children[0]].name.empty() &&
        flat_.nodes[i].type->form == tree::Form::structure)
      return this->parts(children[0]);
    const bool list = flat_.nodes[i].type->form == tree::Form::tuple ||
                      flat_.nodes[i].type->form == tree::Form::list;
    for (std::size_t first = 0; first < children.size();) {
      const std::string text = this->text(children[first]);
      std::size_t last = first;
      while (list && last + 1 < children.size() && this->text(children[last + 1]) == text) ++last;
      if (last == first) parts.push_back('(' + key(children[first]) + "): " + text);
      else
        parts.push_back('(' + key(children[first]) + '-' + key(children[last]) +
                        "): " + std::to_string(last - first + 1) + " x " + text);
      first = last + 1;
    }
    return parts;
  }

  [[nodiscard]] std::string key(std::size_t i) const {
    const tree::Name& name = flat_.nodes[i].name;
    return name.is_index ? std::to_string(name.index) : std::string(name.text);
  }

  [[nodiscard]] static std::string indented(const std::string& text) {
    std::string out;
    for (const char c : text) {
      out += c;
      if (c == '\n') out += "  ";
    }
    return out;
  }

  const tree::Flat& flat_;
  std::vector<std::vector<std::size_t>> children_;
  std::vector<bool> shown_;
};

}  // namespace

void detail::print_module(std::ostream& out, const tree::Flat& flat) {
  out << Printer(flat).text(0);
}

}  // namespace braid::nn
