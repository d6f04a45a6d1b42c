#include <braid/nn/training/checkpoint.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <exception>
#include <optional>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/io/crc.hpp>
#include <braid/core/internal/io/file.hpp>
#include <braid/core/internal/io/json.hpp>
#include <braid/core/random.hpp>
#include <braid/core/safetensors.hpp>
#include <braid/core/version.hpp>
#include <braid/nn/internal/manifest.hpp>

namespace braid::training {
namespace {

constexpr std::string_view kPrefix = "step-", kUnfinished = ".tmp", kEnding = ".safetensors";
constexpr std::size_t kFewestDigits = 8, kMostDigits = 15;
constexpr std::int64_t kLargest = 999'999'999'999'999;

std::string folder_name(std::int64_t number) {
  char text[40];
  std::snprintf(text, sizeof text, "step-%08lld", static_cast<long long>(number));
  return text;
}

/// Parses the name of a finished checkpoint's folder; empty for any other name.
std::optional<std::int64_t> number_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return {};
  const std::string_view digits = name.substr(kPrefix.size());
  const std::size_t n = digits.size();
  if (n < kFewestDigits || n > kMostDigits || (n > kFewestDigits && digits.front() == '0'))
    return {};
  std::int64_t number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return {};
    number = number * 10 + (c - '0');
  }
  return number;
}

/// Returns whether this is the folder name of an unfinished save.
bool is_unfinished(std::string_view name) {
  return name.ends_with(kUnfinished) &&
         number_of(name.substr(0, name.size() - kUnfinished.size())).has_value();
}

/// Opens the folder of this name in `root`; empty if it does not exist or is a file, link or
/// anything else.
std::optional<io::Folder> folder_in(const io::Folder& root, const std::string& name) {
  try {
    return root.open(name);
  } catch (const IoError& e) {
    if (e.error_number == ENOTDIR || e.error_number == ELOOP || e.error_number == ENOENT) return {};
    throw;
  }
}

