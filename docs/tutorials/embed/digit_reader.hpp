#pragma once
// The interface of a library that reads digits. Nothing in it says that Braid is inside.
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace digits {

/// What this library throws, and nothing else but std::bad_alloc.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Reading {
  int digit = 0;
  double probability = 0;
};

/// Reads images of one digit. It is a value like others: a program may have several, with
/// different models. Any number of threads may call read() of one reader at once.
class Reader {
 public:
  /// Throws Error for a file that is missing, damaged, or no model of this reader.
  explicit Reader(const std::string& model_file);
  Reader(Reader&&) noexcept;
  Reader& operator=(Reader&&) noexcept;
  ~Reader();

  /// Reads 28 * 28 grey pixels, row by row: white on black. Throws Error for another number.
  [[nodiscard]] Reading read(std::span<const std::uint8_t> pixels) const;
  /// Reads a PNG or JPEG file of that size.
  [[nodiscard]] Reading read_file(const std::string& file) const;

 private:
  struct Model;
  std::unique_ptr<const Model> model_;
};

}  // namespace digits
