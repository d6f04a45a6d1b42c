#pragma once
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/ops/create.hpp>
#include <braid/core/tensor.hpp>

#include "support/tests_dir.hpp"

// Reads the files of tests/goldens (format: README.md there).
namespace braid::testing {

/// One file of goldens: tensors and texts by name.
class Goldens {
 public:
  /// Reads tests/goldens/<file>; its tensors are given out on `device`. Throws std::runtime_error
  /// naming the file and what is wrong with it.
  explicit Goldens(const std::string& file, Device device = {}) : file_(file), device_(device) {
    const std::string path = braid::test::tests_dir() + "/goldens/" + file;
    std::ifstream in(path);
    if (!in) throw std::runtime_error("goldens: cannot open " + path);
    for (std::string word; in >> word;) {
      if (word[0] == '#') std::getline(in, word);
      else if (word == "tensor") read_tensor(in);
      else if (word == "text") read_text(in);
      else throw std::runtime_error("goldens: " + file + ": expected tensor or text, got " + word);
    }
  }

  [[nodiscard]] bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  /// A tensor of its own (changing it changes no golden). Throws std::runtime_error for an unknown
  /// name.
  [[nodiscard]] Tensor tensor(const std::string& name) const {
    return find(tensors_, name).to(device_, {}, true);
  }
  [[nodiscard]] const std::string& text(const std::string& name) const {
    return find(texts_, name);
  }
  [[nodiscard]] const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string>& texts() const { return texts_; }

 private:
  template <class T>
  const T& find(const std::map<std::string, T>& map, const std::string& name) const {
    const auto at = map.find(name);
    if (at == map.end()) throw std::runtime_error("goldens: " + file_ + " has no " + name);
    return at->second;
  }

  template <class T, class Parse>
  static std::vector<T> values(std::istream& in, std::int64_t count, Parse parse) {
    std::vector<T> v;
    std::string word;
    for (std::int64_t i = 0; i < count && in >> word; ++i) {
      char* end = nullptr;
      v.push_back(static_cast<T>(parse(word.c_str(), &end)));
      if (end == word.c_str() || *end != '\0')
        throw std::runtime_error("goldens: expected a number, got " + word);
    }
    if (static_cast<std::int64_t>(v.size()) != count)
      throw std::runtime_error("goldens: the file ends inside a tensor");
    return v;
  }

  void read_tensor(std::istream& in) {
    std::string name, dtype;
    int rank = 0;
    in >> name >> dtype >> rank;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(rank));
    std::int64_t count = 1;
    for (std::int64_t& size : sizes) {
      in >> size;
      count *= size;
    }
    const Shape shape(sizes);
    constexpr auto to_float = [](const char* s, char** end) { return std::strtof(s, end); };
    constexpr auto to_double = [](const char* s, char** end) { return std::strtod(s, end); };
    constexpr auto to_integer = [](const char* s, char** end) { return std::strtoll(s, end, 10); };
    Tensor t;
    if (dtype == "float64") t = braid::tensor(values<double>(in, count, to_double));
    else if (dtype == "float32") t = braid::tensor(values<float>(in, count, to_float));
    else if (dtype == "float16")
      t = braid::tensor(values<float>(in, count, to_float), {.dtype = DType::float16});
    else if (dtype == "bfloat16")
      t = braid::tensor(values<float>(in, count, to_float), {.dtype = DType::bfloat16});
    else if (dtype == "int64") t = braid::tensor(values<std::int64_t>(in, count, to_integer));
    else if (dtype == "int32")
      t = braid::tensor(values<std::int64_t>(in, count, to_integer), {.dtype = DType::int32});
    else if (dtype == "uint8")
      t = braid::tensor(values<std::int64_t>(in, count, to_integer), {.dtype = DType::uint8});
    else if (dtype == "bool")
      t = braid::tensor(values<std::int64_t>(in, count, to_integer), {.dtype = DType::bool_});
    else throw std::runtime_error("goldens: " + file_ + ": unknown dtype " + dtype);
    if (!tensors_.emplace(name, t.reshape(shape)).second)
      throw std::runtime_error("goldens: " + file_ + ": " + name + " twice");
  }

  void read_text(std::istream& in) {
    std::string name, line, text;
    int lines = 0;
    in >> name >> lines;
    std::getline(in, line);  // the rest of the head line
    for (int i = 0; i < lines; ++i) {
      if (!std::getline(in, line)) throw std::runtime_error("goldens: the file ends inside a text");
      text += (i ? "\n" : "") + line;
    }
    if (!texts_.emplace(name, text).second)
      throw std::runtime_error("goldens: " + file_ + ": text " + name + " twice");
  }

  std::string file_;
  Device device_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> texts_;
};

/// Empty if `got` has the shape and dtype of `want` and |got - want| <= atol + rtol |want|
/// everywhere; else what differs. NaN is never close.
[[nodiscard]] inline std::string difference(const Tensor& got, const Tensor& want, double rtol,
                                            double atol) {
  std::ostringstream out;
  if (!got.defined()) return "undefined";
  if (got.dtype() != want.dtype()) out << "expected " << want.dtype() << ", got " << got.dtype();
  else if (!(got.shape() == want.shape()))
    out << "expected shape " << want.shape() << ", got " << got.shape();
  else {
    const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
    for (std::size_t i = 0; i < a.size() && out.tellp() == 0; ++i) {
      // equal infinities are close
      const bool close = a[i] == b[i] || std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i]);
      if (!close) {
        out.precision(17);
        out << "element " << i << " of " << want.shape() << ": expected " << b[i] << ", got "
            << a[i];
      }
    }
  }
  return out.str();
}

/// The same with tolerances for a dtype's rounding, in units of a few operations' error.
[[nodiscard]] inline std::string difference(const Tensor& got, const Tensor& want) {
  return want.dtype() == DType::float64 ? difference(got, want, 1e-12, 1e-12)
                                        : difference(got, want, 5e-6, 2e-6);
}

}  // namespace braid::testing
