#include <braid/nn/training/checkpoint.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/io/crc.hpp>
#include <braid/core/internal/io/file.hpp>
#include <braid/core/internal/io/json.hpp>
#include <braid/core/safetensors.hpp>
#include <braid/core/version.hpp>
#include <braid/nn/internal/manifest.hpp>

#include "training/checkpoint_ranks.hpp"

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

/// A save of rank 0 that is written, but not yet a checkpoint. The destructor removes it.
class Unfinished {
 public:
  Unfinished(io::Folder root, std::int64_t number)
      : root_(std::move(root)),
        number_(number),
        name_(folder_name(number)),
        unfinished_(name_ + std::string(kUnfinished)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (committed_) return;
    try {
      remove_all(root_, unfinished_);
    } catch (const Error&) {  // the next save tries again
    }
  }
  [[nodiscard]] const io::Folder& root() const noexcept { return root_; }
  [[nodiscard]] std::int64_t number() const noexcept { return number_; }
  /// Writes the files; `files[i]` is called `names[i]`.
  void write(std::int64_t step, const std::vector<std::string>& names,
             const std::vector<StateDict>& files) {
    root_.make_folder(unfinished_);
    const io::Folder folder = root_.open(unfinished_);
    Manifest manifest{.version = version(), .step = step};
    for (std::size_t i = 0; i < files.size(); ++i)
      manifest.files.push_back(write_part(folder, names[i], files[i]));
    const std::string json = to_json(manifest);
    io::OutputFile file(folder, Manifest::kName);
    file.write(json.data(), json.size());
    file.commit();
  }
  void commit() {
    root_.rename(unfinished_, name_);
    committed_ = true;
    root_.flush();
  }

 private:
  io::Folder root_;
  std::int64_t number_;
  std::string name_, unfinished_;
  bool committed_ = false;
};

}  // namespace

Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;
Checkpoint::~Checkpoint() = default;

void Checkpoint::begin() {
  if (options_.keep < 1)
    throw ArgumentError(str("Checkpoint: expected keep >= 1, got ", options_.keep));
  detail::check_ranks(options_.ranks);
  add(detail::make_random_part(options_.ranks));
}

