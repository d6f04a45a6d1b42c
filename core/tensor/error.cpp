#include <braid/core/error.hpp>

#include <cxxabi.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <typeinfo>

namespace braid {
namespace {

std::string memory_text(Device device, std::size_t requested, std::size_t in_use,
                        std::size_t cached, std::size_t capacity, std::string_view why) {
  std::string text = str(device, ": allocate: expected ", requested, " free bytes, got ", in_use,
                         " in use, ", cached, " cached, capacity ");
  text += capacity ? str(capacity) : str("unlimited");
  if (!why.empty()) text += str(" (", why, ")");
  return text;
}

std::string io_text(const std::string& path, const std::string& operation, int error_number,
                    std::int64_t offset, std::string_view detail) {
  std::string text = str(operation, ": ", path);
  if (offset >= 0) text += str(" at byte ", offset);
  if (error_number) text += str(": ", std::strerror(error_number));
  if (!detail.empty()) text += str(": ", detail);
  return text;
}

std::mutex warning_mutex;
std::function<void(std::string_view)>& warning_handler() {
  // leaked, because threads may warn while the process exits
  static auto* handler = new std::function<void(std::string_view)>;
  return *handler;
}

}  // namespace

void Error::set_module_path(const std::string& path) {
  if (path_) return;
  located_ = std::make_shared<const std::string>(str(path, ": ", std::runtime_error::what()));
  path_ = &path;
}

OutOfMemoryError::OutOfMemoryError(Device d, std::size_t r, std::size_t u, std::size_t c,
                                   std::size_t k, std::string_view why)
    : Error(memory_text(d, r, u, c, k, why)),
      device(d),
      requested(r),
      in_use(u),
      cached(c),
      capacity(k) {}

IoError::IoError(std::string p, std::string o, int e, std::int64_t at, std::string_view detail)
    : Error(io_text(p, o, e, at, detail)),
      path(std::move(p)),
      operation(std::move(o)),
      error_number(e),
      offset(at) {}

IoError::IoError(std::string message, std::string p, std::string o, std::int64_t at)
    : Error(std::move(message)),
      path(std::move(p)),
      operation(std::move(o)),
      error_number(0),
      offset(at) {}

bool IoError::retryable() const noexcept {
  return error_number == ENOSPC || error_number == EDQUOT;
}

FormatError::FormatError(std::string p, std::int64_t at, std::string f, std::string e,
                         std::string g)
    : IoError(str(p, ": ", f, ": expected ", e, ", got ", g, " (byte ", at, ")"), p, "parse", at),
      field(std::move(f)),
      expected(std::move(e)),
      got(std::move(g)) {}

std::string detail::type_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : mangled;
}

std::string exception_type(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    std::string text = detail::type_name(typeid(x).name());
    // the type in which std::throw_with_nested wraps an exception
    constexpr std::string_view kNested = "std::_Nested_exception<";
    if (text.starts_with(kNested) && text.ends_with('>'))
      text = text.substr(kNested.size(), text.size() - kNested.size() - 1);
    if (text.starts_with("braid::")) text.erase(0, 7);
    return text;
  } catch (...) {
    return "unknown";
  }
}

std::string exception_message(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  } catch (...) {
    return "unknown exception";
  }
}

void warn(std::string_view message) {
  std::function<void(std::string_view)> handler;
  {
    const std::lock_guard lock(warning_mutex);
    handler = warning_handler();
  }
  if (handler) return handler(message);  // not under the lock: it may warn or replace itself
  const std::string line = str("braid: warning: ", message, '\n');
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::function<void(std::string_view)> set_warning_handler(
    std::function<void(std::string_view)> handler) {
  const std::lock_guard lock(warning_mutex);
  std::swap(handler, warning_handler());
  return handler;
}

}  // namespace braid