/// Returns the numbers of the folders with names of finished checkpoints, ascending.
std::vector<std::int64_t> numbers_in(const io::Folder& root) {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : root.names()) {
    if (const auto number = number_of(name); number && folder_in(root, name))
      numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

bool has_manifest(const io::Folder& root, std::int64_t number) {
  const auto step = folder_in(root, folder_name(number));
  if (!step) return false;
  const std::vector<std::string> names = step->names();
  return std::binary_search(names.begin(), names.end(), std::string(Manifest::kName));
}

/// Returns whether a save may have written this file: the manifest, a part, or a temporary file.
bool is_own(std::string_view name) {
  return name == Manifest::kName || name.ends_with(kEnding) ||
         (name.starts_with(".braid-") && name.ends_with(kUnfinished));
}

/// Removes the files of a checkpoint and its folder. The manifest goes first: without it the rest
/// is no longer a checkpoint, even if the removal is interrupted. Throws IoError, also if a foreign
/// file remains in the folder.
void remove_all(const io::Folder& root, const std::string& name) {
  const auto folder = folder_in(root, name);
  if (!folder) return;
  std::vector<std::string> names = folder->names();
  const auto foreign =
      std::stable_partition(names.begin(), names.end(), [](const auto& n) { return is_own(n); });
  std::stable_partition(names.begin(), foreign,
                        [](const std::string& n) { return n == Manifest::kName; });
  for (auto n = names.begin(); n != foreign; ++n) folder->remove(*n);
  if (foreign != names.end())
    throw IoError(folder->path(), "remove folder", ENOTEMPTY, -1,
                  "it holds " + io::quoted(*foreign) + ", which is none of a checkpoint's files");
  root.remove_folder(name);
}

/// The state of the random number generator; always one of the parts.
class RandomPart final : public detail::Part {
 public:
  [[nodiscard]] std::string_view role() const noexcept override { return "random"; }
  [[nodiscard]] StateDict save() const override {
    const RandomState now = random_state();
    Tensor t = make_tensor({2}, DType::int64, Device());
    t.data<std::int64_t>()[0] = std::bit_cast<std::int64_t>(now.seed);
    t.data<std::int64_t>()[1] = std::bit_cast<std::int64_t>(now.stream);
    return StateDict{{"seed_and_stream", t}};
  }
  void load(std::span<const StateDict::value_type> dict) override {
    if (dict.size() != 1 || dict[0].first != "seed_and_stream" ||
        dict[0].second.dtype() != DType::int64 || dict[0].second.numel() != 2)
      throw ArgumentError(
          "Checkpoint: expected the state of the random numbers to be two int64 called "
          "seed_and_stream, got something else");
    const auto* values = dict[0].second.data<std::int64_t>();
    set_random_state(
        {std::bit_cast<std::uint64_t>(values[0]), std::bit_cast<std::uint64_t>(values[1])});
  }
};

/// Returns the number of the next save: its step, or one more than the newest in the folder if that
/// is not smaller. Skips every number whose name is taken, by a file of any kind.
std::int64_t next_number(const io::Folder& root, std::int64_t step) {
  const std::vector<std::int64_t> there = numbers_in(root);
  std::int64_t number = there.empty() ? step : std::max(step, there.back() + 1);
  const std::vector<std::string> names = root.names();
  const auto taken = [&](const std::string& name) {
    return std::binary_search(names.begin(), names.end(), name);
  };
  while (number <= kLargest &&
         (taken(folder_name(number)) || taken(folder_name(number) + std::string(kUnfinished))))
    ++number;
  if (number > kLargest)
    throw ArgumentError(
        str("Checkpoint: save: expected a number of at most ", kLargest, ", got ", number,
            ", which follows ",
            there.empty() ? str("step ", step) : str(root.path(), '/', folder_name(there.back())),
            ": remove that, or save to another folder"));
  return number;
}

/// Returns whether the error means that the checkpoint's files are missing or changed. A disk that
/// cannot be read does not count as damage: falling back to an older checkpoint would hide the
/// problem.
bool is_damage(const IoError& e) {
  if (dynamic_cast<const FormatError*>(&e) != nullptr) return true;
  switch (e.error_number) {
    case 0:        // not a regular file, or shorter than it was
    case ENOENT:   // missing
    case ELOOP:    // a link
    case ENOTDIR:  // a file in place of the folder
    case ENXIO:    // a socket, or a device that is not there
    case ENODEV: return true;
    default: return false;
  }
}

/// Throws FormatError unless the file has the size and checksum in the manifest.
void check_file(const io::InputFile& file, const ManifestFile& said) {
  if (file.size() != static_cast<std::uint64_t>(said.bytes))
    throw FormatError(file.path(), 0, "size", str(said.bytes, " bytes, as the manifest says"),
                      std::to_string(file.size()));
  std::vector<char> buffer(std::size_t{1} << 18);
  std::uint32_t sum = 0;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::uint64_t part = std::min<std::uint64_t>(buffer.size(), file.size() - at);
    file.read(buffer.data(), part, at);
    sum = io::crc32c(buffer.data(), static_cast<std::size_t>(part), sum);
    at += part;
  }
  if (sum != said.crc32c)
    throw FormatError(file.path(), 0, "crc32c", str(said.crc32c, ", as the manifest says"),
                      std::to_string(sum));
}

ManifestFile write_part(const io::Folder& folder, const std::string& name, const StateDict& dict) {
  std::vector<::braid::detail::NamedTensor> list;
  for (const auto& [key, tensor] : dict) list.push_back({key, &tensor});
  io::OutputFile file(folder, name);
  file.keep_checksum();
  ::braid::detail::write_safetensors(file, list, {});
  file.commit();
  return {name, static_cast<std::int64_t>(file.size()), file.crc32c()};
}

}  // namespace

