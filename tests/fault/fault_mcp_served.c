/* A client's calls and tasks, where each allocation fails once: no crash and no leak; the code says no memory, or the
 * answer is the one that it is with memory. What a client asks for again afterwards it gets. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coreengine/app/app.h"
#include "tests/kit/fault.h"
#include "tests/kit/kit.h"
#include "tests/kit/suites.h"

#define MODERN                                                                                                         \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                                           \
    "\"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},"                                              \
    "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}}"
#define ASK(method, params) "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method "\",\"params\":{" params "}}"
#define TASK                "\"taskId\":\"$\"" /* $: the task of the row */
#define ANSWER(content)                                                                                                \
    "\"inputResponses\":{\"?\":{\"action\":\"accept\",\"content\":{" content "}}}" /* ?: its question */

static const char hello[] =
    ASK("initialize", "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"elicitation\":{}},"
                      "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}");

/* The tasks of the template store, by their pipelines; "later" is not performed. */
static const char *const names[] = {"done", "breaks", "asks", "later"};
static const char *const texts[] = {
    "name: done\nagents: [{name: a, set: {text: envelope.raw_input}}]\nresponse: {output_key: a, field: text}\n",
    ("name: breaks\nagents:\n  - {name: a, set: {list: \"[1]\"}, default_next: b}\n"
     "  - {name: b, set: {text: \"outputs.a.list[7]\"}}\n"),
    "name: asks\nagents: [{name: a, set: {v: \"1\"}, ask: {question: Go?, options: [yes, no]}}]\n",
    "name: later\nagents: [{name: a, set: {v: \"1\"}}]\n"};

static const struct asked {
    bool is_modern;
    const char *task; /* its pipeline; NULL: none */
    const char *text;
    const char *has; /* of the answer, with memory */
} asked[] = {
    {true, NULL, ASK("tools/list", MODERN), "answer_run"},
    {true, NULL, ASK("tools/call", "\"name\":\"nothing\",\"arguments\":{}," MODERN), "no similar name"},
    {true, NULL, ASK("tools/call", "\"name\":\"done\",\"arguments\":{\"text\":\"x\"}," MODERN), "isError"},
    {true, NULL,
     ASK("tools/call",
         "\"name\":\"query\",\"arguments\":{\"query\":\"SELECT 1 AS one FROM sessions LIMIT 1\"}," MODERN),
     "results"},
    {false, NULL, ASK("tools/call", "\"name\":\"done\",\"arguments\":{\"input\":\"x\"},\"task\":{\"ttl\":1}"),
     "working"},
    {true, "later", ASK("tasks/get", TASK "," MODERN), "working"},
    {true, "done", ASK("tasks/get", TASK "," MODERN), "completed"},
    {true, "breaks", ASK("tasks/get", TASK "," MODERN), "failed"},
    {true, "asks", ASK("tasks/get", TASK "," MODERN), "elicitation/create"},
    {true, "asks", ASK("tasks/update", TASK "," ANSWER("\"choice\":\"yes\"") "," MODERN), "complete"},
    {true, "asks", ASK("tasks/update", TASK "," ANSWER("\"choice\":\"maybe\"") "," MODERN), "-32602"},
    {true, "later", ASK("tasks/cancel", TASK "," MODERN), "complete"},
    {false, "asks", ASK("tasks/get", TASK), "input_required"},
    {false, "later", ASK("tasks/cancel", TASK), "cancelled"},
    {false, NULL, ASK("tasks/list", "\"cursor\":\"1\""), "input_required"},
    {false, "done", ASK("tasks/result", TASK), "related-task"},
    {false, "asks", ASK("tasks/result", TASK), "elicitation/create"},
};

static struct world {
    char *dir, *pipelines, *template, *store;
    struct rv_app app;
    struct rv_app_mcp_opts offer;
    char tasks[RV_COUNT(names)][400], question[RV_STORE_MAX_ID + 1];
} world;

/* One client in one state of the store; `read` may fail. */
struct client {
    struct rv_app_sources sources;
    rv_app_mcp *m;
};

static void open_client(struct client *c, bool is_modern)
{
    ck_assert_int_eq(rv_app_sources_open(&world.app, RV_APP_STORE_MAKE, &c->sources, NULL), 0);
    ck_assert_int_eq(rv_app_mcp_new(&world.offer, is_modern, &c->m, NULL), 0);
}

