#include "op_samples.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <regex>
#include <stdexcept>
#include <string_view>

#include <braid/core/safetensors.hpp>

#include "support/tests_dir.hpp"

namespace braid::test {
namespace {

const char* const kHowTo = "; run tests/goldens/make_op_goldens.py as its head says";

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();

/// Returns the case's inputs with values that `dtype` represents. Empty if an index has no valid
/// value.
std::vector<Array> numbers(const OpCase& c, DType dtype) {
  for (const Input& input : c.inputs)
    if (input.kind == Input::Kind::index && input.below <= 0) return {};
  std::vector<Array> inputs;
  for (const Tensor& t : inputs_of(c, dtype, dense(c), Device("cpu")))
    inputs.push_back(array_of(t));
  return inputs;
}

std::vector<DType> given(const OpCase& c, DType dtype) {
  std::vector<DType> list;
  for (const Input& input : c.inputs) list.push_back(type_of(input, dtype));
  return list;
}

void add_special(const Sample& ordinary, std::vector<Sample>& list) {
  std::vector<std::size_t> floating;
  for (std::size_t i = 0; i < ordinary.given.size(); ++i)
    if (is_floating(ordinary.given[i]) && ordinary.inputs[i].size() > 0) floating.push_back(i);
  const char* const names[] = {"nan", "inf", "-inf"};
  const char* const places[] = {"first", "middle", "last"};
  const double values[] = {kNan, kInf, -kInf};
  for (std::size_t v = 0; v < 3 && !floating.empty(); ++v)
    for (std::size_t p = 0; p < 3; ++p) {
      Sample s = ordinary;
      s.kind = str(names[v], " ", places[p]);
      Array& a = s.inputs[floating[(v + p) % floating.size()]];
      const std::int64_t at = p == 0 ? 0 : p == 1 ? a.size() / 2 : a.size() - 1;
      // few elements: that position was used already
      if ((p == 1 && at == 0) || (p == 2 && at == a.size() / 2)) continue;
      a[at] = values[v];
      s.every_layout = s.has_float32 = false;
      s.gradient = v == p || a.size() < 3;
      list.push_back(std::move(s));
    }
}

bool in(const std::vector<DType>& list, DType t) {
  return std::find(list.begin(), list.end(), t) != list.end();
}

}  // namespace

std::vector<Sample> samples_of(const OpCase& c) {
  std::vector<Sample> list;
  std::vector<DType> floating, whole;
  for (const DType t : c.dtypes)
    if (is_floating(t)) floating.push_back(t);
    else if (t == DType::int32 || t == DType::int64) whole.push_back(t);
  if (!floating.empty()) {
    const auto add = [&](const std::string& kind, const OpCase& like) {
      Sample s{kind, numbers(like, DType::bfloat16), given(c, DType::float64), floating};
      if (s.inputs.size() != c.inputs.size()) return;
      for (const Sample& other : list)  // the case has no sizes to change
        if (std::equal(s.inputs.begin(), s.inputs.end(), other.inputs.begin(),
                       [](const Array& a, const Array& b) { return a.shape == b.shape; }))
          return;
      s.has_float32 = in(floating, DType::float32);
      list.push_back(std::move(s));
    };
    add("numbers", c);
    list.front().every_layout = true;
    const Sample ordinary = list.front();
    Resize to_one;
    for (std::int64_t n = 2; n <= 64; ++n) to_one[n] = 1;
    add("one element", resized(c, to_one));
    add("empty (2)", resized(c, {{2, 0}}));
    add("empty (3)", resized(c, {{3, 0}}));
    add_special(ordinary, list);
  }
  for (const auto& [kind, type, dtypes] :
       std::vector<std::tuple<const char*, DType, std::vector<DType>>>{
           {"integers", DType::int64, whole},
           {"uint8", DType::uint8, {DType::uint8}},
           {"bool", DType::bool_, {DType::bool_}}}) {
    if (dtypes.empty() || !in(c.dtypes, dtypes.front())) continue;
    list.push_back({kind, numbers(c, type), given(c, type), dtypes, true, false});
  }
  return list;
}

Tensor incoming_like(const Tensor& y, std::size_t k) {
  Array a(sizes_of(y.shape()));
  for (std::int64_t i = 0; i < a.size(); ++i) a[i] = incoming(i, k);
  return tensor_of(a, y.dtype(), y.device());
}

Tensor laid_out(const Array& values, const Layout& layout, DType dtype, Device device) {
  std::int64_t extent = layout.offset + 1;
  for (std::size_t d = 0; d < values.shape.size() && values.size() > 0; ++d)
    extent += (values.shape[d] - 1) * layout.strides[d];
  std::vector<double> memory(static_cast<std::size_t>(extent), 1);
  std::int64_t i = 0;
  reference::for_each(values.shape, [&](const Sizes& index) {
    memory.at(static_cast<std::size_t>(layout.offset + reference::offset(index, layout.strides))) =
        values[i++];
  });
  std::size_t next = 0;
  return strided(values.shape, layout.strides, layout.offset, dtype, device,
                 [&] { return memory.at(next++); });
}

double fingerprint(const OpCase& c, const Sample& s) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto add = [&hash](const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3u;
  };
  add(c.torch.data(), c.torch.size());
  const char with_gradient = c.differentiable && s.gradient;
  add(&with_gradient, 1);
  for (std::size_t i = 0; i < s.inputs.size(); ++i) {
    const std::string_view type = name_of(s.given[i]);
    add(type.data(), type.size());
    add(s.inputs[i].shape.data(), s.inputs[i].shape.size() * sizeof(std::int64_t));
    for (const double x : s.inputs[i].data) {
      const double number = std::isnan(x) ? kNan : x;
      add(&number, sizeof number);
    }
  }
  return static_cast<double>(hash & 0xfffffffffffffu);
}

