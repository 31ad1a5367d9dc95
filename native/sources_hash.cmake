# Writes OUTPUT, a header with the package's version and one hash of all sources of the native module, if it differs.
#
# src/jato/base/native_build.py computes the same hash, to tell a module that was built from other sources.
file(GLOB sources RELATIVE ${ROOT}/native ${ROOT}/native/core/*.h ${ROOT}/native/core/*.cpp
     ${ROOT}/native/bind/*.h ${ROOT}/native/bind/*.cpp)
list(SORT sources)
set(listing "")
foreach(source ${sources})
  file(SHA256 ${ROOT}/native/${source} hash)
  string(APPEND listing "${source} ${hash}\n")
endforeach()
string(SHA256 hash "${listing}")
file(STRINGS ${ROOT}/src/jato/base/version.py version REGEX "^__version__")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" version "${version}")
set(text "#define JATO_VERSION \"${version}\"\n#define JATO_SOURCES \"${hash}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} known)
endif()
if(NOT "${known}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
