/* Products of vectors. The sum is made of 16 partial sums in one fixed order; wider registers only do several of them
 * at once, so the bits are the same with and without them. */
#include <math.h>

#include "coreengine/match/vectors_internal.h"

typedef float lanes __attribute__((vector_size(32)));                        /* eight partial sums */
typedef float eight __attribute__((vector_size(32), aligned(4), may_alias)); /* eight elements at any address */
#define EIGHT_AT(p) (*(const eight *)(const void *)(p))

static inline __attribute__((always_inline)) float sum_of(const float s[16])
{
    float r[8];

    for (int i = 0; i < 8; i++)
        r[i] = s[i] + s[i + 8];
    for (int i = 0; i < 4; i++)
        r[i] += r[i + 4];
    return (r[0] + r[2]) + (r[1] + r[3]);
}

/* The body of a function for one width of registers. A macro: the compiler takes a vector apart for the registers of
 * the function that it is written in, before it inlines that into another. */
#define DOT_BODY(a, b, dims)                                                                                           \
    lanes low = {0}, high = {0};                                                                                       \
    float s[16];                                                                                                       \
    size_t i = 0;                                                                                                      \
                                                                                                                       \
    for (; i + 16 <= dims; i += 16) {                                                                                  \
        low += EIGHT_AT((a) + i) * EIGHT_AT((b) + i);                                                                  \
        high += EIGHT_AT((a) + i + 8) * EIGHT_AT((b) + i + 8);                                                         \
    }                                                                                                                  \
    memcpy(s, &low, sizeof low);                                                                                       \
    memcpy(s + 8, &high, sizeof high);                                                                                 \
    for (; i < dims; i++)                                                                                              \
        s[i % 16] += a[i] * b[i];                                                                                      \
    return sum_of(s);

#define DOT_BYTES_BODY(a, b, dims)                                                                                     \
    int32_t sum = 0;                                                                                                   \
                                                                                                                       \
    for (size_t i = 0; i < dims; i++)                                                                                  \
        sum += a[i] * b[i];                                                                                            \
    return sum;

float match_vector_dot_portable(const float *a, const float *b, size_t dims)
{
    DOT_BODY(a, b, dims)
}

static int32_t dot_bytes_portable(const int8_t *a, const int8_t *b, size_t dims)
{
    DOT_BYTES_BODY(a, b, dims)
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static float dot_avx2(const float *a, const float *b, size_t dims)
{
    DOT_BODY(a, b, dims)
}

__attribute__((target("avx2"))) static int32_t dot_bytes_avx2(const int8_t *a, const int8_t *b, size_t dims)
{
    DOT_BYTES_BODY(a, b, dims)
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}
#else
#define dot_avx2       match_vector_dot_portable
#define dot_bytes_avx2 dot_bytes_portable
static bool has_avx2(void)
{
    return false;
}
#endif

float rv_vector_dot(const float *a, const float *b, size_t dims)
{
    return has_avx2() ? dot_avx2(a, b, dims) : match_vector_dot_portable(a, b, dims);
}

int32_t match_vector_dot_bytes(const int8_t *a, const int8_t *b, size_t dims)
{
    return has_avx2() ? dot_bytes_avx2(a, b, dims) : dot_bytes_portable(a, b, dims);
}

double match_vector_length(const float *v, size_t dims)
{
    double sum = 0;

    for (size_t i = 0; i < dims; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

double match_vector_cosine_of(const float *a, double a_length, const float *b, double b_length, size_t dims)
{
    if (!(a_length > 0 && b_length > 0))
        return 0;
    double c = (double)rv_vector_dot(a, b, dims) / (a_length * b_length);
    return c > 1 ? 1 : c < -1 ? -1 : c;
}

bool rv_vector_is_finite(const float *v, size_t dims)
{
    for (size_t i = 0; i < dims; i++)
        if (!isfinite(v[i]))
            return false;
    return true;
}
