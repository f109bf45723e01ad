# cmake -DOUT=file.c -P embed.cmake: the files of this folder as one table of C strings.
set(files pipeline.yaml capability/capability.c capability/test.c capability/pipeline.yaml capability/Makefile capability/CMakeLists.txt
    capability/README.md capability/gitignore)
set(code "/* Made by embed.cmake from the files of its folder. */\n#include \"coreengine/app/template_internal.h\"\n")
set(rows "")
foreach(file IN LISTS files)
    file(READ ${CMAKE_CURRENT_LIST_DIR}/${file} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes
        "${bytes}")
    string(MAKE_C_IDENTIFIER ${file} name)
    string(APPEND code "\nstatic const unsigned char ${name}[] = {\n${bytes}\n};\n")
    string(APPEND rows "    {\"${file}\", (const char *)${name}, sizeof ${name}},\n")
endforeach()
string(APPEND code "\nconst struct rv_app_template app_templates[] = {\n${rows}    {0},\n};\n")
file(WRITE ${OUT} "${code}")