static void close_client(struct client *c)
{
    rv_app_mcp_free(c->m);
    rv_app_sources_fini(&c->sources);
}

/* The last message that is sent for it is appended to out. */
static int say(struct client *c, const char *text, rv_buf *out)
{
    rv_app_mcp_job *job = NULL;
    struct rv_app_mcp_at at = {.app = &world.app, .sources = &c->sources, .job = &job};
    struct rv_mcp_orders orders = {NULL, 0, 0};
    rv_err *err = NULL;
    int rc = rv_app_mcp_read(c->m, &at, rv_str_of(text), &orders, &err);

    at.job = NULL;
    if (job) {
        rv_app_mcp_job_do(job, &at);
        int finished = rv_app_mcp_finish(c->m, &at, job, &orders, rc < 0 ? NULL : &err);
        rc = rc < 0 ? rc : finished;
    }
    if (rc == 0)
        rc = rv_app_mcp_look(c->m, &at, &orders, &err);
    if (rc == 0 && orders.n > 0)
        rv_buf_add_str(out, rv_buf_str(&orders.items[orders.n - 1].bytes));
    rv_mcp_orders_fini(&orders);
    rv_err_free(err);
    return rc;
}

static void must(struct client *c, const char *text, rv_buf *out)
{
    int rc = say(c, text, out);

    ck_assert_msg(rc == 0, "%s: %s", text, rv_code_text(rc));
}

/* The text between two others. */
static void cut(const rv_buf *from, const char *before, const char *after, char *out, size_t size)
{
    const char *begin = strstr(rv_buf_cstr(from), before);

    ck_assert_msg(begin, "%s: not in %s", before, rv_buf_cstr(from));
    begin += strlen(before);
    snprintf(out, size, "%.*s", (int)(strstr(begin, after) - begin), begin);
}

static void make_task(struct client *c, size_t i)
{
    rv_buf out = RV_BUF_INIT(1 << 20);
    char text[400];

    snprintf(text, sizeof text,
             ASK("tools/call", "\"name\":\"%s\",\"arguments\":{\"input\":\"x\"},\"task\":{\"ttl\":1}"), names[i]);
    must(c, text, &out);
    cut(&out, "\"taskId\":\"", "\"", world.tasks[i], sizeof world.tasks[i]);
    rv_buf_fini(&out);
}

static void begin(void)
{
    struct rv_worker_done done = {0};
    struct client c;
    rv_buf out = RV_BUF_INIT(1 << 20);

    world.dir = rv_kit_tmpdir();
    world.template = rv_kit_path(world.dir, "template.db");
    world.store = rv_kit_path(world.dir, "store.db");
    world.pipelines = rv_kit_path(world.dir, "p");
    ck_assert_int_eq(mkdir(world.pipelines, 0700), 0);
    for (size_t i = 0; i < RV_COUNT(names); i++) {
        char name[40];
        snprintf(name, sizeof name, "%s.yaml", names[i]);
        char *path = rv_kit_path(world.pipelines, name);
        rv_kit_write(path, texts[i]);
        free(path);
    }
    world.offer = (struct rv_app_mcp_opts){.pipelines = world.pipelines};
    world.app =
        (struct rv_app){.store = world.template, .sync = "off", .schema_dir = "", .capability = "", .quotas = ""};
    open_client(&c, false);
    must(&c, hello, &out);
    for (size_t i = 0; i + 1 < RV_COUNT(names); i++)
        make_task(&c, i);
    const struct rv_worker_opts worker = {.app = &world.app, .until_idle = true};
    ck_assert_int_eq(rv_worker_run(&worker, &done, NULL), 0);
    make_task(&c, RV_COUNT(names) - 1);
    close_client(&c);
    open_client(&c, true);
    rv_buf_clear(&out);
    char text[800];
    snprintf(text, sizeof text, ASK("tasks/get", "\"taskId\":\"%s\"," MODERN), world.tasks[2]);
    must(&c, text, &out);
    cut(&out, "\"inputRequests\":{\"", "\"", world.question, sizeof world.question);
    close_client(&c);
    rv_buf_fini(&out);
    world.app.store = world.store;
}

