#include <braid/core/safetensors.hpp>

#include <algorithm>
#include <numeric>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/backend.hpp>
#include <braid/core/internal/io/checked.hpp>
#include <braid/core/internal/io/file.hpp>

#include <braid/core/internal/io/json.hpp>
#include "io/safetensors_header.hpp"

namespace braid {
namespace {

bool is_bool(unsigned char byte) { return byte <= 1; }

/// Reads the entry's data into a tensor on `device`, whose memory the host can access.
Tensor read_entry(const io::Source& file, const io::SafetensorsEntry& e, Device device) {
  Tensor t = make_tensor(e.shape, e.dtype, device);
  const std::uint64_t bytes = e.end - e.begin;
  if (bytes == 0) return t;
  auto* data = static_cast<unsigned char*>(t.impl()->data());
  file.read(data, bytes, e.begin);
  if (e.dtype == DType::bool_) {
    const auto* wrong = std::find_if_not(data, data + bytes, is_bool);
    if (wrong != data + bytes)
      throw FormatError(file.path(), static_cast<std::int64_t>(e.begin) + (wrong - data),
                        "data of " + io::quoted(e.name), "0 or 1 for BOOL", std::to_string(*wrong));
  }
  return t;
}

Safetensors load(const io::Source& file, const SafetensorsOptions& options) {
  const bool direct =
      device_context(options.device).host_memory && options.device.type() == DeviceType::cpu;
  io::SafetensorsHeader header = io::read_safetensors_header(file, options.max_header);
  std::vector<StateDict::value_type> tensors;
  tensors.reserve(header.entries.size());
  for (io::SafetensorsEntry& e : header.entries) {
    Tensor t = read_entry(file, e, direct ? options.device : Device("cpu"));
    if (!direct) t = t.to(options.device);
    tensors.emplace_back(std::move(e.name), std::move(t));
  }
  return {StateDict(std::move(tensors)), std::move(header.metadata)};
}

void check_names(std::span<const detail::NamedTensor> tensors) {
  if (tensors.size() > io::kMaxTensors)
    throw ArgumentError(str("save_safetensors: expected at most ", io::kMaxTensors,
                            " tensors, got ", tensors.size()));
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const detail::NamedTensor& t : tensors) {
    if (t.name.size() > io::kMaxNameBytes || !io::is_good_name(t.name) ||
        t.name == io::kMetadataKey) {
      throw ArgumentError(str("save_safetensors: expected names of at most ", io::kMaxNameBytes,
                              " bytes of UTF-8 without control characters, none of them ",
                              io::kMetadataKey, ", got ", io::quoted(t.name)));
    }
    if (!t.tensor->defined())
      throw ArgumentError(
          str("save_safetensors: expected defined tensors, got an undefined one called ",
              io::quoted(t.name)));
    names.push_back(t.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw ArgumentError(
        str("save_safetensors: expected each name once, got a second ", io::quoted(*twice)));
}

void check_metadata(std::span<const std::pair<std::string, std::string>> metadata) {
  std::size_t bytes = 0;
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : metadata) {
    if (key.size() > io::kMaxNameBytes || !io::is_utf8(key) || !io::is_utf8(value)) {
      throw ArgumentError(str("save_safetensors: expected metadata of UTF-8, keys of at most ",
                              io::kMaxNameBytes, " bytes, got the pair ", io::quoted(key), ": ",
                              io::quoted(value)));
    }
    bytes += key.size() + value.size();
    keys.push_back(key);
  }
  if (bytes > io::kMaxMetadataBytes)
    throw ArgumentError(str("save_safetensors: expected at most ", io::kMaxMetadataBytes,
                            " bytes of metadata, got ", bytes));
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end())
    throw ArgumentError(str("save_safetensors: expected each metadata key once, got a second ",
                            io::quoted(*twice)));
}

/// The header, and the order of the tensors in the file: widest elements first, so that each tensor
/// is aligned to its element size.
struct Plan {
  std::string header;  // begins with its length
  std::vector<std::size_t> order;
};

Plan plan(std::span<const detail::NamedTensor> tensors,
          std::span<const std::pair<std::string, std::string>> metadata) {
  Plan p;
  p.order.resize(tensors.size());
  std::iota(p.order.begin(), p.order.end(), std::size_t{0});
  std::stable_sort(p.order.begin(), p.order.end(), [&](std::size_t a, std::size_t b) {
    return size_of(tensors[a].tensor->dtype()) > size_of(tensors[b].tensor->dtype());
  });
  std::vector<std::uint64_t> begin(tensors.size());
  std::uint64_t at = 0;
  const auto bytes_of = [&](std::size_t i) {
    return static_cast<std::uint64_t>(tensors[i].tensor->numel()) *
           size_of(tensors[i].tensor->dtype());
  };
  for (const std::size_t i : p.order) {
    begin[i] = at;
    if (!io::checked_add(at, bytes_of(i), at) || at > INT64_MAX)
      throw ArgumentError("save_safetensors: expected at most 2^63 - 1 bytes, got more");
  }

  std::string json = "{";
  if (!metadata.empty()) {
    io::append_json_string(json, io::kMetadataKey);
    json += ":{";
    for (const auto& [key, value] : metadata) {
      io::append_json_string(json, key);
      json += ':';
      io::append_json_string(json, value);
      json += ',';
    }
    json.back() = '}';
    json += ',';
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = *tensors[i].tensor;
    io::append_json_string(json, tensors[i].name);
    json.append(R"(:{"dtype":")").append(io::safetensors_name(t.dtype())).append(R"(","shape":[)");
    for (int d = 0; d < t.dim(); ++d)
      json.append(d ? "," : "").append(std::to_string(t.shape()[d]));
    json.append(R"(],"data_offsets":[)")
        .append(std::to_string(begin[i]))
        .append(",")
        .append(std::to_string(begin[i] + bytes_of(i)))
        .append("]},");
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  while (json.size() % 8 != 0) json += ' ';
  if (json.size() > io::kDefaultMaxHeader)
    throw ArgumentError(
        str("save_safetensors: expected names and metadata that make a header of at most ",
            io::kDefaultMaxHeader, " bytes, got ", json.size()));
  const std::uint64_t length = json.size();
  p.header.assign(reinterpret_cast<const char*>(&length), sizeof length);
  p.header += json;
  return p;
}

void write_tensor(io::OutputFile& file, const Tensor& tensor) {
  const Tensor host = tensor.device().type() == DeviceType::cpu
                          ? tensor.contiguous()
                          : tensor.to(Device("cpu")).contiguous();
  const std::uint64_t bytes = static_cast<std::uint64_t>(host.numel()) * size_of(host.dtype());
  if (bytes == 0) return;
  const auto* data = static_cast<const unsigned char*>(host.impl()->data());
  // memory from outside Braid may hold other bytes for true; the format allows only 0 and 1
  if (host.dtype() == DType::bool_ && !std::all_of(data, data + bytes, is_bool)) {
    std::vector<unsigned char> clean(data, data + bytes);
    for (unsigned char& byte : clean) byte = byte != 0;
    file.write(clean.data(), bytes);
    return;
  }
  file.write(data, bytes);
}

}  // namespace

Safetensors load_safetensors(const std::string& path, const SafetensorsOptions& options) {
  return load(io::InputFile(path), options);
}

Safetensors load_safetensors(std::span<const std::byte> bytes, const SafetensorsOptions& options,
                             const std::string& name) {
  return load(io::MemorySource(bytes, name), options);
}

namespace detail {

namespace {

Plan checked_plan(std::span<const NamedTensor> tensors,
                  std::span<const std::pair<std::string, std::string>> metadata) {
  check_names(tensors);
  check_metadata(metadata);
  return plan(tensors, metadata);
}

void write(io::OutputFile& file, const Plan& p, std::span<const NamedTensor> tensors) {
  const NoGrad guard;
  file.write(p.header.data(), p.header.size());
  for (const std::size_t i : p.order) write_tensor(file, *tensors[i].tensor);
}

}  // namespace

void TensorsToSave::add(std::string_view name, const Tensor& tensor) {
  list_.push_back({name, &tensor});
}
void TensorsToSave::save(const std::string& path,
                         const std::vector<std::pair<std::string, std::string>>& metadata) const {
  const Plan p = checked_plan(list_, metadata);
  io::OutputFile file(path);
  write(file, p, list_);
  file.commit();
}

void write_safetensors(io::OutputFile& file, std::span<const NamedTensor> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata) {
  write(file, checked_plan(tensors, metadata), tensors);
}

Safetensors read_safetensors(const io::Source& file, const SafetensorsOptions& options) {
  return load(file, options);
}

}  // namespace detail

void save_safetensors(const std::string& path,
                      std::initializer_list<std::pair<std::string_view, Tensor>> tensors,
                      const std::vector<std::pair<std::string, std::string>>& metadata) {
  detail::TensorsToSave list;
  for (const auto& [name, tensor] : tensors) list.add(name, tensor);
  list.save(path, metadata);
}

}  // namespace braid
