/* Headers of an answer of a model's server, a line each behind the status: "429", "retry-after: 7". What is made of
 * them stays in its bounds, and the same headers say the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coreengine/model/provider/provider_internal.h"
#include "tests/kit/fuzz.h"

#define NOW_US  INT64_C(1790000000000000)
#define WAIT_US (INT64_C(60) * RV_US_PER_S)
#define YEAR_US (INT64_C(366) * 86400 * RV_US_PER_S)

static void add_line(struct rv_http_head *head, rv_str line)
{
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
    size_t n = colon ? (size_t)(colon - line.ptr) : 0;

    if (!colon || head->n_headers == RV_HTTP_MAX_HEADERS)
        return;
    head->headers[head->n_headers].name = (rv_str){line.ptr, n};
    head->headers[head->n_headers++].value = (rv_str){colon + 1, line.len - n - 1};
}

static void is_shown(const char *text, size_t size)
{
    require(strnlen(text, size) < size);
    for (; *text; text++)
        require(*text > ' ' && *text <= '~');
}

static void look_at(const struct rv_http_head *head)
{
    struct rv_hints h, again;

    provider_hints_read(head, NOW_US, WAIT_US, &h);
    require(h.retry_after_us >= -1 && h.retry_after_us <= YEAR_US);
    require(h.should_retry >= -1 && h.should_retry <= 1);
    require(h.closed_until_us == 0 || (h.closed_until_us > NOW_US && h.closed_until_us <= NOW_US + WAIT_US));
    is_shown(h.request_id, sizeof h.request_id);
    is_shown(h.location, sizeof h.location);
    require(!strpbrk(h.location, "@?#") && (!h.location[0] || (head->status >= 300 && head->status < 400)));
    provider_hints_read(head, NOW_US, WAIT_US, &again);
    require(again.retry_after_us == h.retry_after_us && again.closed_until_us == h.closed_until_us);
    require(strcmp(again.request_id, h.request_id) == 0 && strcmp(again.location, h.location) == 0);
}

RV_FUZZ_TARGET(hints)
{
    struct rv_http_head head = {.status = 429};
    rv_str rest = {(const char *)data, size};

    for (size_t i = 0; rest.len > 0; i++) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t n = end ? (size_t)(end - rest.ptr) : rest.len, at = end ? n + 1 : n;
        if (i == 0 && n == 3)
            head.status = (rest.ptr[0] - '0') * 100 + (rest.ptr[1] - '0') * 10 + (rest.ptr[2] - '0');
        else
            add_line(&head, (rv_str){rest.ptr, n});
        rest = (rv_str){rest.ptr + at, rest.len - at};
    }
    look_at(&head);
    return 0;
}
