#include <cerrno>

#include <braid/core/error.hpp>
#include <braid/core/internal/io/file.hpp>
#include <braid/data/text.hpp>

#include "files.hpp"

namespace braid::data {

std::string read_text(const std::string& file, const std::string& folder) {
  if (file.empty()) throw ArgumentError("read_text: expected the name of a file, got an empty one");
  const bool absolute = file.front() == '/';
  const std::string place = absolute ? "" : data_folder(folder),
                    path = absolute ? file : joined(place, file);
  if ((!absolute && place.empty()) || !exists(path)) {
    const std::string where = absolute ? "" : "; looked " + data_folder_in_words(folder);
    throw IoError(absolute ? file : place, "read_text", ENOENT, -1,
                  str("expected ", file, ", got no such file", where));
  }
  return io::InputFile(path).read_all();
}

std::optional<std::string> find_text(const std::string& file, const std::string& folder) {
  try {
    return read_text(file, folder);
  } catch (const IoError& e) {
    if (!folder.empty() || e.error_number != ENOENT) throw;
    return std::nullopt;
  }
}

}  // namespace braid::data
