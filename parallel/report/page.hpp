#pragma once
#include <string_view>

// The files of the report's HTML page, embedded by CMake (page.cpp.in).
namespace braid::parallel {

/// page.html: the frame, with `{{title}}`, `{{style}}`, `{{text}}`, `{{data}}`, `{{elements}}`,
/// `{{charts}}` and `{{sections}}` where the parts belong.
[[nodiscard]] std::string_view page_html() noexcept;
/// page.css: light and dark colours, and tables that scroll separately on a narrow screen.
[[nodiscard]] std::string_view page_css() noexcept;
/// JavaScript, in the order of the page. It reads the JSON of the element `data`. It inserts
/// strings only as text, so that no name can become markup.
[[nodiscard]] std::string_view page_elements() noexcept;
[[nodiscard]] std::string_view page_charts() noexcept;
[[nodiscard]] std::string_view page_sections() noexcept;

}  // namespace braid::parallel
