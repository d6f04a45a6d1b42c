#include "support/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace braid::test {

std::vector<Device> test_devices() {
  const Device d = best_device();
  return d.type() == DeviceType::cpu ? devices(DeviceType::cpu) : std::vector<Device>{d};
}

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> list{DType::bool_,   DType::uint8,   DType::int32,
                                       DType::int64,   DType::float16, DType::bfloat16,
                                       DType::float32, DType::float64};
  return list;
}
const std::vector<DType>& floating_dtypes() {
  static const std::vector<DType> list{DType::float16, DType::bfloat16, DType::float32,
                                       DType::float64};
  return list;
}

reference::Format format_of(DType t) {
  if (t == DType::float16) return reference::kFloat16;
  if (t == DType::bfloat16) return reference::kBfloat16;
  if (t == DType::float32) return reference::kFloat32;
  return reference::kFloat64;  // represents integers up to 2^53 exactly
}

double read_element(const void* data, std::int64_t i, DType t) {
  const auto as = [&]<class T>(T) {
    T x;
    std::memcpy(&x, static_cast<const char*>(data) + i * static_cast<std::int64_t>(sizeof(T)),
                sizeof(T));
    return x;
  };
  switch (t) {
    case DType::bool_:
    case DType::uint8: return as(std::uint8_t{});
    case DType::int32: return as(std::int32_t{});
    case DType::int64: return static_cast<double>(as(std::int64_t{}));
    case DType::float16: return reference::decode16(as(std::uint16_t{}), reference::kFloat16);
    case DType::bfloat16: return reference::decode16(as(std::uint16_t{}), reference::kBfloat16);
    case DType::float32: return static_cast<double>(as(float{}));
    case DType::float64: return as(double{});
  }
  throw std::logic_error("read_element");
}

void write_element(void* data, std::int64_t i, DType t, double x) {
  const auto put = [&](auto v) {
    std::memcpy(static_cast<char*>(data) + i * static_cast<std::int64_t>(sizeof(v)), &v, sizeof(v));
  };
  switch (t) {
    case DType::bool_: return put(static_cast<std::uint8_t>(x != 0));
    case DType::uint8: return put(static_cast<std::uint8_t>(x));
    case DType::int32: return put(static_cast<std::int32_t>(x));
    case DType::int64: return put(static_cast<std::int64_t>(x));
    case DType::float16:
      return put(
          reference::encode16(reference::round_to(x, reference::kFloat16), reference::kFloat16));
    case DType::bfloat16:
      return put(
          reference::encode16(reference::round_to(x, reference::kBfloat16), reference::kBfloat16));
    case DType::float32: return put(static_cast<float>(x));
    case DType::float64: return put(x);
  }
}

Array array_of(const Tensor& t) {
  if (t.device().type() != DeviceType::cpu) return array_of(t.to(Device("cpu")));
  const Sizes strides = sizes_of(t.strides()), shape = sizes_of(t.shape());
  const DType dtype = t.dtype();
  const std::int64_t first = t.storage_offset();
  const void* const data = t.storage()->data();
  if (strides != reference::row_major(shape))
    return reference::generate(shape, [&](const Sizes& i) {
      return read_element(data, first + reference::offset(i, strides), dtype);
    });
  Array a(shape);  // contiguous: element by element
  double* const x = a.data.data();
  const std::int64_t n = a.size();
  if (dtype == DType::float32 && n > 0) {
    const float* const from = static_cast<const float*>(data) + first;
    for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<double>(from[i]);
    return a;
  }
  for (std::int64_t i = 0; i < n; ++i) x[i] = read_element(data, first + i, dtype);
  return a;
}

Ref<Storage> exact_storage(std::int64_t elements, DType dtype, Device device) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_of(dtype);
  auto memory =
      std::make_shared<std::unique_ptr<char[]>>(new char[std::max<std::size_t>(bytes, 1)]);
  void* data = memory->get();
  return Storage::wrap(data, bytes, device, [memory]() mutable { memory.reset(); });
}

