/* Interposes the C library's allocator. glibc calls malloc through the symbol table even from inside (strdup, fopen),
 * so defining these in the program reaches every caller; the __libc_ names are the originals. */
#include "tests/kit/fault.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static _Thread_local bool is_armed, was_armed, has_fired;
static _Thread_local size_t n_seen, fail_at;
static _Thread_local long balance;

/* of all threads */
static atomic_bool all_are_armed, all_have_fired;
static atomic_size_t all_seen;
static atomic_long all_balance;
static size_t all_fail_at; /* set before they are armed */

/* Under the address sanitizer everything is slow: there every fourth allocation fails, but in soak. Which of the four
 * follows from the number of the order, so that checks together try all of them. */
#ifdef __SANITIZE_ADDRESS__
static size_t stride(void)
{
    return getenv("REEVE_SOAK") ? 1 : 4;
}
#else
static size_t stride(void)
{
    return 1;
}
#endif

static size_t place_of(size_t n)
{
    const char *seed = getenv("REEVE_SHUFFLE");
    size_t first = seed ? strtoull(seed, NULL, 10) % stride() : 0;

    return n < (SIZE_MAX - first) / stride() ? n * stride() + first : SIZE_MAX;
}

void rv_fault_arm_all(size_t n)
{
    rv_fault_arm(SIZE_MAX);
    is_armed = false;
    all_fail_at = place_of(n);
    all_seen = 0;
    all_balance = 0;
    all_have_fired = false;
    all_are_armed = true;
}

void rv_fault_arm(size_t n)
{
    fail_at = place_of(n);
    n_seen = 0;
    balance = 0;
    has_fired = false;
    is_armed = true;
}

void rv_fault_pause(void)
{
    was_armed = is_armed;
    is_armed = false;
}

void rv_fault_go_on(void)
{
    is_armed = was_armed;
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

size_t rv_fault_count(void)
{
    return n_seen;
}

/* The address sanitizer makes the memory of strdup and its like unseen from here, and looks for leaks by itself. */
long rv_fault_lost(long kept)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)kept;
    return 0;
#else
    return balance - kept;
#endif
}

long rv_fault_balance(void)
{
    return rv_fault_lost(0);
}

#ifdef __SANITIZE_THREAD__

bool rv_fault_works(void)
{
    return false;
}

#else

bool rv_fault_works(void)
{
    return stride() == 1;
}

#define INTERPOSED __attribute__((visibility("default")))

#ifdef __SANITIZE_ADDRESS__ /* its runtime names the functions that it puts in the place of the C library's */
#define ORIGINAL(name) __interceptor_##name
#else
#define ORIGINAL(name) __libc_##name
#endif

extern void *ORIGINAL(malloc)(size_t size);
extern void *ORIGINAL(calloc)(size_t n, size_t size);
extern void *ORIGINAL(realloc)(void *old, size_t size);
extern void *ORIGINAL(memalign)(size_t align, size_t size);
extern void ORIGINAL(free)(void *p);

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
    return fails() ? NULL : got(ORIGINAL(malloc)(size));
}

INTERPOSED void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : got(ORIGINAL(calloc)(n, size));
}

INTERPOSED void *realloc(void *old, size_t size)
{
    void *p;

    if (fails())
        return NULL;
    p = ORIGINAL(realloc)(old, size);
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
    return fails() ? NULL : got(ORIGINAL(memalign)(align, size));
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
    ORIGINAL(free)(p);
}

#endif
