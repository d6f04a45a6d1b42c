#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/device.hpp>

namespace braid {

/// Joins its arguments by `<<` into one string. For messages; never on a hot path.
template <class... A> [[nodiscard]] std::string str(const A&... a) {
  std::ostringstream out;
  (out << ... << a);
  return std::move(out).str();
}

/// Root of every exception that Braid throws. One line first: `op: expected …, got …`; details
/// after it.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// True where trying again can help: less memory, more disk space. False for wrong calls.
  [[nodiscard]] virtual bool retryable() const noexcept { return false; }
};

/// A call that was wrong; it had no effect.
struct ArgumentError : Error {
  using Error::Error;
};
struct ShapeError : ArgumentError {
  using ArgumentError::ArgumentError;
};
struct DTypeError : ArgumentError {
  using ArgumentError::ArgumentError;
};
struct DeviceError : ArgumentError {
  using ArgumentError::ArgumentError;
};
struct IndexError : ArgumentError {
  using ArgumentError::ArgumentError;
};
struct LayoutError : ArgumentError {
  using ArgumentError::ArgumentError;
};

/// Graph already freed, a saved tensor changed, no path for a gradient.
struct AutogradError : Error {
  using Error::Error;
};

/// A device has no room for `requested` bytes, also after its cache was freed.
struct OutOfMemoryError : Error {
  OutOfMemoryError(Device device, std::size_t requested, std::size_t in_use, std::size_t cached,
                   std::size_t capacity, std::string_view why = {});
  [[nodiscard]] bool retryable() const noexcept override { return true; }
  Device device;
  std::size_t requested, in_use, cached, capacity;  ///< bytes; capacity 0 = unlimited
};

/// A call of the CUDA runtime failed; the device can still be used.
struct CudaError : Error {
  CudaError(const std::string& message, Device d, int c, std::string n)
      : Error(message), device(d), code(c), name(std::move(n)) {}
  Device device;
  int code;          ///< the cudaError_t
  std::string name;  ///< cudaErrorLaunchFailure, …
};
/// CUDA broke the device's context: nothing can be done on it again in this process, and every use
/// says so. Its tensors may still be destroyed.
struct DeviceLostError : CudaError {
  using CudaError::CudaError;
};

/// A file operation failed.
struct IoError : Error {
  IoError(std::string path, std::string operation, int error_number, std::int64_t offset = -1,
          std::string_view detail = {});
  [[nodiscard]] bool retryable() const noexcept override;  ///< no space left, quota
  std::string path, operation;
  int error_number;     ///< errno, 0 if the operating system reported none
  std::int64_t offset;  ///< byte offset in the file, -1 if there is none
 protected:
  IoError(std::string message, std::string path, std::string operation, std::int64_t offset);
};

/// A file is not what its format says: `path: field: expected …, got … (byte offset)`.
struct FormatError : IoError {
  FormatError(std::string path, std::int64_t offset, std::string field, std::string expected,
              std::string got);
  std::string field, expected, got;
};
/// A file asks for more than the documented limit of its format.
struct LimitError : FormatError {
  using FormatError::FormatError;
};

/// A collective failed. The communicator is not to be used again.
struct CommError : Error {
  using Error::Error;
};
/// A collective did not end within its deadline, and was aborted. It may work over a new
/// communicator.
struct CommTimeoutError : CommError {
  using CommError::CommError;
  [[nodiscard]] bool retryable() const noexcept override { return true; }
};
/// Communicator::abort was called before, or while the collective ran.
struct CommAbortedError : CommError {
  using CommError::CommError;
};

/// A loader's dataset or worker failed; the original is nested.
struct WorkerError : Error {
  using Error::Error;
};

/// One or more replicas failed, in their forward or in backward's part of it. what() =
/// `Caught <Type> in replica i on device d: <original>` of the lowest index; the originals are
/// kept.
struct ReplicaError : Error {
  struct Failure {
    std::size_t index;
    Device device;
    std::string type, message;
    std::exception_ptr error;
  };
  explicit ReplicaError(std::vector<Failure> failures);
  /// Of the replica with the lowest index.
  [[nodiscard]] std::size_t index() const noexcept { return failures.front().index; }
  [[nodiscard]] Device device() const noexcept { return failures.front().device; }
  /// The original exception of the lowest replica as a T, or nullptr if it is none. Points into the
  /// kept exception.
  template <class T> [[nodiscard]] const T* cause() const {
    try {
      std::rethrow_exception(failures.front().error);
    } catch (const T& e) {
      return &e;  // the exception object lives as long as the exception_ptr in `failures`
    } catch (...) {
      return nullptr;
    }
  }
  std::vector<Failure> failures;  ///< lowest index first; never empty
};

/// A broken invariant of the library: please report.
struct InternalError : Error {
  using Error::Error;
};

/// Throws Error(what) unless ok. For programs and tutorials.
inline void check(bool ok, std::string_view what) {
  if (!ok) throw Error(std::string(what));
}

/// The readable name of an exception's type (`braid::ShapeError` → `ShapeError`), `unknown` for
/// what is not a std::exception.
[[nodiscard]] std::string exception_type(const std::exception_ptr& e);
/// what() of any exception; `unknown exception` for what is not a std::exception.
[[nodiscard]] std::string exception_message(const std::exception_ptr& e);

/// Hands one line to the warning handler. The default handler writes `braid: warning: …` to stderr.
void warn(std::string_view message);
/// Replaces the handler; an empty function restores the default. Returns the old one. The handler
/// may be called from any thread.
std::function<void(std::string_view)> set_warning_handler(
    std::function<void(std::string_view)> handler);

}  // namespace braid
