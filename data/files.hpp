#pragma once
#include <string>

namespace braid::data {

/// The folder of a data set: the given one, or, if that is empty, what the environment variable
/// BRAID_DATA names; empty if it is not set either.
[[nodiscard]] std::string data_folder(const std::string& given);
/// `in <folder> (from BRAID_DATA)`, or `in no folder: …`: where that looked, for messages.
[[nodiscard]] std::string data_folder_in_words(const std::string& given);
/// The path of a file in a folder.
[[nodiscard]] std::string joined(const std::string& folder, const std::string& file);
[[nodiscard]] bool exists(const std::string& path);

}  // namespace braid::data
