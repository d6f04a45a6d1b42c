#include "support/golden.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <braid/core/ops/create.hpp>

#include "support/tests_dir.hpp"

namespace braid::testing {
namespace {

template <class T, class Parse>
std::vector<T> values(std::istream& in, std::int64_t count, Parse parse) {
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

}  // namespace

Goldens::Goldens(const std::string& file, Device device) : file_(file), device_(device) {
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

void Goldens::read_tensor(std::istream& in) {
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

void Goldens::read_text(std::istream& in) {
  std::string name, line, text;
  int lines = 0;
  in >> name >> lines;
  std::getline(in, line);  // the rest of the header line
  for (int i = 0; i < lines; ++i) {
    if (!std::getline(in, line)) throw std::runtime_error("goldens: the file ends inside a text");
    text += (i ? "\n" : "") + line;
  }
  if (!texts_.emplace(name, text).second)
    throw std::runtime_error("goldens: " + file_ + ": text " + name + " twice");
}

std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  std::ostringstream out;
  if (!got.defined()) return "undefined";
  if (got.dtype() != want.dtype()) out << "expected " << want.dtype() << ", got " << got.dtype();
  else if (!(got.shape() == want.shape()))
    out << "expected shape " << want.shape() << ", got " << got.shape();
  else {
    const std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
    for (std::size_t i = 0; i < a.size() && out.tellp() == 0; ++i) {
      // equal infinities count as close
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

std::string difference(const Tensor& got, const Tensor& want) {
  return want.dtype() == DType::float64 ? difference(got, want, 1e-12, 1e-12)
                                        : difference(got, want, 5e-6, 2e-6);
}

}  // namespace braid::testing