Tensor strided(const Sizes& shape, const Sizes& strides, std::int64_t offset, DType dtype,
               Device device, FunctionRef<double()> next) {
  std::int64_t extent = offset;
  if (reference::count(shape) > 0) {
    extent += 1;
    for (std::size_t i = 0; i < shape.size(); ++i) extent += (shape[i] - 1) * strides[i];
  }
  const Ref<Storage> host =
      exact_storage(extent, dtype, device.type() == DeviceType::cpu ? device : Device("cpu"));
  if (dtype == DType::float32) {
    float* const to = static_cast<float*>(host->data());
    for (std::int64_t i = 0; i < extent; ++i) to[i] = static_cast<float>(next());
  } else {
    for (std::int64_t i = 0; i < extent; ++i) write_element(host->data(), i, dtype, next());
  }
  Ref<Storage> storage = host;
  if (device.type() != DeviceType::cpu)
    storage = make_tensor_on(host, Shape{extent}, Shape{1}, 0, dtype).to(device).storage();
  return noted(make_tensor_on(storage, Shape(shape), Shape(strides), offset, dtype));
}

Tensor tensor_of(const Array& a, DType dtype, Device device) {
  std::int64_t i = 0;
  return strided(a.shape, reference::row_major(a.shape), 0, dtype, device, [&] { return a[i++]; });
}

std::vector<Layout> layouts(const Sizes& shape) {
  const int rank = static_cast<int>(shape.size());
  const Sizes dense = reference::row_major(shape);
  std::vector<Layout> list{{"contiguous", dense}};
  for (const std::int64_t k : {1, 2, 3, 5, 7, 8, 15})
    list.push_back({"offset " + std::to_string(k), dense, k});
  if (rank == 0) return list;
  Sizes s = shape;
  s.back() *= 2;
  s = reference::row_major(s);
  s.back() = 2;
  list.push_back({"step 2", s});
  s = shape;
  s.back() += 3;
  list.push_back({"rows with a gap", reference::row_major(s), 2});
  if (rank >= 2) {
    Sizes swapped = shape;
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    s = reference::row_major(swapped);
    std::swap(s[s.size() - 1], s[s.size() - 2]);
    list.push_back({"transposed", s});
    list.push_back({"transposed, offset 3", s, 3});
    list.push_back({"overlapping", Sizes(shape.size(), 1), 0, true});
  }
  if (rank >= 3) {
    s = reference::row_major(Sizes(shape.rbegin(), shape.rend()));
    list.push_back({"permuted", Sizes(s.rbegin(), s.rend())});
  }
  s = dense;
  s.front() = 0;
  list.push_back({"expanded in the first dim", s, 0, true});
  s = reference::row_major(Sizes(shape.begin(), shape.end() - 1));
  s.push_back(0);
  list.push_back({"expanded in the last dim", s, 1, true});
  list.push_back({"expanded in all dims", Sizes(shape.size(), 0), 0, true});
  if (std::find(shape.begin(), shape.end(), 1) != shape.end()) {
    s = dense;
    for (std::size_t i = 0; i < s.size(); ++i)
      if (shape[i] == 1) s[i] = 77;
    list.push_back({"odd strides in dims of size 1", s});
  }
  return list;
}

Tensor random_tensor(const Sizes& shape, DType dtype, Device device, std::uint64_t seed, double low,
                     double high) {
  Numbers numbers(seed);
  return strided(shape, reference::row_major(shape), 0, dtype, device,
                 [&] { return numbers.of(dtype, low, high); });
}

std::string where_in(const Sizes& shape, std::int64_t n) {
  Sizes index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; n /= shape[i]) index[i] = n % shape[i];
  return str("at ", Shape(index));
}

