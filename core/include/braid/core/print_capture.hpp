#pragma once
#include <string>

namespace braid {

/// While it exists, the lines that the calling thread prints (braid::print) are appended to `text`
/// instead of written. If captures are nested, the innermost is used.
class PrintCapture {
 public:
  explicit PrintCapture(std::string& text) noexcept;
  ~PrintCapture();
  PrintCapture(const PrintCapture&) = delete;
  PrintCapture& operator=(const PrintCapture&) = delete;

 private:
  std::string* outer_;
};

}  // namespace braid
