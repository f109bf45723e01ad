# cmake -DREEVE=binary -DOUT=folder -P pages.cmake: let the binary print its man pages and completions; it alone knows
# its verbs. reeve(1) refers to a page of each of them, which tells which pages to ask for.

function(page file)
    execute_process(COMMAND ${REEVE} docs ${ARGN} OUTPUT_FILE ${OUT}/${file} RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
        message(FATAL_ERROR "reeve docs ${ARGN}: ${status}")
    endif()
endfunction()

file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man1)
page(man1/reeve.1 man)
file(READ ${OUT}/man1/reeve.1 overview)
string(REGEX MATCHALL "reeve\\\\-[a-z]+" names "${overview}")
foreach(name IN LISTS names)
    string(REGEX REPLACE ".*-" "" verb ${name})
    page(man1/reeve-${verb}.1 man ${verb})
endforeach()
page(reeve.bash completion bash)
page(_reeve completion zsh)
page(reeve.fish completion fish)
file(GLOB manuals ${OUT}/man1/*.1)
execute_process(COMMAND gzip -9n ${manuals} COMMAND_ERROR_IS_FATAL ANY) # as man pages are installed
