#include "process/module_engine.hpp"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include <braid/core/error.hpp>

namespace braid::parallel::process {
namespace {

constexpr std::size_t kTextBytes = 2048;

/// A text that a module writes.
struct Text {
  std::array<char, kTextBytes> bytes{};
  [[nodiscard]] BraidEngineText out() { return {bytes.data(), bytes.size()}; }
  [[nodiscard]] std::string text() const {
    return {bytes.data(), ::strnlen(bytes.data(), bytes.size() - 1)};
  }
};

void write(BraidEngineText to, std::string_view text) {
  if (to.capacity == 0) return;
  const std::size_t n = std::min(text.size(), to.capacity - 1);
  std::memcpy(to.data, text.data(), n);
  to.data[n] = '\0';
}

std::int32_t store_set(void* context, const char* key, const void* value, std::size_t size,
                       BraidEngineText error) {
  try {
    static_cast<Store*>(context)->set(key, {static_cast<const char*>(value), size});
    return 0;
  } catch (const std::exception& e) {
    write(error, e.what());
    return 1;
  }
}

std::int32_t store_get(void* context, const char* key, double seconds, void* value,
                       std::size_t capacity, std::size_t* size, BraidEngineText error) {
  try {
    const std::string got = static_cast<Store*>(context)->wait(key, after(seconds));
    *size = got.size();
    if (got.size() > capacity) return write(error, "the value is too long"), 1;
    std::memcpy(value, got.data(), got.size());
    return 0;
  } catch (const std::exception& e) {
    write(error, e.what());
    return 1;
  }
}

class ModuleEngine final : public HostEngine {
 public:
  ModuleEngine(const BraidEngineTable& table, void* engine, std::shared_ptr<Store> store)
      : table_(table), engine_(engine), store_(std::move(store)) {}
  ~ModuleEngine() override { table_.close(engine_, orderly_ ? 1 : 0); }
  [[nodiscard]] int rank() const noexcept override { return table_.rank(engine_); }
  [[nodiscard]] int size() const noexcept override { return table_.size(engine_); }
  [[nodiscard]] BraidEngineLink link() const noexcept override {
    return static_cast<BraidEngineLink>(table_.link(engine_));
  }
  EngineResult run(const BraidEngineCall& call, const BraidEnginePoll& poll) override {
    Text text;
    const auto result =
        static_cast<BraidEngineResult>(table_.run(engine_, &call, &poll, text.out()));
    return {result, text.text()};
  }
  void* start(const BraidEngineCall& call, std::string& error) override {
    Text text;
    void* const request = table_.start(engine_, &call, text.out());
    if (request == nullptr) error = text.text();
    return request;
  }
  EngineResult test(void* request) override {
    Text text;
    const auto result = static_cast<BraidEngineResult>(table_.test(engine_, request, text.out()));
    return {result, result == kBraidPending ? std::string() : text.text()};
  }
  std::unique_ptr<HostEngine> split(const std::string& id, int color, int rank, int size,
                                    const BraidEnginePoll&, EngineResult& result) override {
    Text text;
    void* const part = table_.split(engine_, id.c_str(), color, rank, size, text.out());
    if (part != nullptr) return std::make_unique<ModuleEngine>(table_, part, store_);
    if (color >= 0) result = {kBraidFailed, text.text()};
    return nullptr;
  }
  void abort() noexcept override {
    orderly_ = false;
    table_.abort(engine_);
  }
  void leave_at_once() noexcept override { orderly_ = false; }
  [[nodiscard]] bool may_write() const noexcept override { return table_.may_write != 0; }

