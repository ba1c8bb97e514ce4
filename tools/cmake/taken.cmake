# RL_ROOMS_FROM: libraries of another build stand in for those that would be compiled. That build makes them, whenever they are
# older than their files.
set(RL_TAKEN "" CACHE INTERNAL "files of the other build")
if(RL_ROOMS_FROM)
  if(NOT EXISTS ${RL_ROOMS_FROM}/build.ninja)
    message(FATAL_ERROR "RL_ROOMS_FROM: ${RL_ROOMS_FROM} is no build; tools/build release makes one in build/release")
  endif()
  file(CONFIGURE OUTPUT ${RL_GENERATED_DIR}/taken.cpp CONTENT "")
endif()

# rl_taken_library(NAME FILE DEPENDS...): a library that is FILE of the other build.
function(rl_taken_library name file)
  # The linker wants the file before those of the rooms that it uses.
  add_library(${name}_taken STATIC IMPORTED GLOBAL)
  set_target_properties(${name}_taken PROPERTIES IMPORTED_LOCATION ${RL_ROOMS_FROM}/${file})
  target_link_libraries(${name}_taken INTERFACE ${ARGN})
  add_library(${name} STATIC ${RL_GENERATED_DIR}/taken.cpp)
  target_link_libraries(${name} PUBLIC rl_flags ${name}_taken ${ARGN})
  rl_take(${name} ${file})
endfunction()

# rl_take(TARGET FILE...): the target waits for these files of the other build.
function(rl_take target)
  add_dependencies(${target} rl_taken)
  set(RL_TAKEN ${RL_TAKEN} ${ARGN} CACHE INTERNAL "files of the other build")
endfunction()

# rl_taken_files(): the rule for all of them, once they are known.
function(rl_taken_files)
  if(RL_TAKEN)
    list(TRANSFORM RL_TAKEN PREPEND ${RL_ROOMS_FROM}/ OUTPUT_VARIABLE files)
    add_custom_target(rl_taken COMMAND ${CMAKE_COMMAND} --build ${RL_ROOMS_FROM} --target ${RL_TAKEN} BYPRODUCTS ${files}
                      COMMENT "libraries of ${RL_ROOMS_FROM}" VERBATIM)
  endif()
endfunction()
