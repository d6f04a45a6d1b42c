#pragma once
#include <string>

namespace braid {

/// While it lives, the lines that the calling thread prints (braid::print) are added to a text and
/// not written. The innermost one counts.
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
