#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <braid/core/device.hpp>

namespace braid {

/// Concatenates its arguments with `<<`. For messages, not for hot paths.
template <class... A> [[nodiscard]] std::string str(const A&... a) {
  std::ostringstream out;
  (out << ... << a);
  return std::move(out).str();
}

/// Base of every exception that Braid throws. The first line of a message is
/// `op: expected …, got …`; details follow.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// True if trying again can succeed: with less memory, with more disk space. False for wrong
  /// calls.
  [[nodiscard]] virtual bool retryable() const noexcept { return false; }

  [[nodiscard]] const char* what() const noexcept override {
    return located_ ? located_->c_str() : std::runtime_error::what();
  }
  /// The path of the layer that threw: `layer2.0.conv1`. Empty if no layer threw, or if its path is
  /// not known (see nn::Module).
  [[nodiscard]] std::string_view module_path() const noexcept {
    return path_ ? std::string_view(*path_) : "";
  }
  /// Puts a layer's path before the message. Does nothing if there is one: the innermost layer is
  /// named. `path` must live as long as the process. For the library.
  void set_module_path(const std::string& path);

 private:
  const std::string* path_ = nullptr;
  std::shared_ptr<const std::string> located_;  // the message with the path
};

/// Invalid arguments. The call had no effect.
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

/// The graph was freed, a saved tensor was changed in place, or an output does not depend on an
/// input.
struct AutogradError : Error {
  using Error::Error;
};

/// A step cannot be recorded for replays (training::captured_step): it reads a result on the host,
/// uses another device, or calls a function that must run again in each step. The recording has
/// ended, and nothing was changed.
struct CaptureError : Error {
  using Error::Error;
};

/// A device cannot allocate `requested` bytes, even after its cache was freed.
struct OutOfMemoryError : Error {
  OutOfMemoryError(Device device, std::size_t requested, std::size_t in_use, std::size_t cached,
                   std::size_t capacity, std::string_view why = {});
  [[nodiscard]] bool retryable() const noexcept override { return true; }
  Device device;
  std::size_t requested, in_use, cached, capacity;  ///< bytes; capacity 0 = unlimited
};

/// A call of the CUDA runtime failed. The device can still be used.
struct CudaError : Error {
  CudaError(const std::string& message, Device d, int c, std::string n)
      : Error(message), device(d), code(c), name(std::move(n)) {}
  Device device;
  int code;          ///< the cudaError_t
  std::string name;  ///< cudaErrorLaunchFailure, …
};
/// The device's CUDA context is broken: every later use of the device in this process throws this.
/// Its tensors can still be destroyed.
struct DeviceLostError : CudaError {
  using CudaError::CudaError;
};

/// A file operation failed.
struct IoError : Error {
  IoError(std::string path, std::string operation, int error_number, std::int64_t offset = -1,
          std::string_view detail = {});
  [[nodiscard]] bool retryable() const noexcept override;  ///< true for ENOSPC and EDQUOT
  std::string path, operation;
  int error_number;     ///< errno, 0 if the operating system reported none
  std::int64_t offset;  ///< byte offset in the file, -1 if there is none
 protected:
  IoError(std::string message, std::string path, std::string operation, std::int64_t offset);
};

/// The content of a file violates its format: `path: field: expected …, got … (byte offset)`.
struct FormatError : IoError {
  FormatError(std::string path, std::int64_t offset, std::string field, std::string expected,
              std::string got);
  std::string field, expected, got;
};
/// A file exceeds a documented limit of its format.
struct LimitError : FormatError {
  using FormatError::FormatError;
};

/// A collective failed. The communicator must not be used again.
struct CommError : Error {
  using Error::Error;
};
/// A collective did not finish before its deadline and was aborted. It may succeed with a new
/// communicator.
struct CommTimeoutError : CommError {
  using CommError::CommError;
  [[nodiscard]] bool retryable() const noexcept override { return true; }
};
/// Communicator::abort was called, before or during the collective.
struct CommAbortedError : CommError {
  using CommError::CommError;
};

/// A data loader's dataset or worker failed. The original exception is nested.
struct WorkerError : Error {
  using Error::Error;
};

/// An invariant of the library is broken: please report it.
struct InternalError : Error {
  using Error::Error;
};

/// Throws Error(what) unless ok is true. For programs and tutorials.
inline void check(bool ok, std::string_view what) {
  if (!ok) throw Error(std::string(what));
}

namespace detail {
/// The readable name of a type from std::type_info::name().
[[nodiscard]] std::string type_name(const char* mangled);
}  // namespace detail

/// The type of an exception as readable text (`ShapeError` for braid::ShapeError); `unknown` if it
/// is not a std::exception.
[[nodiscard]] std::string exception_type(const std::exception_ptr& e);
/// what() of an exception; `unknown exception` if it is not a std::exception.
[[nodiscard]] std::string exception_message(const std::exception_ptr& e);

/// Passes a line to the warning handler. The default handler writes `braid: warning: …` to stderr.
void warn(std::string_view message);
/// Replaces the warning handler and returns the old one; an empty function restores the default.
/// The handler may be called from any thread.
std::function<void(std::string_view)> set_warning_handler(
    std::function<void(std::string_view)> handler);

}  // namespace braid
