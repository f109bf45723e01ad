/* Vectors of allowances, laid out as mixed-radix numbers, and the sum of two tables over them. */
#include "config/analysis/group_internal.h"

void rv_group_space_set(struct rv_group_space *s)
{
    s->n = 1;
    s->pairs = 1;
    for (int d = s->n_dims - 1; d >= 0; d--) {
        int64_t size = s->dims[d].size;

        s->dims[d].stride = s->n;
        s->n = rv_sat_mul(s->n, size);
        s->pairs = rv_sat_mul(s->pairs, size < INT32_MAX ? size * (size + 1) / 2 : INT64_MAX);
    }
}

static void convolve_dim(const struct rv_group_space *s, int dim, const int64_t *f, const int64_t *g, int64_t *out)
{
    int64_t size, stride;

    if (dim == s->n_dims) {
        if (*f >= 0 && *g >= 0)
            rv_group_max(out, rv_sat_add(*f, *g));
        return;
    }
    size = s->dims[dim].size;
    stride = s->dims[dim].stride;
    for (int64_t i = 0; i < size; i++)
        for (int64_t k = 0; k < size - i; k++)
            convolve_dim(s, dim + 1, f + i * stride, g + k * stride, out + (i + k) * stride);
}

void rv_group_convolve(const struct rv_group_space *s, const int64_t *f, const int64_t *g, int64_t *out)
{
    convolve_dim(s, 0, f, g, out);
}
