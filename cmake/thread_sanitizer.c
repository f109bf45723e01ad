// Linked into each program that is built for the thread sanitizer, for libuv: it closes descriptors with syscall(),
// which the sanitizer does not see. The next descriptor of that number would still be the closed one to it: what one
// thread opens would race with what another thread had open before.
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

// A call of fewer arguments has anything in the others, and the kernel does not look at them.
__attribute__((visibility("default"))) long syscall(long number, ...)
{
    static long (*next)(long number, ...);
    long args[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_close)
        return close((int)args[0]);
    long (*real)(long number, ...) = __atomic_load_n(&next, __ATOMIC_ACQUIRE);
    if (!real) {
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
        __atomic_store_n(&next, real, __ATOMIC_RELEASE);
    }
    return real(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
