#pragma once
#include <string>

namespace braid::data {

/// Returns the folder of a data set: `given` or, if that is empty, the environment variable
/// BRAID_DATA. Empty if that is not set either.
[[nodiscard]] std::string data_folder(const std::string& given);
/// Returns where data_folder looked, for messages: `in <folder> (from BRAID_DATA)` or
/// `in no folder: …`.
[[nodiscard]] std::string data_folder_in_words(const std::string& given);
/// Returns the path of a file in a folder.
[[nodiscard]] std::string joined(const std::string& folder, const std::string& file);
[[nodiscard]] bool exists(const std::string& path);

}  // namespace braid::data
