/* Limits of time. All calls stand in one heap by when something of theirs is due, and one timer of the loop waits for
 * the first. A part of an answer only notes the time: its call keeps its old, too early place in the heap until that
 * comes up, so that a chunk costs no sorting. The time to connect is libcurl's business. */
#include <stdlib.h>

#include "coreengine/model/http/http_internal.h"

#define FIRST_CAPACITY 16

static int64_t later(int64_t from_us, int64_t limit_us)
{
    return from_us > RV_HTTP_NEVER - limit_us ? RV_HTTP_NEVER : from_us + limit_us;
}

/* When the next limit of c is reached, and which. */
static int64_t next_due(const rv_http_call *c, enum rv_http_fault *out_fault)
{
    int64_t due = RV_HTTP_NEVER, other = RV_HTTP_NEVER;

    *out_fault = RV_HTTP_TOTAL_TIME;
    if (c->fault != RV_HTTP_OK || c->is_cancelled)
        return due; /* it is ending already */
    if (c->total_us > 0)
        due = later(c->start_us, c->total_us);
    if (c->is_held)
        return due;
    if (c->answer_us && c->idle_us > 0)
        other = later(c->last_us, c->idle_us);
    else if (!c->answer_us && c->sent_us && c->first_byte_us > 0)
        other = later(c->sent_us, c->first_byte_us);
    if (other >= due)
        return due;
    *out_fault = c->answer_us ? RV_HTTP_IDLE_TIME : RV_HTTP_FIRST_BYTE_TIME;
    return other;
}

static void put(rv_http *h, size_t slot, rv_http_call *c)
{
    h->due[slot] = c;
    c->slot = slot;
}

static void sift(rv_http_call *c)
{
    rv_http *h = c->h;
    size_t slot = c->slot;

    for (; slot > 0 && h->due[(slot - 1) / 2]->due_us > c->due_us; slot = (slot - 1) / 2)
        put(h, slot, h->due[(slot - 1) / 2]);
    for (;;) {
        size_t child = 2 * slot + 1;
        if (child + 1 < h->n_calls && h->due[child + 1]->due_us < h->due[child]->due_us)
            child++;
        if (child >= h->n_calls || h->due[child]->due_us >= c->due_us)
            break;
        put(h, slot, h->due[child]);
        slot = child;
    }
    put(h, slot, c);
}

int rv_http_due_add(rv_http_call *c, rv_err **err)
{
    rv_http *h = c->h;

    if (h->n_calls == h->due_cap) {
        size_t cap = h->due_cap ? 2 * h->due_cap : FIRST_CAPACITY;
        rv_http_call **due = reallocarray(h->due, cap, sizeof *due);
        if (!due)
            return RV_FAIL(err, RV_E_NOMEM, "start a request");
        h->due = due;
        h->due_cap = cap;
    }
    put(h, h->n_calls++, c);
    rv_http_due_update(c);
    return 0;
}

void rv_http_due_remove(rv_http_call *c)
{
    rv_http *h = c->h;
    rv_http_call *last = h->due[--h->n_calls];

    if (last != c) {
        put(h, c->slot, last);
        sift(last);
    }
}

void rv_http_due_update(rv_http_call *c)
{
    enum rv_http_fault fault;

    c->due_us = next_due(c, &fault);
    sift(c);
}

/* Bytes may have come that have not made up a part yet: compressed ones. */
static bool has_moved(rv_http_call *c)
{
    curl_off_t n = 0;

    if (c->h->curl->easy_getinfo(c->easy, CURLINFO_SIZE_DOWNLOAD_T, &n) != CURLE_OK || n <= c->n_received)
        return false;
    c->n_received = n;
    return true;
}

void rv_http_due_expire(rv_http *h, int64_t now_us)
{
    while (h->n_calls > 0 && h->due[0]->due_us <= now_us) {
        rv_http_call *c = h->due[0];
        enum rv_http_fault fault;

        if (next_due(c, &fault) <= now_us) {
            if (fault == RV_HTTP_IDLE_TIME && has_moved(c))
                c->last_us = now_us;
            else {
                c->fault = fault;
                rv_http_todo(c);
            }
        }
        rv_http_due_update(c);
    }
}
