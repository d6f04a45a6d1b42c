#pragma once
#include <span>
#include <string>

namespace braid::data {

/// Checks what stb 2.27 trusts in a JPEG file: that no Huffman table has more than 256 codes, which
/// it would write behind the end of an array, and that there are at most 100 scans, each of which
/// it runs over the whole image.
///
/// Throws    FormatError, LimitError
void check_jpeg(std::span<const unsigned char> file, const std::string& name);

}  // namespace braid::data
