#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/ops/join.hpp>
#include <braid/core/print.hpp>
#include <braid/core/tensor.hpp>

// Prints tensors as PyTorch does (by the rules of its torch/_tensor_str.py), but in Braid's
// notation: true, size=[0, 3], dtype=float64.
namespace braid {
namespace {

constexpr std::string_view kPrefix = "tensor(";

std::mutex options_mutex;
PrintOptions& shared_options() {
  static PrintOptions& options = *new PrintOptions;
  return options;
}

/// The elements to be printed, in host memory. A summarised dim has only its edges.
struct Elements {
  PrintOptions options;
  Tensor host;  // keeps the memory alive
  const char* data = nullptr;
  DType dtype = DType::float32;
  int rank = 0;
  std::int64_t shown[kMaxRank] = {};  // items printed along a dim
  // elements left out after the first edgeitems items, 0 if none are
  std::int64_t jump[kMaxRank] = {};
  std::int64_t stride[kMaxRank] = {};  // in elements
  bool elided[kMaxRank] = {};          // `...` is printed after the first edgeitems items

  [[nodiscard]] std::int64_t step(int dim, std::int64_t i) const {
    return (i < options.edgeitems ? i : i + jump[dim]) * stride[dim];
  }
};

Elements elements_of(const Tensor& t) {
  const NoGrad guard;
  Elements e;
  e.options = get_printoptions();
  const std::int64_t edge = e.options.edgeitems;
  e.rank = t.dim();
  e.dtype = t.dtype();
  const bool summarise = t.numel() > e.options.threshold;
  for (int d = 0; d < e.rank; ++d) {
    const std::int64_t size = t.shape()[d];
    e.elided[d] = summarise && size / 2 >= edge && size > 2 * edge;
    e.shown[d] = e.elided[d] ? 2 * edge : size;
    e.jump[d] = size - e.shown[d];
  }
  e.host = t;
  if (t.device().type() != DeviceType::cpu) {  // cut first, so that little is transferred
    for (int d = 0; d < e.rank; ++d) {
      if (!e.elided[d]) continue;
      e.host = cat({e.host.narrow(d, 0, edge), e.host.narrow(d, t.shape()[d] - edge, edge)}, d);
      e.jump[d] = 0;
    }
    e.host = e.host.to(Device("cpu"));
  }
  for (int d = 0; d < e.rank; ++d) e.stride[d] = e.host.strides()[d];
  e.data = static_cast<const char*>(e.host.impl()->data());
  return e;
}

template <class T> T load(const Elements& e, std::int64_t offset) {
  T value;
  std::memcpy(&value, e.data + offset * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

std::int64_t integer_at(const Elements& e, std::int64_t offset) {
  if (e.dtype == DType::int64) return load<std::int64_t>(e, offset);
  if (e.dtype == DType::int32) return load<std::int32_t>(e, offset);
  return load<std::uint8_t>(e, offset);
}

double floating_at(const Elements& e, std::int64_t offset) {
  if (e.dtype == DType::float64) return load<double>(e, offset);
  if (e.dtype == DType::float32) return static_cast<double>(load<float>(e, offset));
  if (e.dtype == DType::float16)
    return static_cast<double>(static_cast<float>(load<float16>(e, offset)));
  return static_cast<double>(static_cast<float>(load<bfloat16>(e, offset)));
}

template <class F>
void for_each_offset(const Elements& e, int dim, std::int64_t offset, const F& f) {
  if (dim == e.rank) return f(offset);
  for (std::int64_t i = 0; i < e.shown[dim]; ++i)
    for_each_offset(e, dim + 1, offset + e.step(dim, i), f);
}

/// Uses to_chars instead of printf, so that the decimal point does not depend on the locale.
std::string number(double value, std::chars_format format, int precision) {
  if (std::isnan(value)) return "nan";
  char text[512];  // DBL_MAX has 309 digits, and precision is at most 100
  const std::to_chars_result end =
      std::to_chars(text, text + sizeof text, value, format, precision);
  return {text, end.ptr};
}

/// The format of all elements of a tensor. It depends on all elements that are shown.
class Format {
 public:
  explicit Format(const Elements& e) : elements_(e) {
    if (is_floating(e.dtype)) choose();
    for_each_offset(e, 0, 0, [&](std::int64_t offset) {
      // Zeros, infinities and NaN do not widen the column.
      if (is_floating(e.dtype)) {
        const double value = floating_at(e, offset);
        if (value == 0 || !std::isfinite(value)) return;
      }
      width_ = std::max(width_, text(offset).size());
    });
  }

  [[nodiscard]] std::size_t width() const { return width_; }
  [[nodiscard]] std::string padded(std::int64_t offset) const {
    std::string s = text(offset);
    if (s.size() < width_) s.insert(0, width_ - s.size(), ' ');
    return s;
  }

 private:
  void choose() {
    double smallest = INFINITY, largest = 0;
    bool whole = true;
    for_each_offset(elements_, 0, 0, [&](std::int64_t offset) {
      const double value = floating_at(elements_, offset);
      if (value == 0 || !std::isfinite(value)) return;
      smallest = std::min(smallest, std::abs(value));
      largest = std::max(largest, std::abs(value));
      whole = whole && value == std::ceil(value);
    });
    if (elements_.options.sci_mode) scientific_ = *elements_.options.sci_mode;
    if (largest == 0) return;  // only zeros, infinities and NaN
    whole_ = whole;
    if (elements_.options.sci_mode) return;
    scientific_ = largest / smallest > 1000 || largest > 1e8 || (!whole && smallest < 1e-4);
  }

  [[nodiscard]] std::string text(std::int64_t offset) const {
    if (elements_.dtype == DType::bool_)
      return integer_at(elements_, offset) != 0 ? "true" : "false";
    if (!is_floating(elements_.dtype)) return std::to_string(integer_at(elements_, offset));
    const double value = floating_at(elements_, offset);
    const int precision = elements_.options.precision;
    if (scientific_) return number(value, std::chars_format::scientific, precision);
    if (!whole_) return number(value, std::chars_format::fixed, precision);
    return number(value, std::chars_format::fixed, 0) + (std::isfinite(value) ? "." : "");
  }

  const Elements& elements_;
  std::size_t width_ = 1;
  bool whole_ = true;
  bool scientific_ = false;
};

void write_row(std::string& out, const Elements& e, const Format& format, std::int64_t offset,
               std::size_t indent) {
  const int dim = e.rank - 1;
  const auto columns = static_cast<std::size_t>(e.options.linewidth);
  const std::size_t per_line =
      std::max<std::size_t>(1, (columns - std::min(indent, columns)) / (format.width() + 2));
  std::size_t written = 0;
  const auto separate = [&] {
    if (written != 0 && written % per_line == 0) out.append(",\n").append(indent + 1, ' ');
    else if (written != 0) out += ", ";
    ++written;
  };
  out += '[';
  for (std::int64_t i = 0; i < e.shown[dim]; ++i) {
    if (e.elided[dim] && i == e.options.edgeitems) {
      separate();
      out += " ...";
    }
    separate();
    out += format.padded(offset + e.step(dim, i));
  }
  out += ']';
}

void write_block(std::string& out, const Elements& e, const Format& format, int dim,
                 std::int64_t offset, std::size_t indent) {
  if (dim == e.rank - 1) return write_row(out, e, format, offset, indent);
  const auto separate = [&] {
    out.append(",")
        .append(static_cast<std::size_t>(e.rank - 1 - dim), '\n')
        .append(indent + 1, ' ');
  };
  out += '[';
  for (std::int64_t i = 0; i < e.shown[dim]; ++i) {
    if (i != 0) separate();
    if (e.elided[dim] && i == e.options.edgeitems) {
      out += "...";
      separate();
    }
    write_block(out, e, format, dim + 1, offset + e.step(dim, i), indent + 1);
  }
  out += ']';
}

/// Appends `, suffix`, on a new line if the last line would become too long.
class Suffixes {
 public:
  Suffixes(std::string& out, std::int64_t columns)
      : out_(out), columns_(static_cast<std::size_t>(columns)) {
    const std::size_t newline = out.rfind('\n');
    last_line_ = newline == std::string::npos ? out.size() + 2 : out.size() - newline + 1;
  }
  void add(const std::string& suffix) {
    if (last_line_ + suffix.size() + 2 > columns_) {
      out_.append(",\n").append(kPrefix.size(), ' ').append(suffix);
      last_line_ = kPrefix.size() + suffix.size();
    } else {
      out_.append(", ").append(suffix);
      last_line_ += suffix.size() + 2;
    }
  }

 private:
  std::string& out_;
  std::size_t columns_, last_line_;
};

}  // namespace

PrintOptions get_printoptions() {
  const std::lock_guard lock(options_mutex);
  return shared_options();
}

void set_printoptions(const PrintOptions& o) {
  if (o.precision < 0 || o.precision > 100)
    throw ArgumentError(str("set_printoptions: expected 0 <= precision <= 100, got ", o.precision));
  if (o.threshold < 0)
    throw ArgumentError(str("set_printoptions: expected threshold >= 0, got ", o.threshold));
  if (o.edgeitems < 1)
    throw ArgumentError(str("set_printoptions: expected edgeitems >= 1, got ", o.edgeitems));
  if (o.linewidth < 1)
    throw ArgumentError(str("set_printoptions: expected linewidth >= 1, got ", o.linewidth));
  const std::lock_guard lock(options_mutex);
  shared_options() = o;
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) {
  if (!t.defined()) return out << "undefined";
  std::string text(kPrefix);
  const bool empty = t.numel() == 0;
  if (empty) {
    text += "[]";
  } else {
    const Elements e = elements_of(t);
    const Format format(e);
    if (e.rank == 0) text += format.padded(0);
    else write_block(text, e, format, 0, 0, kPrefix.size());
  }
  Suffixes suffixes(text, get_printoptions().linewidth);
  if (t.device() != Device()) suffixes.add(str("device='", t.device(), "'"));
  if (empty && t.dim() != 1) suffixes.add(str("size=", t.shape()));
  // An empty tensor has no elements that show its dtype.
  const bool shown_by_elements =
      t.dtype() == DType::float32 ||
      (!empty && (t.dtype() == DType::int64 || t.dtype() == DType::bool_));
  if (!shown_by_elements) suffixes.add(str("dtype=", t.dtype()));
  if (!t.is_leaf()) suffixes.add(str("grad_fn=<", t.impl()->grad_fn->name(), ">"));
  else if (t.requires_grad()) suffixes.add("requires_grad=true");
  text += ')';
  return out << text;
}

}  // namespace braid