void detail::check_rates(const Tensor* rates, std::int64_t groups) {
  const bool good =
      rates != nullptr && rates->dtype() == DType::float64 && rates->numel() == groups;
  if (!good)
    throw ArgumentError(str("Checkpoint: expected the optimizer's state to hold lr, ", groups,
                            " of float64, got ", rates == nullptr ? "none" : "another tensor"));
  for (std::int64_t i = 0; i < groups; ++i) {
    const double lr = rates->data<double>()[i];
    if (!(lr >= 0) || std::isinf(lr))
      throw ArgumentError(
          str("Checkpoint: expected learning rates >= 0 in the optimizer's state, got ", lr));
  }
}

void detail::nothing_to_save(const char* signature) {
  throw ArgumentError(str("Checkpoint: expected something to save in ",
                          ::braid::detail::short_type_name(signature),
                          ", got a tree without tensors"));
}

Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

void Checkpoint::begin() {
  if (options_.keep < 1)
    throw ArgumentError(str("Checkpoint: expected keep >= 1, got ", options_.keep));
  add(std::make_unique<RandomPart>());
}

void Checkpoint::add(std::unique_ptr<detail::Part> part) {
  const std::string_view role = part->role();
  const auto same = std::count_if(parts_.begin(), parts_.end(),
                                  [&](const Entry& e) { return e.part->role() == role; });
  parts_.push_back(
      {same == 0 ? str(role, kEnding) : str(role, '-', same + 1, kEnding), std::move(part)});
}

std::vector<std::int64_t> Checkpoint::numbers() const {
  if (options_.folder.empty()) return {};
  try {
    const io::Folder root(options_.folder);
    std::vector<std::int64_t> numbers = numbers_in(root);
    std::erase_if(numbers, [&](std::int64_t n) { return !has_manifest(root, n); });
    return numbers;
  } catch (const IoError& e) {
    if (e.error_number == ENOENT) return {};
    throw;
  }
}

void Checkpoint::save() {
  if (options_.folder.empty()) return;
  const NoGrad guard;
  std::int64_t step = last_ + 1;
  for (const Entry& e : parts_) {
    e.part->check();
    if (const std::int64_t steps = e.part->steps(); steps >= 0) step = steps;
  }
  const io::Folder root = io::Folder::make(options_.folder);
  remove_unfinished(root);
  const std::int64_t number = next_number(root, step);
  const std::string name = folder_name(number), unfinished = name + std::string(kUnfinished);
  try {
    root.make_folder(unfinished);
    const io::Folder folder = root.open(unfinished);
    Manifest manifest{.version = version(), .step = step};
    for (const Entry& e : parts_)
      manifest.files.push_back(write_part(folder, e.file, e.part->save()));
    const std::string json = to_json(manifest);
    io::OutputFile file(folder, Manifest::kName);
    file.write(json.data(), json.size());
    file.commit();
    root.rename(unfinished, name);
  } catch (...) {
    try {
      remove_all(root, unfinished);
    } catch (const Error&) {  // the next save tries again
    }
    throw;
  }
  root.flush();
  last_ = number;
  remove_older(root);
}

/// Warns once for each text, so that a file that stays in the folder does not cause a warning at
/// every save.
void Checkpoint::warn_once(std::string text) {
  if (std::find(warned_.begin(), warned_.end(), text) != warned_.end()) return;
  warn(text);
  warned_.push_back(std::move(text));
}

/// Removes the remains of interrupted saves, and nothing else.
void Checkpoint::remove_unfinished(const io::Folder& root) {
  for (const std::string& name : root.names()) {
    if (!name.starts_with(kPrefix)) continue;
    const bool unfinished = is_unfinished(name);
    if ((!unfinished && !number_of(name)) || !folder_in(root, name)) {
      warn_once(str("Checkpoint: left alone: ", root.path(), '/', name,
                    " is called like a checkpoint, and is none"));
    } else if (unfinished) {
      try {
        remove_all(root, name);
      } catch (const IoError& e) {
        warn_once(str("Checkpoint: an interrupted save could not be removed: ", e.what()));
      }
    }
  }
}

