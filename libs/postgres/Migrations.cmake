# fluxqueue_migrations(target set DIR): embeds the files DIR/NNNN_what.sql into `target` as the migration set `set`
# (libs/postgres/migrations.h): header "<set>_migrations.h", function fluxqueue::migrations::<set>().
function(fluxqueue_migrations target set dir)
  file(GLOB files CONFIGURE_DEPENDS "${dir}/*.sql")
  list(SORT files)
  if(NOT files)
    message(FATAL_ERROR "fluxqueue_migrations(${target} ${set}): there is no *.sql in ${dir}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(items "")
  foreach(file IN LISTS files)
    get_filename_component(name "${file}" NAME_WE)
    if(NOT name MATCHES "^[0-9][0-9][0-9][0-9]_")
      message(FATAL_ERROR "${file}: a migration is named NNNN_what.sql")
    endif()
    file(READ "${file}" sql)
    string(APPEND items "      {\"${name}\", R\"__sql__(${sql})__sql__\"},\n")
  endforeach()
  set(out "${CMAKE_CURRENT_BINARY_DIR}/migrations")
  file(CONFIGURE OUTPUT "${out}/${set}_migrations.h" @ONLY CONTENT
"#pragma once
#include \"libs/postgres/migrations.h\"
namespace fluxqueue::migrations {
const postgres::MigrationSet& ${set}();
}  // namespace fluxqueue::migrations
")
  file(CONFIGURE OUTPUT "${out}/${set}_migrations.cc" @ONLY CONTENT
"#include \"${set}_migrations.h\"
namespace fluxqueue::migrations {
const postgres::MigrationSet& ${set}() {
  static const postgres::MigrationSet kSet{\"${set}\", {
${items}  }};
  return kSet;
}
}  // namespace fluxqueue::migrations
")
  target_sources(${target} PRIVATE "${out}/${set}_migrations.cc")
  target_include_directories(${target} PUBLIC "${out}")
endfunction()
