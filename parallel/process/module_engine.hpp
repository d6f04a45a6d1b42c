#pragma once
#include <memory>
#include <string>
#include <vector>

#include "process/engine.hpp"
#include "process/store.hpp"

namespace braid::parallel::process {

/// Opens a module, `braid_<name>.so`: from the folders of BRAID_MODULE_PATH if that is set; else
/// from beside the library or program that contains Braid, the folder where Braid was installed, or
/// the folder of the build, if nobody else can have written it. Modules stay open until the process
/// ends.
///
/// Throws    CommError if there is none, if it cannot be opened (its text says what is missing), or
///           if it is of another version
[[nodiscard]] const BraidEngineTable& open_module(const std::string& name);
/// Returns whether the file is there.
[[nodiscard]] bool has_module(const std::string& name);
/// The name and version of the module's library.
[[nodiscard]] std::string library_of(const BraidEngineTable& table);

struct ModuleOptions {
  int rank = -1, size = -1;
  std::string address = "127.0.0.1";
  double timeout = 600;
  std::int64_t largest = 0;
  std::shared_ptr<Store> store = {};  // for Gloo
};
/// Opens this rank's end.
///
/// Throws    CommError with the module's text
[[nodiscard]] std::unique_ptr<HostEngine> open_engine(const BraidEngineTable& table,
                                                      const ModuleOptions& options);

}  // namespace braid::parallel::process
