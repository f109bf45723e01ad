# cmake -DOUT=page_files.c -DFILES=LIST -P embed.cmake: a C source with the files of the page, as the assembler includes
# them. LIST is a file with one "NAME TYPE PATH" a line; NAME is what clients ask for, below /page/.

file(STRINGS ${FILES} lines)
set(bytes "")
set(rows "")
set(n 0)
foreach(line IN LISTS lines)
    if(NOT line MATCHES "^([^ ]+) ([^ ]+) (.+)$")
        message(FATAL_ERROR "${FILES}: not \"NAME TYPE PATH\": ${line}")
    endif()
    set(name ${CMAKE_MATCH_1})
    set(type ${CMAKE_MATCH_2})
    set(path ${CMAKE_MATCH_3})
    file(SIZE ${path} size)
    file(SHA256 ${path} hash)
    string(SUBSTRING ${hash} 0 32 hash)
    if(type MATCHES "^(text|application)/")
        string(APPEND type "; charset=utf-8")
    endif()
    string(APPEND bytes "FILE(${n}, \"${path}\")\n")
    string(APPEND rows "    {\"${name}\", \"${type}\", \"\\\"${hash}\\\"\", {file_${n}, ${size}}},\n")
    math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Made by coreengine/server/page/embed.cmake: the files of the page. */
#include \"coreengine/server/page_internal.h\"

#define FILE(n, path)                                                                                                  \\
    __asm__(\".pushsection .rodata\\nfile_\" #n \":\\n.incbin \\\"\" path \"\\\"\\n.byte 0\\n.popsection\");                         \\
    extern const char file_##n[] __attribute__((visibility(\"hidden\")));
${bytes}
const struct srv_page_file srv_page_files[] = {
${rows}};
const size_t srv_n_page_files = RV_COUNT(srv_page_files);
")
