#pragma once
#include <string_view>

// The parts of the report's HTML page that are the same for every report.
namespace braid::parallel {

/// CSS: light and dark colours, and tables that scroll separately on a narrow screen.
[[nodiscard]] std::string_view page_style() noexcept;
/// JavaScript in two parts: first helpers and charts, then the sections. It reads the JSON of the
/// element `data`. It inserts strings only as text, so that no name can become markup.
[[nodiscard]] std::string_view page_charts() noexcept;
[[nodiscard]] std::string_view page_sections() noexcept;

}  // namespace braid::parallel
