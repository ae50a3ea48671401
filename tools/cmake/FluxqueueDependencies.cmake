# Debian 12's libraries, each by its own way of being found (libpqxx brings pkg-config only), and a mended librdkafka.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(absl REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(prometheus-cpp REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gRPC REQUIRED)
find_package(rapidcheck REQUIRED)
find_package(simdjson REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(pq REQUIRED IMPORTED_TARGET libpq)
pkg_check_modules(pqxx REQUIRED IMPORTED_TARGET libpqxx)

set(FLUXQUEUE_BUILD_RDKAFKA ${PROJECT_SOURCE_DIR}/tools/librdkafka/build)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FLUXQUEUE_BUILD_RDKAFKA}
             ${PROJECT_SOURCE_DIR}/tools/librdkafka/fixes.patch)
execute_process(COMMAND ${FLUXQUEUE_BUILD_RDKAFKA} OUTPUT_VARIABLE FLUXQUEUE_RDKAFKA OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
unset(RdKafka_DIR CACHE)  # that of other fixes
find_package(RdKafka REQUIRED CONFIG PATHS ${FLUXQUEUE_RDKAFKA} NO_DEFAULT_PATH)