static void end(void)
{
    free(world.template);
    free(world.store);
    free(world.pipelines);
    rv_kit_tmpdir_remove(world.dir);
}

/* With the ids in it. */
static void write_text(const struct asked *a, rv_buf *out)
{
    size_t task = 0;

    while (a->task && strcmp(names[task], a->task) != 0)
        task++;
    for (const char *p = a->text; *p; p++)
        if (*p == '$')
            rv_buf_puts(out, world.tasks[task]);
        else if (*p == '?')
            rv_buf_puts(out, world.question);
        else
            rv_buf_putc(out, *p);
}

/* Figures and the letters of ids differ from one time to the next. */
static void mask(rv_buf *b)
{
    for (size_t i = 0; i < b->len; i++)
        if (rv_is_digit(b->ptr[i]) || (b->ptr[i] >= 'a' && b->ptr[i] <= 'f'))
            b->ptr[i] = '0';
}

START_TEST(every_allocation_may_fail)
{
    const struct asked *a = &asked[_i];
    rv_buf text = RV_BUF_INIT(4096), want = RV_BUF_INIT(1 << 20), got = RV_BUF_INIT(1 << 20);
    struct client c;
    long balance = 0;
    size_t step = 0, n_short = 0;

    begin();
    write_text(a, &text);
    /* Without a fault: the first time libraries set themselves up, then what is freed afterwards is counted. */
    for (int i = 0; i < 2; i++) {
        rv_kit_copy(world.template, world.store);
        open_client(&c, a->is_modern);
        if (!a->is_modern)
            must(&c, hello, &got);
        rv_buf_clear(&got);
        rv_buf_clear(&want);
        rv_fault_arm(SIZE_MAX);
        int rc = say(&c, rv_buf_cstr(&text), &got);
        close_client(&c);
        rv_fault_disarm();
        ck_assert_int_eq(rc, 0);
        balance = rv_fault_balance();
        step = rv_kit_step(rv_fault_count() / 40 + 1);
        rv_buf_add_str(&want, rv_buf_str(&got));
    }
    ck_assert_msg(strstr(rv_buf_cstr(&want), a->has), "%s: %s", a->text, rv_buf_cstr(&want));
    mask(&want);
    for (size_t n = rv_kit_first(step);; n += step) {
        rv_kit_copy(world.template, world.store);
        open_client(&c, a->is_modern);
        if (!a->is_modern)
            must(&c, hello, &got);
        rv_buf_clear(&got);
        rv_fault_arm(n);
        int rc = say(&c, rv_buf_cstr(&text), &got);
        close_client(&c);
        bool has_fired = rv_fault_disarm();
        mask(&got);
        ck_assert_msg(rc == RV_E_NOMEM || (rc == 0 && rv_str_eq(rv_buf_str(&got), rv_buf_str(&want))),
                      "%s, allocation %zu: %s: %.500s\nnot %.500s", a->text, n, rv_code_text(rc), rv_buf_cstr(&got),
                      rv_buf_cstr(&want));
        ck_assert_msg(rv_fault_balance() == balance, "%s, allocation %zu: %ld blocks, not %ld", a->text, n,
                      rv_fault_balance(), balance);
        n_short += rc == RV_E_NOMEM;
        if (!has_fired)
            break;
        /* Once more, in what the store is now. */
        open_client(&c, a->is_modern);
        if (!a->is_modern)
            must(&c, hello, &got);
        rv_buf_clear(&got);
        must(&c, rv_buf_cstr(&text), &got);
        mask(&got);
        ck_assert_msg(rv_str_eq(rv_buf_str(&got), rv_buf_str(&want)),
                      "%s, again after allocation %zu: %.500s\nnot %.500s", a->text, n, rv_buf_cstr(&got),
                      rv_buf_cstr(&want));
        close_client(&c);
    }
    ck_assert(n_short > 5 || !rv_fault_works());
    rv_buf_fini(&text);
    rv_buf_fini(&want);
    rv_buf_fini(&got);
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault_mcp_served");
    TCase *c = tcase_create("messages");

    tcase_set_timeout(c, 60);
    tcase_add_loop_test(c, every_allocation_may_fail, 0, RV_COUNT(asked));
    suite_add_tcase(s, c);
    return rv_kit_run(s);
}