/// Called when the new checkpoint is safely on disk: errors become warnings.
void Checkpoint::remove_older(const io::Folder& root) {
  const auto failed = [this](const IoError& e) {
    warn_once(str("Checkpoint: an older checkpoint could not be removed: ", e.what()));
  };
  try {
    const std::vector<std::int64_t> numbers = numbers_in(root);
    int kept = 0;
    for (auto n = numbers.rbegin(); n != numbers.rend(); ++n) {
      try {
        if (kept < options_.keep && has_manifest(root, *n)) ++kept;
        else remove_all(root, folder_name(*n));
      } catch (const IoError& e) {
        failed(e);
      }
    }
  } catch (const IoError& e) {
    failed(e);
  }
}

/// Reads and checks everything, then loads it. If one part does not fit, the parts that were
/// already loaded are restored.
void Checkpoint::load_from(const io::Folder& folder) {
  const Manifest manifest = read_manifest(io::InputFile(folder, Manifest::kName));
  const auto described = [](const auto& list, const auto& name) {
    std::string text;
    for (const auto& item : list) text += (text.empty() ? "" : ", ") + name(item);
    return text;
  };
  const auto is_in = [&](const Entry& e) {
    return std::any_of(manifest.files.begin(), manifest.files.end(),
                       [&](const ManifestFile& f) { return f.name == e.file; });
  };
  if (manifest.files.size() != parts_.size() || !std::all_of(parts_.begin(), parts_.end(), is_in))
    throw ArgumentError(
        str("Checkpoint: expected ", described(parts_, [](const Entry& e) { return e.file; }),
            ", got ", folder.path(), " with ",
            described(manifest.files, [](const ManifestFile& f) { return f.name; })));
  std::vector<StateDict> fresh(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto said = std::find_if(manifest.files.begin(), manifest.files.end(),
                                   [&](const ManifestFile& f) { return f.name == parts_[i].file; });
    const io::InputFile file(folder, said->name);
    check_file(file, *said);
    fresh[i] = ::braid::detail::read_safetensors(file, {}).tensors;
  }
  const NoGrad guard;
  std::vector<StateDict> before(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (const auto& [name, tensor] : parts_[i].part->save()) before[i].set(name, tensor.clone());
  }
  std::size_t loaded = 0;
  const auto load = [&](const std::vector<StateDict>& dicts, std::size_t i) {
    parts_[i].part->load({dicts[i].data(), dicts[i].size()});
  };
  try {
    for (; loaded < parts_.size(); ++loaded) load(fresh, loaded);
  } catch (const ArgumentError& e) {
    for (std::size_t i = 0; i < loaded; ++i) load(before, i);
    throw ArgumentError(str("Checkpoint: expected ", folder.path(), '/', parts_[loaded].file,
                            " to be of what is loaded, got a state that does not fit: ", e.what()));
  } catch (...) {
    for (std::size_t i = 0; i < loaded; ++i) load(before, i);
    throw;
  }
}

void Checkpoint::load(std::int64_t number) {
  if (options_.folder.empty())
    throw ArgumentError("Checkpoint: load: expected a folder to load from, got none");
  load_from(io::Folder(options_.folder).open(folder_name(number)));
  last_ = number;
}

bool Checkpoint::load_latest() {
  const std::vector<std::int64_t> finished = numbers();
  std::exception_ptr first;
  for (auto number = finished.rbegin(); number != finished.rend(); ++number) {
    try {
      load(*number);
      return true;
    } catch (const IoError& e) {
      if (!is_damage(e)) throw;
      if (!first) first = std::current_exception();
      warn(str("Checkpoint: a damaged checkpoint is passed over: ", e.what()));
    }
  }
  if (first) std::rethrow_exception(first);
  return false;
}

}  // namespace braid::training
