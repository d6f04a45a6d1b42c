#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <braid/core/autograd.hpp>
#include <braid/core/error.hpp>
#include <braid/core/internal/io/crc.hpp>
#include <braid/core/internal/io/file.hpp>
#include <braid/core/ops/create.hpp>
#include <braid/data/image.hpp>

#if BRAID_WITH_ZLIB
#include <zlib.h>
#endif

namespace braid::data {
namespace {

using Bytes = std::vector<unsigned char>;

void put32(Bytes& to, std::uint64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    to.push_back(static_cast<unsigned char>(value >> shift));
}

#if BRAID_WITH_ZLIB

Bytes compressed(const Bytes& raw) {
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  Bytes out(size);
  if (compress2(out.data(), &size, raw.data(), static_cast<uLong>(raw.size()), 9) != Z_OK)
    throw std::bad_alloc();
  out.resize(size);
  return out;
}

#else

std::uint32_t adler32(const Bytes& bytes) {
  std::uint32_t a = 1, b = 0;
  for (const unsigned char byte : bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

/// Returns a zlib stream of blocks that are not compressed.
Bytes compressed(const Bytes& raw) {
  Bytes out{0x78, 0x01};
  for (std::size_t at = 0; at < raw.size(); at += 0xffff) {
    const std::size_t size = std::min<std::size_t>(raw.size() - at, 0xffff);
    const bool last = at + size == raw.size();
    for (const std::size_t byte :
         {std::size_t{last}, size & 0xff, size >> 8, ~size & 0xff, (~size >> 8) & 0xff})
      out.push_back(static_cast<unsigned char>(byte));
    const auto first = raw.begin() + static_cast<std::ptrdiff_t>(at);
    out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  put32(out, adler32(raw));
  return out;
}

#endif

void write_chunk(io::OutputFile& file, const char* type, const Bytes& data) {
  Bytes chunk;
  put32(chunk, data.size());
  chunk.insert(chunk.end(), type, type + 4);
  chunk.insert(chunk.end(), data.begin(), data.end());
  put32(chunk, io::crc32(chunk.data() + 4, chunk.size() - 4));
  file.write(chunk.data(), chunk.size());
}

/// Returns the pixels as uint8.
Bytes levels(const Tensor& pixels) {
  Bytes out(static_cast<std::size_t>(pixels.numel()));
  if (pixels.dtype() == DType::uint8) {
    const Tensor host = pixels.to(Device()).contiguous();
    std::memcpy(out.data(), host.data<const std::uint8_t>(), out.size());
    return out;
  }
  std::size_t i = 0;
  for (const float value : pixels.to_vector<float>()) {
    if (std::isnan(value)) throw ArgumentError("write_png: expected numbers, got NaN");
    out[i++] = static_cast<unsigned char>(std::lround(255 * std::clamp(value, 0.0f, 1.0f)));
  }
  return out;
}

}  // namespace

void write_png(const std::string& path, const Tensor& pixels) {
  const NoGrad guard;
  const int rank = pixels.dim();
  if (rank != 2 && !(rank == 3 && (pixels.size(0) == 1 || pixels.size(0) == 3)))
    throw ShapeError(
        str("write_png: expected [height, width], [1, height, width] or "
            "[3, height, width], got ",
            pixels.shape()));
  if (pixels.dtype() != DType::uint8 && !is_floating(pixels.dtype()))
    throw DTypeError(
        str("write_png: expected uint8 or a floating-point dtype, got ", pixels.dtype()));
  const std::int64_t channels = rank == 3 ? pixels.size(0) : 1, height = pixels.size(-2),
                     width = pixels.size(-1);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  // a chunk holds all the data, and its size has 31 bits
  if (height < 1 || width < 1 || width > kMost / 2 / channels / height)
    throw ShapeError(str("write_png: expected sizes of at least 1 and at most ", kMost / 2,
                         " bytes of pixels, got ", pixels.shape()));
  const Bytes planes = levels(pixels);
  Bytes rows;  // each begins with 0, "no filter"
  rows.reserve(static_cast<std::size_t>(height * (width * channels + 1)));
  for (std::int64_t y = 0; y < height; ++y) {
    rows.push_back(0);
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c)
        rows.push_back(planes[static_cast<std::size_t>((c * height + y) * width + x)]);
  }
  Bytes header;
  put32(header, static_cast<std::uint64_t>(width));
  put32(header, static_cast<std::uint64_t>(height));
  // 8 bits per channel, grey or colours, deflate, the five filters, not interlaced
  const unsigned char kind[] = {8, static_cast<unsigned char>(channels == 1 ? 0 : 2), 0, 0, 0};
  header.insert(header.end(), kind, kind + sizeof kind);

  io::OutputFile file(path);
  file.write("\x89PNG\r\n\x1a\n", 8);
  write_chunk(file, "IHDR", header);
  write_chunk(file, "IDAT", compressed(rows));
  write_chunk(file, "IEND", {});
  file.commit();
}

}  // namespace braid::data
