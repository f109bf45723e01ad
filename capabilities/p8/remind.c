/* remind_me: a time, or times, at which a person wants to hear of something: a schedule, and a moment that shows it.
 * list_reminders and cancel_reminder. */
#include "capabilities/p8/p8_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define MAX_WHEN    200          /* bytes of "every Monday at 9" and the like; a longer text is an error of the call */
#define MAX_TAGS    100          /* of one reminder: a model fills the list; more is an error of the call */
#define MAX_PAYLOAD (1000 << 10) /* bytes: what a schedule can carry, and room for the other arguments of the ask */

static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

/* --- once --- */

struct once {
    int year, month, day, hour, minute, second; /* as it was written */
    int64_t at;                                 /* the instant, in seconds */
};

/* n digits; -1: there are none. */
static int digits(const char **at, int n)
{
    int value = 0;

    for (int i = 0; i < n; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return -1;
        value = value * 10 + (**at - '0');
    }
    return value;
}

static int64_t days_of(int year, int month, int day)
{
    int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool read_offset(const char **at, int *minutes)
{
    int sign = **at == '-' ? -1 : 1, hour, minute;

    *minutes = 0;
    if (**at == 'Z' || **at == 'z') {
        (*at)++;
        return true;
    }
    if (**at != '+' && **at != '-')
        return true;
    (*at)++;
    hour = digits(at, 2);
    if (**at == ':')
        (*at)++;
    minute = digits(at, 2);
    *minutes = sign * (hour * 60 + minute);
    return hour >= 0 && hour < 24 && minute >= 0 && minute < 60;
}

/* Whether the text is a date, perhaps with a time; the engine looks at it again, and at what days there are. */
static bool read_once(const char *s, struct once *o)
{
    bool is_compact = strlen(s) > 8 && s[8] == 'T';
    int offset = 0;

    *o = (struct once){0};
    o->year = digits(&s, 4);
    s += !is_compact && *s == '-';
    o->month = o->year < 0 ? -1 : digits(&s, 2);
    s += !is_compact && *s == '-';
    o->day = o->month < 1 || o->month > 12 ? -1 : digits(&s, 2);
    if (o->day < 1)
        return false;
    if (*s == 'T' || *s == ' ') {
        s++;
        o->hour = digits(&s, 2);
        s += !is_compact && *s == ':';
        o->minute = o->hour < 0 ? -1 : digits(&s, 2);
        if (o->minute >= 0 && (*s == ':' || (is_compact && *s >= '0' && *s <= '9'))) {
            s += *s == ':';
            o->second = digits(&s, 2);
        }
        if (o->second >= 0 && *s == '.')
            s += 1 + strspn(s + 1, "0123456789");
        if (o->hour < 0 || o->hour > 23 || o->minute < 0 || o->minute > 59 || o->second < 0 || o->second > 59)
            return false;
        if (!read_offset(&s, &offset))
            return false;
    }
    o->at = days_of(o->year, o->month, o->day) * 86400 + o->hour * 3600 + o->minute * 60 + o->second - offset * 60;
    return *s == '\0';
}

/* --- again and again --- */

static bool is_plain(const char *field)
{
    return *field && strspn(field, "0123456789") == strlen(field) && strlen(field) <= 2;
}

/* Of a plain field. */
static int number_of(const char *field)
{
    return (int)strtol(field, NULL, 10);
}

/* The fields of an expression; false if it has another number of them, or one that is longer. */
static bool split_fields(const char *expr, char out[5][48])
{
    size_t n = 0;

    while (*(expr += strspn(expr, " \t"))) {
        size_t len = strcspn(expr, " \t");
        if (n == 5 || len >= sizeof out[0])
            return false;
        memcpy(out[n], expr, len);
        out[n++][len] = 0;
        expr += len;
    }
    return n == 5;
}

static bool is_any(const char *field)
{
    return strcmp(field, "*") == 0;
}

static int weekday_of(const char *word, size_t len)
{
    if (len == 1 && *word >= '0' && *word <= '7')
        return (*word - '0') % 7;
    for (int i = 0; i < 7; i++)
        if (len == 3 && strncasecmp(word, days[i], 3) == 0)
            return i;
    return -1;
}

/* "1-5" or "Mon,Wed" in words, in their order; false: something else, such as a step. */
static bool say_weekdays(const char *field, char *out, size_t size)
{
    int list[64], n = 0;
    size_t len = 0;

    while (*field) {
        size_t word = strcspn(field, ",-");
        int from = weekday_of(field, word), to = from;
        field += word;
        if (*field == '-') {
            word = strcspn(++field, ",-");
            to = weekday_of(field, word);
            field += word;
            if (to == 0 && from > 0)
                to = 7;
        }
        if (from < 0 || to < from || *field == '-')
            return false;
        for (int day = from; day <= to && n < 64; day++)
            list[n++] = day % 7;
        field += *field == ',';
    }
    if (n == 5 && list[0] == 1 && list[1] == 2 && list[2] == 3 && list[3] == 4 && list[4] == 5) {
        snprintf(out, size, "Weekdays");
        return true;
    }
    for (int i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? ", " : "Every ", days[list[i]]);
    return n > 0;
}

static const char *ending_of(int day)
{
    if (day / 10 == 1)
        return "th";
    return day % 10 == 1 ? "st" : day % 10 == 2 ? "nd" : day % 10 == 3 ? "rd" : "th";
}

/* Of the expression's five fields; what has lists, steps, or a minute in every hour is told as it is written. */
static void say_cron(const char *expr, char *out, size_t size)
{
    static const struct {
        const char *macro, *fields;
    } macros[] = {{"@hourly", ""},          {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
                  {"@weekly", "0 0 * * 0"}, {"@monthly", "0 0 1 * *"}, {"@yearly", ""},
                  {"@annually", ""}};
    char field[5][48], head[256] = "", time[32] = "";
    const char *fields = expr;

    for (size_t i = 0; i < sizeof macros / sizeof macros[0]; i++)
        if (strcasecmp(expr, macros[i].macro) == 0)
            fields = macros[i].fields;
    snprintf(out, size, "Custom (%s)", expr);
    if (!split_fields(fields, field))
        return;
    if (!(is_plain(field[0]) && is_plain(field[1])) && !(is_any(field[0]) && is_any(field[1])))
        return;
    if (!is_any(field[0]))
        snprintf(time, sizeof time, " at %02d:%02d", number_of(field[1]), number_of(field[0]));
    if (!is_any(field[3]))
        return;
    if (is_any(field[2]) && is_any(field[4]))
        snprintf(out, size, "Daily%s", time);
    else if (is_any(field[2]) && say_weekdays(field[4], head, sizeof head))
        snprintf(out, size, "%s%s", head, time);
    else if (is_any(field[4]) && is_plain(field[2]))
        snprintf(out, size, "Monthly on the %d%s%s", number_of(field[2]), ending_of(number_of(field[2])), time);
}

/* --- the tool --- */

/* One for each user and name; users share the names of schedules. */
static void schedule_name(const struct tool *t, const char *name, char out[64])
{
    uint64_t h[2] = {UINT64_C(14695981039346656037), UINT64_C(1099511628211)};
    const char *parts[] = {user_of(t), name};

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            for (const char *c = parts[k];; c++) {
                h[i] = (h[i] ^ (unsigned char)*c) * UINT64_C(1099511628211);
                h[i] ^= h[i] >> 29;
                if (!*c)
                    break;
            }
    snprintf(out, 64, "reminder-%016llx%016llx", (unsigned long long)h[0], (unsigned long long)h[1]);
}

struct reminder {
    const char *name, *description, *when;
    json_object *tags; /* owned */
    bool is_once;
    char job[64], frequency[MAX_WHEN + 64], schedule[64];
};

static json_object *payload_of(struct tool *t, const struct reminder *r)
{
    json_object *payload = json_object_new_object(), *users = json_object_new_array(), *data = json_object_new_object();

    push(t, users, text(user_of(t)));
    add(t, payload, "user_ids", users);
    add(t, payload, "title", text(r->name));
    add(t, payload, "body", text(r->description));
    add(t, data, "reminder_id", text(r->job));
    add(t, data, "tags", json_object_get(r->tags));
    add(t, payload, "data", data);
    return payload;
}

static bool fits(struct tool *t, json_object *payload)
{
    const char *s = json_object_to_json_string_ext(payload, JSON_C_TO_STRING_PLAIN);

    if (s && strlen(s) > MAX_PAYLOAD)
        tool_fail(t, BAD_ARGUMENTS, "name, description and tags are together larger than %d bytes of JSON",
                  MAX_PAYLOAD);
    return !t->code;
}

/* {schedule, next_at}; the caller's. */
static json_object *schedule_it(struct tool *t, const struct reminder *r)
{
    json_object *args = json_object_new_object(), *payload = payload_of(t, r), *said;

    bool is_checked = fits(t, payload); /* all but the time */

    add(t, args, "name", text(r->job));
    add(t, args, "type", text("notify"));
    add(t, args, r->is_once ? "at" : "cron", text(r->when));
    add(t, args, "payload", payload);
    add(t, args, "replace", json_object_new_boolean(1));
    said = ask_take(t, "schedules.add", args);
    if (!said && is_checked && tool_forgive(t, BAD_ARGUMENTS))
        tool_fail(t, BAD_ARGUMENTS, "Invalid crontab expression: %s", r->when);
    return said;
}

static json_object *edges_of(struct tool *t, const struct reminder *r)
{
    json_object *edges = json_object_new_array(), *edge;
    char reason[400];

    if (!session_of(t))
        return edges;
    edge = json_object_new_object();
    snprintf(reason, sizeof reason, "Reminder '%.300s' created in this session", r->name);
    for (size_t end = strlen(reason); !is_utf8(reason, strlen(reason)) && end > 0;)
        reason[--end] = '\0';
    add(t, edge, "target", text(session_of(t)));
    add(t, edge, "relation", text("reminder"));
    add(t, edge, "weight", json_object_new_double(1.0));
    add(t, edge, "reason", text(reason));
    push(t, edges, edge);
    return edges;
}

static json_object *moment_of(struct tool *t, const struct reminder *r, json_object *said)
{
    json_object *row = json_object_new_object(), *metadata = json_object_new_object();
    json_object *next = member(said, "next_at");

    add(t, row, "name", text(r->name));
    add(t, row, "moment_type", text("reminder"));
    add(t, row, "category", text("reminder"));
    add(t, row, "summary", text(r->description));
    add(t, row, "topic_tags", json_object_get(r->tags));
    add(t, row, "starts_timestamp", json_object_get(next));
    add(t, row, "graph_edges", edges_of(t, r));
    add(t, metadata, "reminder_id", json_object_get(member(said, "schedule")));
    add(t, metadata, "job_name", text(r->job));
    add(t, metadata, "schedule", r->is_once ? json_object_get(next) : text(r->when));
    add(t, metadata, "recurrence", text(r->is_once ? "once" : "recurring"));
    add(t, metadata, "frequency", text(r->frequency));
    add(t, metadata, "category", text("reminder"));
    add(t, row, "metadata", metadata);
    return row;
}

/* With a session of its own, in which the person is reminded. The id, the caller's. */
static json_object *put_moment(struct tool *t, const struct reminder *r, json_object *said)
{
    json_object *args = json_object_new_object(), *put, *id;
    size_t size = strlen(r->description) + 16;
    char *description = malloc(size);

    t->no_memory = t->no_memory || !description;
    if (description)
        snprintf(description, size, "Reminder: %s", r->description);
    add(t, args, "moment", moment_of(t, r, said));
    add(t, args, "description", text(description ? description : ""));
    free(description);
    put = ask_take(t, "moments.put", args);
    id = json_object_get(member(put, "id"));
    json_object_put(put);
    return id;
}

static json_object *remind_with(struct tool *t, struct reminder *r)
{
    json_object *said = schedule_it(t, r), *id, *result;

    if (!said)
        return NULL;
    id = put_moment(t, r, said);
    result = success(t, "success");
    add(t, result, "reminder_id", json_object_get(member(said, "schedule")));
    add(t, result, "moment_id", id);
    add(t, result, "name", text(r->name));
    add(t, result, "frequency", text(r->frequency));
    add(t, result, "recurrence", text(r->is_once ? "once" : "recurring"));
    add(t, result, "next_at", json_object_get(member(said, "next_at")));
    json_object_put(said);
    return result;
}

static bool read_reminder(struct tool *t, struct reminder *r)
{
    struct once once;

    r->name = arg_text(t, "name", true);
    r->description = arg_text(t, "description", false);
    r->when = arg_text(t, "crontab", true);
    r->description = r->description ? r->description : "";
    if (t->code)
        return false;
    r->when += strspn(r->when, " ");
    if (strlen(r->when) > MAX_WHEN)
        return tool_fail(t, BAD_ARGUMENTS, "Invalid crontab expression: %.200s", "it is too long") != NULL;
    r->is_once = read_once(r->when, &once);
    if (r->is_once && once.at <= (int64_t)time(NULL))
        return tool_fail(t, BAD_ARGUMENTS, "reminder time is in the past") != NULL;
    if (r->is_once)
        snprintf(r->frequency, sizeof r->frequency, "Once — %s %d at %02d:%02d", months[once.month - 1], once.day,
                 once.hour, once.minute);
    else
        say_cron(r->when, r->frequency, sizeof r->frequency);
    schedule_name(t, r->name, r->job);
    return true;
}

static json_object *remind(struct tool *t, const void *self)
{
    json_object *tags, *result;
    struct reminder r = {.name = NULL};

    (void)self;
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for reminders");
    tags = arg_list(t, "tags", false, MAX_TAGS, json_type_string);
    if (!read_reminder(t, &r))
        return NULL;
    r.tags = tags ? json_object_get(tags) : json_object_new_array();
    result = remind_with(t, &r);
    json_object_put(r.tags);
    return result;
}

int remind_me(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, remind);
}

/* --- those that there are --- */

static json_object *list_of(struct tool *t)
{
    json_object *args = json_object_new_object(), *said = ask_take(t, "schedules.list", args);
    json_object *list = json_object_new_array(), *schedules = member(said, "schedules");

    for (size_t i = 0; i < length(schedules); i++) {
        json_object *s = item(schedules, i), *payload = member(s, "payload"), *one;
        const char *name = text_in(s, "name"), *type = text_in(s, "task_type"), *status = text_in(s, "status");
        if (!name || strncmp(name, "reminder-", 9) != 0 || !type || strcmp(type, "notify") != 0 || !status ||
            strcmp(status, "active") != 0)
            continue;
        one = json_object_new_object();
        add(t, one, "reminder_id", json_object_get(member(s, "id")));
        add(t, one, "name", json_object_get(member(payload, "title")));
        add(t, one, "description", json_object_get(member(payload, "body")));
        add(t, one, "next_at", json_object_get(member(s, "next_at")));
        add(t, one, "recurrence", text(text_in(s, "cron") ? "recurring" : "once"));
        push(t, list, one);
    }
    json_object_put(said);
    return list;
}

static json_object *list(struct tool *t, const void *self)
{
    json_object *reminders, *result;

    (void)self;
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for reminders");
    reminders = list_of(t);
    result = t->code ? NULL : success(t, "success");
    if (result) {
        add(t, result, "count", json_object_new_int64((int64_t)length(reminders)));
        add(t, result, "reminders", json_object_get(reminders));
    }
    json_object_put(reminders);
    return result;
}

int list_reminders(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, list);
}

/* The schedule ends. The moment stays: it says what was wanted, and when. */
static json_object *cancel(struct tool *t, const void *self)
{
    const char *name = arg_text(t, "name", true);
    json_object *args, *said, *result = NULL;
    char job[64];

    (void)self;
    if (!user_of(t))
        return tool_fail(t, DENIED, "user_id is required for reminders");
    if (t->code)
        return NULL;
    schedule_name(t, name, job);
    args = json_object_new_object();
    add(t, args, "schedule", text(job));
    said = ask_take(t, "schedules.cancel", args);
    if (!said && tool_forgive(t, NOT_FOUND))
        return tool_fail(t, NOT_FOUND, "there is no reminder %.200s", name);
    if (said) {
        result = success(t, "success");
        add(t, result, "name", text(name));
    }
    json_object_put(said);
    return result;
}

int cancel_reminder(void *self, struct rv_cap_call *call)
{
    return tool_call(self, call, NULL, cancel);
}
