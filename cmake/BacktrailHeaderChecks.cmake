# Every header compiles alone: one generated translation unit for each, that includes it twice.
set(bt_header_units "")
foreach(folder arch decoder ptrace server test/support)
  file(GLOB_RECURSE bt_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/${folder}/*.hpp")
  foreach(header ${bt_headers})
    string(REPLACE "/" "__" unit "${header}.cpp")
    set(unit "${PROJECT_BINARY_DIR}/header_checks/${unit}")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "#include \"${header}\"\n#include \"${header}\"\n" @ONLY)
    list(APPEND bt_header_units "${unit}")
  endforeach()
endforeach()

add_library(bt_header_checks OBJECT ${bt_header_units})
target_link_libraries(bt_header_checks PRIVATE bt::server Boost::headers GTest::gtest GTest::gmock)
target_compile_definitions(bt_header_checks PRIVATE BOOST_ASIO_NO_DEPRECATED)
# Only whether they compile counts.
target_compile_options(bt_header_checks PRIVATE -O0 -g0 -fno-sanitize=all)
