// Linked into each program that is built for the address sanitizer, which asks for its options before it does anything.
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char __bss_start, _end;
const char *__asan_default_options(void);

// ASAN_OPTIONS still decides, where it is set. By itself the sanitizer keeps 256 MB of freed memory, whose pages take a
// tenth of the time of a suite. Its own tables are 10 MB of static memory, which the search for leaks at the end of a
// process reads whole: in large pages that is five faults and no longer 2,500. That search guesses where thread-local
// memory of a library that was opened later begins, and where it guesses wrong it reads address 0xe8 and dies: left out.
__attribute__((visibility("default"))) const char *__asan_default_options(void)
{
    uintptr_t first = ((uintptr_t)&__bss_start + 4095) & ~(uintptr_t)4095;
    (void)syscall(SYS_madvise, first, (uintptr_t)&_end - first, MADV_HUGEPAGE); // madvise() would come to the sanitizer
    return "quarantine_size_mb=16:intercept_tls_get_addr=0";
}
