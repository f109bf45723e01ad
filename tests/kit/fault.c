/* Interposes the C library's allocator. glibc calls malloc through the symbol table even from inside (strdup, fopen),
 * so defining these in the program reaches every caller; the __libc_ names are the originals. */
#include "tests/kit/fault.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static _Thread_local bool is_armed, has_fired;
static _Thread_local size_t n_seen, fail_at;
static _Thread_local long balance;

/* of all threads */
static atomic_bool all_are_armed, all_have_fired;
static atomic_size_t all_seen;
static atomic_long all_balance;
static size_t all_fail_at; /* set before they are armed */

void rv_fault_arm_all(size_t n)
{
    rv_fault_arm(SIZE_MAX);
    is_armed = false;
    all_fail_at = n;
    all_seen = 0;
    all_balance = 0;
    all_have_fired = false;
    all_are_armed = true;
}

void rv_fault_arm(size_t n)
{
    fail_at = n;
    n_seen = 0;
    balance = 0;
    has_fired = false;
    is_armed = true;
}

bool rv_fault_disarm(void)
{
    if (all_are_armed) {
        all_are_armed = false;
        n_seen = all_seen;
        balance = all_balance;
        has_fired = all_have_fired;
    }
    is_armed = false;
    return has_fired;
}

long rv_fault_balance(void)
{
    return balance;
}

size_t rv_fault_count(void)
{
    return n_seen;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OWN_ALLOCATOR 1
#endif
#endif

#ifdef OWN_ALLOCATOR

bool rv_fault_works(void)
{
    return false;
}

#else

bool rv_fault_works(void)
{
    return true;
}

#define INTERPOSED __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

/* Counts one allocation; true if it is the one to fail. */
static bool fails(void)
{
    if (all_are_armed) {
        if (atomic_fetch_add(&all_seen, 1) != all_fail_at)
            return false;
        all_have_fired = true;
        errno = ENOMEM;
        return true;
    }
    if (!is_armed)
        return false;
    if (n_seen++ != fail_at)
        return false;
    has_fired = true;
    errno = ENOMEM;
    return true;
}

static void count(long n)
{
    if (is_armed)
        balance += n;
    if (all_are_armed)
        all_balance += n;
}

static void *got(void *p)
{
    if (p)
        count(1);
    return p;
}

INTERPOSED void *malloc(size_t size)
{
    return fails() ? NULL : got(__libc_malloc(size));
}

INTERPOSED void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : got(__libc_calloc(n, size));
}

INTERPOSED void *realloc(void *old, size_t size)
{
    void *p;

    if (fails())
        return NULL;
    p = __libc_realloc(old, size);
    if (!old && p)
        count(1);
    else if (old && !p && size == 0)
        count(-1);
    return p;
}

INTERPOSED void *reallocarray(void *old, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, n * size);
}

INTERPOSED void *memalign(size_t align, size_t size)
{
    return fails() ? NULL : got(__libc_memalign(align, size));
}

INTERPOSED void *aligned_alloc(size_t align, size_t size)
{
    return memalign(align, size);
}

INTERPOSED int posix_memalign(void **out, size_t align, size_t size)
{
    void *p = memalign(align, size);

    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

INTERPOSED void free(void *p)
{
    if (p)
        count(-1);
    __libc_free(p);
}

#endif