void Checkpoint::add(std::unique_ptr<detail::Part> part) {
  part->check_ranks(options_.ranks);
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

/// Returns the step, and throws if there is nothing to save.
std::int64_t Checkpoint::check_parts() const {
  std::int64_t step = last_ + 1;
  for (const Entry& e : parts_) {
    e.part->check();
    if (const std::int64_t steps = e.part->steps(); steps >= 0) step = steps;
  }
  return step;
}

void Checkpoint::save() {
  if (options_.folder.empty()) return;
  const NoGrad guard;
  const detail::Agreement all(options_.ranks);
  std::int64_t step = 0;
  all.confirm("save", detail::failure_of([&] { step = check_parts(); }));
  detail::check_same("save", "step", all.gather(step));
  // The states are made before the first is written: making one may be a call of all ranks, and
  // rank 0 may fail to write.
  std::vector<std::string> names;
  std::vector<StateDict> files;
  std::unique_ptr<Unfinished> save;
  all.confirm("save", detail::failure_of([&] {
                for (const Entry& e : parts_) {
                  names.push_back(e.file);
                  files.push_back(e.part->save());
                }
                if (!all.is_writer()) return;
                io::Folder root = io::Folder::make(options_.folder);
                remove_unfinished(root);
                const std::int64_t number = next_number(root, step);
                save = std::make_unique<Unfinished>(std::move(root), number);
                save->write(step, names, files);
              }));
  all.confirm("save", detail::failure_of([&] {
                if (save) save->commit();
              }));
  last_ = all.from_writer(save ? save->number() : 0);
  if (save) remove_older(save->root());
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

/// Reads and checks all files. Returns the states in the order of the parts. `sum` is the checksum
/// of the manifest, which has those of the files.
std::vector<StateDict> Checkpoint::read(const io::Folder& folder, std::uint32_t& sum) const {
  const Manifest manifest = read_manifest(io::InputFile(folder, Manifest::kName));
  const std::string json = to_json(manifest);
  sum = io::crc32c(json.data(), json.size(), 0);
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
  return fresh;
}

/// Loads the states. If one part does not fit, the parts that were already loaded are restored.
/// Returns the previous states.
std::vector<StateDict> Checkpoint::apply(const std::vector<StateDict>& fresh,
                                         const std::string& path) {
  const NoGrad guard;
  std::vector<StateDict> before(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    for (const auto& [name, tensor] : parts_[i].part->own()) before[i].set(name, tensor.clone());
  }
  std::size_t loaded = 0;
  try {
    for (; loaded < parts_.size(); ++loaded)
      parts_[loaded].part->load({fresh[loaded].data(), fresh[loaded].size()});
  } catch (const ArgumentError& e) {
    restore(before, loaded);
    throw ArgumentError(str("Checkpoint: expected ", path, '/', parts_[loaded].file,
                            " to be of what is loaded, got a state that does not fit: ", e.what()));
  } catch (...) {
    restore(before, loaded);
    throw;
  }
  return before;
}

/// Restores the first `parts` parts.
void Checkpoint::restore(const std::vector<StateDict>& before, std::size_t parts) {
  const NoGrad guard;
  for (std::size_t i = 0; i < parts; ++i)
    parts_[i].part->restore({before[i].data(), before[i].size()});
}

/// Loads the checkpoint on all ranks, or on none. Returns the reason if it is damaged on one of
/// them; throws for other errors.
std::exception_ptr Checkpoint::load_on_all(std::int64_t number) {
  const detail::Agreement all(options_.ranks);
  detail::check_same("load", "number", all.gather(number));
  std::string path;
  std::vector<StateDict> fresh, before;
  enum Result : std::int64_t { good, damaged, failed };
  std::int64_t result = good;
  std::uint32_t sum = 0;
  std::exception_ptr own;
  try {
    const io::Folder folder = io::Folder(options_.folder).open(folder_name(number));
    path = folder.path();
    fresh = read(folder, sum);
  } catch (const IoError& e) {
    own = std::current_exception();
    result = is_damage(e) ? damaged : failed;
  } catch (...) {
    own = std::current_exception();
    result = failed;
  }
  const std::int64_t mine[] = {result, sum};
  const std::vector<std::int64_t> gathered = all.gather(std::span<const std::int64_t>(mine));
  std::vector<std::int64_t> results, sums;
  for (std::size_t i = 0; i < gathered.size(); i += 2) {
    results.push_back(gathered[i]);
    sums.push_back(gathered[i + 1]);
  }
  if (!own) own = detail::failure_elsewhere("load", results);
  if (own) {
    const bool skip = std::find(results.begin(), results.end(), failed) == results.end();
    if (skip) return own;
    std::rethrow_exception(own);
  }
  detail::check_same_files(folder_name(number), sums);
  const std::exception_ptr failure = detail::failure_of([&] { before = apply(fresh, path); });
  try {
    all.confirm("load", failure);
  } catch (...) {
    restore(before, before.size());
    throw;
  }
  last_ = number;
  return {};
}

void Checkpoint::load(std::int64_t number) {
  if (options_.folder.empty())
    throw ArgumentError("Checkpoint: load: expected a folder to load from, got none");
  if (const std::exception_ptr damage = load_on_all(number)) std::rethrow_exception(damage);
}

bool Checkpoint::load_latest() {
  if (options_.folder.empty()) return false;
  const detail::Agreement all(options_.ranks);
  std::vector<std::int64_t> finished;  // of rank 0: all ranks load the same one
  all.confirm("load_latest", detail::failure_of([&] {
                if (all.is_writer()) finished = numbers();
              }));
  std::exception_ptr first;
  while (true) {
    const std::int64_t number = all.from_writer(finished.empty() ? -1 : finished.back());
    if (number < 0) break;
    const std::exception_ptr damage = load_on_all(number);
    if (!damage) return true;
    if (!first) first = damage;
    if (all.is_writer()) {
      warn(str("Checkpoint: a damaged checkpoint is passed over: ", exception_message(damage)));
      finished.pop_back();
    }
  }
  if (first) std::rethrow_exception(first);
  return false;
}

}  // namespace braid::training
