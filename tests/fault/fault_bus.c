/* Each allocation of the message bus fails once: no crash, no leak; a message that finds no memory counts as dropped.
 */
#include <stdlib.h>

#include "coreengine/bus/bus.h"
#include "tests/kit/fault.h"
#include "tests/kit/fault_loop.h"
#include "tests/kit/suites.h"

static int deliver(void *self, uint64_t sub, const char *type, rv_str text, rv_err **err)
{
    (void)type;
    (void)text;
    (void)err;
    rv_bus_settle(self, sub, NULL);
    return 0;
}

static int publish(void)
{
    static const char *const types[] = {"a", "b"};
    struct rv_clock clock = rv_clock_system();
    struct rv_bus_counts counts = {0};
    uint64_t id = 0;
    rv_bus *bus = NULL;

    int rc = rv_bus_new(&clock, NULL, &bus, NULL);
    const struct rv_bus_sub how = {
        .name = "s", .types = types, .n_types = RV_COUNT(types), .deliver = deliver, .self = bus};
    for (int i = 0; rc == 0 && i < 2; i++)
        rc = rv_bus_subscribe(bus, &how, &id, NULL);
    for (int i = 0; rc == 0 && i < 3; i++)
        rv_bus_publish(bus, "b", RV_STR_LIT("text"));
    for (uint64_t i = 1; rc == 0 && i <= id; i++)
        if (rv_bus_find_counts(bus, i, &counts) && counts.dropped > 0)
            rc = RV_E_NOMEM;
    rv_bus_free(bus);
    return rc;
}

static int begin(void *self, uint64_t id, const struct rv_bus_message *m, rv_err **err)
{
    (void)err;
    rv_bus_answer(*(rv_bus **)self, id, m->text, NULL);
    return 0;
}

static void done(void *self, struct rv_bus_outcome *o)
{
    *(int *)self = o->why ? rv_err_code(o->why) : 0;
}

static int replace(void *self, struct rv_bus_message *m, rv_buf *room, rv_err **err)
{
    (void)self;
    (void)err;
    rv_buf_puts(room, "another");
    m->text = rv_buf_str(room);
    return 0;
}

static int ask(void)
{
    const struct rv_bus_middleware ware = {.before = replace};
    struct rv_clock clock = rv_clock_system();
    int said = RV_E_INTERNAL;
    uint64_t id = 0;
    rv_bus *bus = NULL;
    static const char *const types[] = {"a", "b", "c", "d"};

    int rc = rv_bus_new(&clock, NULL, &bus, NULL);
    if (rc == 0)
        rc = rv_bus_add_middleware(bus, &ware, NULL);
    for (size_t i = 0; rc == 0 && i < RV_COUNT(types); i++) {
        const struct rv_bus_handler how = {.type = types[i], .begin = begin, .self = &bus};
        const struct rv_bus_question q = {
            .message = {.kind = RV_BUS_QUERY, .type = types[i]}, .done = done, .self = &said};
        rc = rv_bus_register_handler(bus, &how, NULL);
        if (rc == 0)
            rc = rv_bus_ask(bus, &q, &id, NULL);
        if (rc == 0)
            rc = said;
    }
    rv_bus_free(bus);
    return rc;
}

static const struct rv_fault_scenario scenarios[] = {{"publish", publish}, {"ask", ask}};

START_TEST(every_allocation_may_fail)
{
    rv_fault_each(&scenarios[_i], 10);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_bus");
    TCase *c = tcase_create("loops");

    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(scenarios));
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
