/* The scenes of tests/scenes/turns: what is said and done in a turn, and what has to come of it. */
#include <json-c/linkhash.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kit/scene.h"
#include "tests/unit/turns/room.h"

static struct rv_scenes files; /* the texts of the scenes live in these */
static struct scene *scenes;

static const char *text(json_object *map, const char *key)
{
    const char *found = NULL;

    return rv_json_get_text(map, key, &found) ? found : NULL;
}

static int64_t number(json_object *map, const char *key, int64_t otherwise)
{
    json_object *v = NULL;

    return json_object_object_get_ex(map, key, &v) ? json_object_get_int64(v) : otherwise;
}

static bool flag(json_object *map, const char *key)
{
    json_object *v = NULL;

    return json_object_object_get_ex(map, key, &v) && json_object_get_boolean(v);
}

static void read_lines(json_object *list, struct scene *s)
{
    if (json_object_array_length(list) > ROOM_LINES)
        rv_kit_die("%s: too many answers", s->name);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *l = json_object_array_get_idx(list, i);
        s->lines[i] = (struct line){.to = text(l, "to"),
                                    .text = text(l, "text"),
                                    .calls = text(l, "calls"),
                                    .fails = text(l, "fails"),
                                    .in = number(l, "in", 0),
                                    .out = number(l, "out", 0),
                                    .takes_us = number(l, "takes", 0),
                                    .is_cut = flag(l, "cut")};
    }
}

static struct scene read_scene(json_object *yaml)
{
    json_object *agents = rv_json_get_obj(yaml, "agents"), *expect = rv_json_get_obj(yaml, "expect");
    struct scene s = {.name = text(yaml, "name"),
                      .rules = (enum rv_rules)number(yaml, "rules", 0),
                      .keys = text(yaml, "keys"),
                      .stage = text(yaml, "stage"),
                      .parent = text(yaml, "parent"),
                      .user = text(yaml, "user"),
                      .forgets = flag(yaml, "forgets"),
                      .routes = flag(yaml, "routes"),
                      .last_first = flag(yaml, "last_first"),
                      .cancelled = rv_json_get_arr(yaml, "cancelled"),
                      .n_requests = -1,
                      .n_errors = -1};
    size_t n = 0;

    if (agents) {
        json_object_object_foreach (agents, name, document) {
            if (n + 1 >= RV_COUNT(s.agents))
                rv_kit_die("%s: too many agents", s.name);
            s.agents[n++] = name;
            s.agents[n++] = json_object_get_string(document);
        }
    }
    read_lines(rv_json_get_arr(yaml, "answers"), &s);
    if (!expect)
        return s;
    s.rows = text(expect, "rows");
    s.rows_have = text(expect, "rows_have");
    s.status = text(expect, "status");
    s.reason = text(expect, "reason");
    s.says = text(expect, "says");
    s.words = text(expect, "words");
    s.n_requests = number(expect, "requests", -1);
    s.n_errors = number(expect, "errors", -1);
    return s;
}

int room_count_scenes(void)
{
    if (scenes)
        return (int)files.n;
    files = rv_scenes_read("turns");
    scenes = calloc(files.n, sizeof *scenes);
    for (size_t i = 0; scenes && i < files.n; i++)
        scenes[i] = read_scene(files.items[i].shared);
    return (int)files.n;
}

const struct scene *room_scene_at(int i)
{
    return i < room_count_scenes() ? &scenes[i] : NULL;
}

const struct scene *room_scene(const char *name)
{
    for (int i = 0; i < room_count_scenes(); i++)
        if (strcmp(room_scene_at(i)->name, name) == 0)
            return room_scene_at(i);
    rv_kit_die("no scene \"%s\"", name);
}
