#pragma once
#include <string_view>

// The parts of the report's page that are the same for every report.
namespace braid::parallel {

/// CSS: colours for light and dark, tables that scroll by themselves on a narrow screen.
[[nodiscard]] std::string_view page_style() noexcept;
/// JavaScript, in two parts, one after the other: helpers and charts, then the sections. It reads
/// the JSON of the element `data`, and puts text into the page as text only, so that no name can
/// become markup.
[[nodiscard]] std::string_view page_charts() noexcept;
[[nodiscard]] std::string_view page_sections() noexcept;

}  // namespace braid::parallel
