#include "files.hpp"

#include <sys/stat.h>

#include <cstdlib>

namespace braid::data {

std::string data_folder(const std::string& given) {
  if (!given.empty()) return given;
  const char* from_environment = std::getenv("BRAID_DATA");
  return from_environment != nullptr ? from_environment : "";
}

std::string data_folder_in_words(const std::string& given) {
  const std::string folder = data_folder(given);
  if (folder.empty()) return "in no folder: none was given and BRAID_DATA is not set";
  return "in " + folder + (given.empty() ? " (from BRAID_DATA)" : "");
}

std::string joined(const std::string& folder, const std::string& file) {
  return folder + (folder.ends_with('/') ? "" : "/") + file;
}

bool exists(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

}  // namespace braid::data
