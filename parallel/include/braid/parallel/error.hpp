#pragma once
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include <braid/core/device.hpp>
#include <braid/core/error.hpp>

namespace braid {

/// One or more replicas failed, in their forward or in their part of the backward. what() begins
/// with `Caught <Type> in replica i on device d: <original>` for the lowest index i. The original
/// exceptions are kept.
///
///     try {
///       parallel::data_parallel(model, x);
///     } catch (const ReplicaError& e) {
///       print(e.what());
///       if (e.cause<OutOfMemoryError>() != nullptr) print("a smaller batch may fit ", e.device());
///     }
struct ReplicaError : Error {
  struct Failure {
    std::size_t index;
    Device device;
    std::string type, message;
    std::exception_ptr error;
  };
  explicit ReplicaError(std::vector<Failure> failures);
  /// Index of the failed replica; of several, the lowest.
  [[nodiscard]] std::size_t index() const noexcept { return failures.front().index; }
  [[nodiscard]] Device device() const noexcept { return failures.front().device; }
  /// Returns the original exception of that replica as a T, or nullptr if it has another type.
  /// Points into the exception kept in `failures`.
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

}  // namespace braid
