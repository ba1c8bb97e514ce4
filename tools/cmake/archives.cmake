# rl_archives(TARGET NAME...): the target links these static archives, lib<NAME>.a, in place of what it names.
function(rl_archives target)
  set(archives "")
  foreach(name ${ARGN})
    find_library(RL_ARCHIVE_${name} lib${name}.a REQUIRED)
    list(APPEND archives ${RL_ARCHIVE_${name}})
  endforeach()
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${archives}")
endfunction()

# rl_fmt_archive(TARGET): the target links an archive of fmt, which Debian does not have: its one source is a header that is
# installed, and the instances that others look for.
function(rl_fmt_archive target)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/fmt.cpp CONTENT
"#include <fmt/format-inl.h>
FMT_BEGIN_NAMESPACE
namespace detail {
template FMT_API auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API locale_ref::locale_ref(const std::locale&);
template FMT_API auto locale_ref::get<std::locale>() const -> std::locale;
template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<buffer_context<char>>, locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
" @ONLY)
  add_library(rl_fmt_archive STATIC ${CMAKE_BINARY_DIR}/generated/fmt.cpp)
  target_link_libraries(${target} INTERFACE rl_fmt_archive)
endfunction()
