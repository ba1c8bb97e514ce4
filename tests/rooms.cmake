# How the folders of tests/ are built: each is a room of src and one program, FOLDER_tests, and each *_test.cpp in it is a test
# of ctest by its name, with the folder as its label.

set(RL_TEST_FILES "" CACHE STRING "the tests that are built, by name: op_test;session_test; empty: all of them")
set(RL_TEST_QUIET "" CACHE STRING "backends in which nothing changed: they take half as many cases (tools/test-shares)")
set(RL_TEST_PART 1 CACHE STRING "by how much shares of long tests are smaller than theirs: 2 where tools/test --quick runs them")
set(RL_TEST_TURN 0 CACHE STRING "which share of the cases of long tests ctest runs: any number; tools/test counts days")

# Programs that are given an empty cache folder still find shaders that another test had Mesa compile for the CPU.
set(RL_TEST_ENVIRONMENT "MESA_SHADER_CACHE_DIR=${CMAKE_BINARY_DIR}/mesa-cache")

# rl_test_room([PROGRAM] [APART] [LIGHT] [LIBRARIES...] [HIP test...])
#   PROGRAM    the tests start build/redline
#   APART      files are compiled one by one: they use names of several namespaces
#   LIGHT      the tests compute little beside those: they are compiled without optimisation, in half of the time
#   LIBRARIES  the rooms that they look into, with all below those
#   HIP        tests that see the device of HIP's double
function(rl_test_room)
  cmake_parse_arguments(PARSE_ARGV 0 room "PROGRAM;APART;LIGHT" "" "LIBRARIES;HIP")
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  file(GLOB files CONFIGURE_DEPENDS *_test.cpp)
  if(RL_TEST_FILES)
    list(JOIN RL_TEST_FILES "|" wanted)
    list(FILTER files INCLUDE REGEX "/(${wanted})\\.cpp$")
  endif()
  if(NOT files)
    return()
  endif()
  set(program ${folder}_tests)
  add_executable(${program} ${files})
  target_link_libraries(${program} PRIVATE rl_test_main ${room_LIBRARIES})
  target_compile_options(${program} PRIVATE ${RL_TEST_OPTIONS})
  if(room_LIGHT AND NOT RL_SANITIZE)
    target_compile_options(${program} PRIVATE -O0)
    target_precompile_headers(${program} REUSE_FROM rl_light_test_headers)
  else()
    target_precompile_headers(${program} REUSE_FROM rl_test_headers)
  endif()
  set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT room_APART)
    set_target_properties(${program} PROPERTIES UNITY_BUILD ${RL_UNITY} UNITY_BUILD_BATCH_SIZE 4)
  endif()
  if(room_PROGRAM)
    target_compile_definitions(${program} PRIVATE RL_REDLINE="$<TARGET_FILE:redline>")
    add_dependencies(${program} redline)
  endif()
  add_dependencies(rl_all_tests ${program})
  foreach(file ${files})
    get_filename_component(test ${file} NAME_WE)
    add_test(NAME ${test} COMMAND ${program} "-sf=*/${test}.cpp" ${${test}_ARGUMENTS})
    # A program none of whose cases could run ends with 77; see support/at_end.h.
    set_tests_properties(${test} PROPERTIES LABELS ${folder} SKIP_RETURN_CODE 77 ENVIRONMENT "${RL_TEST_ENVIRONMENT}")
    if(test IN_LIST room_HIP AND TARGET rl_hip_double)
      rl_test_environment(${test} ${RL_HIP_ENVIRONMENT})
      add_dependencies(${program} rl_hip_double)
    endif()
  endforeach()
endfunction()

# rl_test_environment(TEST NAME=VALUE...): variables that ctest sets for a test of this folder, if the test is built.
function(rl_test_environment test)
  if(TEST ${test})
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT ${ARGN})
  endif()
endfunction()

# rl_test_backends(NORMAL SANITIZED TEST...): the backends that tests run on in a normal and in a sanitized build, with commas
# between; "all" sets none.
function(rl_test_backends normal sanitized)
  set(backends ${normal})
  if(RL_SANITIZE)
    set(backends ${sanitized})
  endif()
  if(NOT backends STREQUAL all)
    foreach(test ${ARGN})
      rl_test_environment(${test} RL_TEST_BACKENDS=${backends})
    endforeach()
  endif()
endfunction()