 private:
  const BraidEngineTable& table_;
  void* engine_;
  std::shared_ptr<Store> store_;  // lives as long as the engine
  std::atomic<bool> orderly_{true};
};

/// The folder of the library or program that contains this function.
std::string own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr)
    return ".";
  std::string path = info.dli_fname;
  if (char real[4096]; path.find('/') == std::string::npos) {  // a program found by PATH
    const ssize_t n = ::readlink("/proc/self/exe", real, sizeof real);
    if (n > 0) path.assign(real, static_cast<std::size_t>(n));
  }
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// The folders of BRAID_MODULE_PATH.
std::vector<std::string> named_folders() {
  std::vector<std::string> list;
  const char* const paths = std::getenv("BRAID_MODULE_PATH");
  std::string_view rest = paths == nullptr ? "" : paths;
  while (!rest.empty()) {
    const auto colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) list.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return list;
}

/// True if only this user and root can have written it.
bool trusted(const std::string& path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && (s.st_uid == 0 || s.st_uid == ::geteuid()) &&
         (s.st_mode & S_IWOTH) == 0;
}

/// The module's file; empty if there is none. `tried`: where it was looked for.
std::string find_module(const std::string& name, std::string& tried) {
  const std::vector<std::string> named = named_folders();
  std::vector<std::string> list = named;
  if (named.empty()) {
    const std::string own = own_folder();
    // Beside the library or program, where it is installed, and in the folder of the build.
    list = {own,
            own + "/braid",
            own + "/engines",
            own + "/../engines",
            own + "/../../engines",
            BRAID_MODULE_FOLDER};
  }
  for (const std::string& folder : list) {
    std::string file = folder + "/braid_" + name + ".so";
    tried += (tried.empty() ? "" : ", ") + folder;
    if (::access(file.c_str(), R_OK) == 0 && (!named.empty() || (trusted(folder) && trusted(file))))
      return file;
  }
  return {};
}

/// Debian's packages: of the module's library, and to build the module.
struct Packages {
  const char *library, *development;
};
Packages packages_of(const std::string& name) {
  if (name == "gloo") return {"libgloo0", "libgloo-dev"};
  if (name == "mpi_openmpi") return {"libopenmpi3", "libopenmpi-dev"};
  return {"libmpich12", "libmpich-dev"};
}

}  // namespace

bool has_module(const std::string& name) {
  std::string tried;
  return !find_module(name, tried).empty();
}

const BraidEngineTable& open_module(const std::string& name) {
  std::string tried;
  const std::string file = find_module(name, tried);
  if (file.empty())
    throw CommError(str("engine ", name, ": expected braid_", name, ".so in one of ", tried,
                        ", got none; it is built where Debian's ", packages_of(name).development,
                        " or its like is installed, and BRAID_MODULE_PATH names its folder"));
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    throw CommError(str("engine ", name, ": ", file,
                        " cannot be opened: ", why == nullptr ? "no reason given" : why,
                        "; Debian's ", packages_of(name).library, " or its like has its library"));
  }
  using Get = const BraidEngineTable* (*)();
  const auto get = reinterpret_cast<Get>(::dlsym(library, "braid_engine"));
  const BraidEngineTable* const table = get == nullptr ? nullptr : get();
  if (table == nullptr || table->version != kEngineVersion)
    throw CommError(str("engine ", name, ": expected ", file, " to have version ", kEngineVersion,
                        " of the engine's table, got ",
                        table == nullptr ? std::string("none") : std::to_string(table->version)));
  return *table;
}

std::string library_of(const BraidEngineTable& table) {
  Text text;
  table.library(text.out());
  return text.text();
}

std::unique_ptr<HostEngine> open_engine(const BraidEngineTable& table,
                                        const ModuleOptions& options) {
  Text text;
  const BraidEngineOpen open{
      options.rank,    options.size,    options.address.c_str(),
      options.timeout, options.largest, {options.store.get(), &store_set, &store_get}};
  void* const engine = table.open(&open, text.out());
  if (engine == nullptr) throw CommError(str("engine ", table.name, ": ", text.text()));
  return std::make_unique<ModuleEngine>(table, engine, options.store);
}

}  // namespace braid::parallel::process