std::string difference(const Tensor& got, const Array& want,
                       FunctionRef<bool(std::int64_t, double, double)> ok) {
  if (!got.defined()) return "undefined tensor";
  if (sizes_of(got.shape()) != want.shape)
    return str("expected shape ", Shape(want.shape), ", got ", got.shape());
  const Array values = array_of(got);
  const double *const gots = values.data.data(), *const wants = want.data.data();
  for (std::int64_t i = 0, n = want.size(); i < n; ++i) {
    const double g = gots[i], w = wants[i];
    if (std::isnan(g) && std::isnan(w)) continue;
    if (g == w && std::isinf(w)) continue;
    if (!ok(i, g, w)) {
      std::ostringstream out;
      out.precision(17);
      out << where_in(want.shape, i) << ": expected " << w << ", got " << g;
      return out.str();
    }
  }
  return "";
}

Tolerance tolerance(DType t) {
  switch (t) {
    case DType::float16: return {2e-3, 1e-3};
    case DType::bfloat16: return {1.6e-2, 8e-3};
    case DType::float32: return {3e-6, 2e-6};
    case DType::float64: return {1e-12, 1e-13};
    default: return {0, 0};
  }
}

std::string close(const Tensor& got, const Array& want, Tolerance t) {
  return difference(got, want, [&](std::int64_t, double g, double w) {
    return std::fabs(g - w) <= t.atol + t.rtol * std::fabs(w);
  });
}
std::string close(const Tensor& got, const Tensor& want, Tolerance t) {
  return close(got, array_of(want), t);
}

std::string exact(const Tensor& got, const Array& want) {
  const DType t = got.defined() ? got.dtype() : DType::float64;
  return difference(got, want, [t](std::int64_t, double g, double w) {
    if (is_floating(t)) return g == reference::round_to(w, format_of(t));
    if (t == DType::bool_) return g == static_cast<double>(w != 0);
    if (t == DType::uint8) w = std::fmod(std::fmod(std::trunc(w), 256) + 256, 256);
    return g == std::trunc(w);
  });
}
std::string exact(const Tensor& got, const Tensor& want) { return exact(got, array_of(want)); }

std::string within_ulps(const Tensor& got, const Array& want, double ulps) {
  return difference(got, want, [&](std::int64_t, double g, double w) {
    return std::fabs(g - w) <= ulps * reference::ulp(w, format_of(got.dtype()));
  });
}

std::string within_bound(const Tensor& got, const Array& want, const Array& bound) {
  return difference(got, want, [&](std::int64_t i, double g, double w) {
    return std::fabs(g - w) <= bound[i] + 0.501 * reference::ulp(w, format_of(got.dtype()));
  });
}

std::string same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined() ? "" : "one is undefined";
  if (a.shape() != b.shape() || a.dtype() != b.dtype())
    return str(a.dtype(), " ", a.shape(), " against ", b.dtype(), " ", b.shape());
  const Tensor x = a.to(Device("cpu")), y = b.to(Device("cpu"));
  const Sizes shape = sizes_of(x.shape()), sx = sizes_of(x.strides()), sy = sizes_of(y.strides());
  const std::size_t bytes = size_of(x.dtype());
  const auto address = [bytes](const Tensor& t, std::int64_t i) {
    return static_cast<const char*>(t.storage()->data()) +
           (t.storage_offset() + i) * static_cast<std::int64_t>(bytes);
  };
  // If both are contiguous, first compare all bytes with one memcmp. If they differ, or in other
  // layouts, compare element by element.
  const std::int64_t count = reference::count(shape);
  if (count == 0) return "";
  if (sx == reference::row_major(shape) && sy == sx &&
      std::memcmp(address(x, 0), address(y, 0), static_cast<std::size_t>(count) * bytes) == 0)
    return "";
  std::string found;
  std::int64_t n = 0;
  reference::for_each(shape, [&](const Sizes& i) {
    if (found.empty() && std::memcmp(address(x, reference::offset(i, sx)),
                                     address(y, reference::offset(i, sy)), bytes) != 0)
      found = "bits differ " + where_in(shape, n);
    ++n;
  });
  return found;
}

}  // namespace braid::test
