# One way to make a library, a program and a test.
#
#   fluxqueue_library(kafka SOURCES a.cc b.cc DEPS fluxqueue::base RdKafka::rdkafka
#                     TESTS a_test.cc TEST_DEPS fluxqueue::testing)
#     target fluxqueue_kafka, alias fluxqueue::kafka; its unit tests in the program kafka_test
#   fluxqueue_program(fluxqueue-queue SOURCES main.cc DEPS fluxqueue::queue_service)
#     the target "programs" is all of them
#   fluxqueue_test(delivery_integration LABEL integration SOURCES … DEPS … [TIMEOUT s] [LOCK name])
#
# Headers are included from the root: "libs/kafka/consumer.h". PURE forbids every dependency that can perform an effect.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_FLAGS_RELEASE "-O2")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
else()
  # Programs do not tell where they were built (tools/reproducible): with ccache, whose CCACHE_BASEDIR tools/build sets,
  # __FILE__ begins at the folder of the build.
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=../../ -ffile-prefix-map=${PROJECT_BINARY_DIR}/=)
endif()
find_program(MOLD mold)

add_library(fluxqueue_warnings INTERFACE)
target_compile_options(fluxqueue_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                       -Wnon-virtual-dtor -Woverloaded-virtual -Werror)

set(FLUXQUEUE_SANITIZE "" CACHE STRING "sanitizers for every target, such as address,undefined")
if(FLUXQUEUE_SANITIZE)
  add_compile_options(-fsanitize=${FLUXQUEUE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${FLUXQUEUE_SANITIZE})
endif()
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

set(FLUXQUEUE_EFFECTS kafka postgres http kubernetes delivery lifecycle metrics rpc rdkafka pqxx grpc curl)

function(_fluxqueue_check_pure target)
  foreach(dep IN LISTS ARGN)
    foreach(effect IN LISTS FLUXQUEUE_EFFECTS)
      if(dep MATCHES "(::|^)${effect}(\\+\\+)?$")
        message(FATAL_ERROR "${target} is PURE and links ${dep}: move what needs it to an adapter")
      endif()
    endforeach()
  endforeach()
endfunction()

function(fluxqueue_library name)
  cmake_parse_arguments(ARG "PURE" "" "SOURCES;DEPS;TESTS;TEST_DEPS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fluxqueue_library(${name}): unknown arguments ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(ARG_PURE)
    _fluxqueue_check_pure(${name} ${ARG_DEPS})
  endif()
  if(ARG_SOURCES)
    add_library(fluxqueue_${name} STATIC ${ARG_SOURCES})
    target_include_directories(fluxqueue_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(fluxqueue_${name} PUBLIC ${ARG_DEPS} PRIVATE fluxqueue_warnings)
  else()
    add_library(fluxqueue_${name} INTERFACE)
    target_include_directories(fluxqueue_${name} INTERFACE ${PROJECT_SOURCE_DIR})
    target_link_libraries(fluxqueue_${name} INTERFACE ${ARG_DEPS})
  endif()
  add_library(fluxqueue::${name} ALIAS fluxqueue_${name})
  if(ARG_TESTS)
    fluxqueue_test(${name} LABEL unit SOURCES ${ARG_TESTS} DEPS fluxqueue::${name} ${ARG_TEST_DEPS})
  endif()
endfunction()

# The code that protoc and gRPC's plugin make of services, and no warnings in it. Called in the folder that protos are
# imported from:
#   fluxqueue_grpc_protos(queue_rpc_protos SERVICES fluxqueue/queue/v1/queue.proto DEPS fluxqueue::protos)
# MESSAGES: those whose messages are to be made, too, because DEPS do not have them.
function(fluxqueue_grpc_protos name)
  cmake_parse_arguments(ARG "" "" "MESSAGES;SERVICES;DEPS" ${ARGN})
  add_library(fluxqueue_${name} STATIC)
  if(ARG_MESSAGES)
    protobuf_generate(TARGET fluxqueue_${name} LANGUAGE cpp PROTOS ${ARG_MESSAGES} PROTOC_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  protobuf_generate(TARGET fluxqueue_${name} LANGUAGE grpc PROTOS ${ARG_SERVICES} GENERATE_EXTENSIONS .grpc.pb.h .grpc.pb.cc
                    PLUGIN protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> PROTOC_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR})
  target_include_directories(fluxqueue_${name} SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR})
  target_link_libraries(fluxqueue_${name} PUBLIC ${ARG_DEPS} protobuf::libprotobuf gRPC::grpc++)
  add_library(fluxqueue::${name} ALIAS fluxqueue_${name})
endfunction()

add_custom_target(programs)

function(fluxqueue_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} fluxqueue_warnings)
  # Services allocate on one thread and free on another all day; jemalloc takes less of their CPU for it than glibc's
  # malloc (tools/bench pipeline). Sanitizers bring an allocator of their own.
  if(NOT FLUXQUEUE_SANITIZE)
    target_link_libraries(${name} PRIVATE jemalloc)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  add_dependencies(programs ${name})
endfunction()

# LOCK: tests that name the same lock never run side by side. They begin first, the longest before the others, or their
# line would be what is left at the end, when nothing can run beside it.
function(fluxqueue_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;LOCK" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name}_test PRIVATE ${ARG_DEPS} GTest::gmock_main GTest::gtest rapidcheck fluxqueue_warnings)
  # Where the scripts and programs are, for those that run them; not for unit tests, whose objects ccache can then give
  # to every checkout.
  if(NOT ARG_LABEL STREQUAL "unit")
    target_compile_definitions(${name}_test PRIVATE FLUXQUEUE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                               FLUXQUEUE_BINARY_DIR="${PROJECT_BINARY_DIR}")
  endif()
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${ARG_LABEL}.${name} COMMAND ${name}_test)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 180)
  endif()
  set_tests_properties(${ARG_LABEL}.${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LOCK)
    set_tests_properties(${ARG_LABEL}.${name} PROPERTIES RESOURCE_LOCK ${ARG_LOCK} COST ${ARG_TIMEOUT})
  endif()
endfunction()

# Every test of every folder, whatever has registered it, runs in the environment of test_environment.cmake.in. Called after
# the last folder.
function(fluxqueue_test_environment)
  set(test_home ${PROJECT_BINARY_DIR}/test-home)
  configure_file(${PROJECT_SOURCE_DIR}/tools/cmake/test_environment.cmake.in
                 ${PROJECT_BINARY_DIR}/test_environment.cmake @ONLY)
  set(folders ${PROJECT_SOURCE_DIR})
  while(folders)
    list(POP_FRONT folders folder)
    set_property(DIRECTORY ${folder} APPEND PROPERTY TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/test_environment.cmake)
    get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    list(APPEND folders ${below})
  endwhile()
endfunction()