namespace {

/// Reads arrays from a list of numbers: rank (-1: no array), sizes, values.
struct Tape {
  std::vector<double> numbers;
  std::size_t at = 0;
  double next() { return numbers.at(at++); }
  std::optional<Array> array() {
    const double rank = next();
    if (rank < 0) return {};
    Sizes shape;
    for (double d = 0; d < rank; ++d) shape.push_back(static_cast<std::int64_t>(next()));
    Array a(shape);
    for (double& x : a.data) x = next();
    return a;
  }
  std::vector<std::optional<Array>> arrays() {
    std::vector<std::optional<Array>> list;
    for (double left = next(); left > 0; --left) list.push_back(array());
    return list;
  }
  std::vector<Array> all_arrays() {
    std::vector<Array> list;
    for (std::optional<Array>& a : arrays()) list.push_back(a.value());
    return list;
  }
};

/// Reads a case as the script wrote it: for each sample its fingerprint, outputs (-1: the call is
/// rejected) and gradients.
std::vector<std::pair<double, Answer>> read_case(const Safetensors& file, const OpCase& c) {
  std::vector<std::pair<double, Answer>> list;
  Tape tape{file.at(c.name()).to_vector<double>()};
  while (tape.at < tape.numbers.size()) {
    double mark = tape.next();
    for (int i = 0; i < 2; ++i) mark = mark * 0x1p18 + tape.next();
    list.emplace_back(mark, Answer{});
    Answer& answer = list.back().second;
    answer.refused = tape.next() < 0;
    if (answer.refused) continue;
    answer.outputs = tape.all_arrays();
    answer.gradients = tape.arrays();
  }
  const std::vector<Sample> samples = samples_of(c);
  const bool differ = file.contains(c.name() + ", float32");
  Tape narrow;
  if (differ) narrow.numbers = file.at(c.name() + ", float32").to_vector<double>();
  for (std::size_t i = 0; i < samples.size() && i < list.size(); ++i) {
    Answer& answer = list[i].second;
    if (!samples[i].has_float32 || answer.refused) continue;
    answer.float32 = differ ? narrow.all_arrays() : answer.outputs;
  }
  return list;
}

}  // namespace

Answer answer_of(const OpCase& c, const Sample& s) {
  static std::map<std::string, Safetensors> files;
  static std::map<std::string, std::vector<std::pair<double, Answer>>> cases;
  if (cases.count(c.name()) == 0) {
    if (files.count(c.family) == 0) {
      const std::string path = str(tests_dir(), "/goldens/ops/", c.family, ".safetensors");
      if (!std::ifstream(path))
        throw std::runtime_error(str("no goldens of the family ", c.family, kHowTo));
      files.emplace(c.family, load_safetensors(path));
    }
    const Safetensors& file = files.at(c.family);
    if (!file.contains(c.name()))
      throw std::runtime_error(str("no golden of '", c.name(), "'", kHowTo));
    cases.emplace(c.name(), read_case(file, c));
  }
  const double mark = fingerprint(c, s);
  for (const auto& [of, answer] : cases.at(c.name()))
    if (of == mark) return answer;
  throw std::runtime_error(str("the golden of '", c.name(), "', ", s.kind,
                               ", was made of other inputs or another call", kHowTo));
}

void write_samples(const std::string& folder) {
  std::map<std::string, std::vector<std::pair<std::string, Tensor>>> tensors;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> words;
  for (const OpCase& c : op_cases()) {
    if (c.torch.empty()) continue;
    words[c.family].emplace_back(c.name(), c.torch);
    std::size_t n = 0;
    for (const Sample& s : samples_of(c)) {
      const std::string name = str(c.name(), "|", n++, "|", s.kind, "|");
      tensors[c.family].emplace_back(
          name + "mark",
          tensor_of(Array(Sizes{3}, {fingerprint(c, s), c.differentiable && s.gradient ? 1.0 : 0.0,
                                     s.has_float32 ? 1.0 : 0.0}),
                    DType::float64));
      for (std::size_t i = 0; i < s.inputs.size(); ++i)
        tensors[c.family].emplace_back(str(name, "x", i), tensor_of(s.inputs[i], s.given[i]));
    }
  }
  for (const auto& [family, list] : tensors)
    save_safetensors(str(folder, "/", family, ".safetensors"), list, words[family]);
}

const Difference* declared_difference(const OpCase& c, const std::string& where) {
  for (const Difference& d : c.differs)
    if (std::regex_search(where, std::regex(d.where))) return &d;
  return nullptr;
}

}  // namespace braid::test
