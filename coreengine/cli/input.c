/* What a run starts from: --envelope, --input, --user, --session and --set, gathered as one partial state. */
#include "coreengine/cli/cli.h"

#include <string.h>

#define MAX_INPUT_BYTES ((size_t)8 << 20)  /* of --input: as any JSON text (RV_JSON_MAX_BYTES); more is an error */
#define MAX_STATE_BYTES ((size_t)64 << 20) /* of --envelope: RV_STATE_MAX_BYTES; more is an error */

static int read_state(const char *path, json_object **out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_STATE_BYTES);
    const struct rv_json_opts opts = {
        .max_bytes = MAX_STATE_BYTES, .max_depth = RV_STATE_MAX_DEPTH + 1, .what = "envelope file"};

    int rc = rv_file_read(path, &text, err);
    if (rc == 0)
        rc = rv_json_parse(rv_utf8_unmark(rv_buf_str(&text)), &opts, out, err);
    rv_buf_fini(&text);
    if (rc == 0 && !json_object_is_type(*out, json_type_object))
        rc = RV_FAIL(err, RV_E_INVALID, "an envelope is a JSON object, not of type %s", rv_json_type_text(*out));
    if (rc == 0 && json_object_object_get_ex(*out, "reeve_run", NULL)) {
        rc = RV_FAIL(err, RV_E_INVALID, "this is a run file, not an envelope");
        rv_err_set_hint(err, "`reeve resume %s` continues the run; its member \"state\" is an envelope", path);
    }
    if (rc < 0) {
        json_object_put(*out);
        *out = NULL;
    }
    return rc < 0 ? RV_WRAP(err, rc, "read envelope \"%s\"", path) : 0;
}

/* The value of an assignment: JSON if it reads as such, else the text itself. */
static int assigned_value(const char *text, json_object **out, rv_err **err)
{
    int rc = rv_json_parse(rv_str_of(text), NULL, out,
                           RV_CODE_ONLY("text that is not JSON is a value as text; want of memory is told below"));

    if (rc == 0)
        return 0;
    if (rc == RV_E_NOMEM)
        return RV_FAIL(err, RV_E_NOMEM, "read a value");
    if (!rv_utf8_valid(rv_str_of(text), NULL))
        return RV_FAIL(err, RV_E_INVALID, "the value is not valid UTF-8");
    *out = json_object_new_string(text);
    return *out ? 0 : RV_FAIL(err, RV_E_NOMEM, "set a value");
}

/* Loading passes over unknown keys, for states of other versions; a person who types one meant another. */
static int check_state_key(const char *path, rv_err **err)
{
    const char *keys[RV_STATE_MAX_KEYS];
    size_t n = rv_envelope_collect_state_keys(keys);
    rv_str first = {path, strcspn(path, ".=")};

    for (size_t i = 0; i < n; i++)
        if (rv_str_is(first, keys[i]))
            return 0;
    const char *near = rv_nearest(first, keys, n);
    int rc = RV_FAIL(err, RV_E_INVALID, "--set %s: the state has no \"%.*s\"", path, RV_STR_ARG(first));
    if (near)
        rv_err_set_hint(err, "did you mean \"%s\"?", near);
    else
        rv_err_set_hint(err, "values of your own belong below metadata: --set metadata.%s", path);
    return rc;
}

/* A new run sets these itself: what a person assigns to them would be lost without a word. */
static int check_begins(const char *path, rv_err **err)
{
    rv_str first = {path, strcspn(path, ".=")};

    if (!rv_app_state_is_runs_own(first))
        return 0;
    int rc = RV_FAIL(err, RV_E_INVALID, "--set %.*s: a new run sets this key when it begins at its first stage",
                     RV_STR_ARG(first));
    rv_err_set_hint(err, "`reeve runs fork RUN --at STEP --set ...` starts from another stage");
    return rc;
}

static int set(json_object *root, const char *assignment, rv_err **err)
{
    const char *eq = strchr(assignment, '=');
    json_object *value = NULL, *at = root;

    if (!eq || eq == assignment) {
        int rc = RV_FAIL(err, RV_E_INVALID, "--set needs path=value, not \"%s\"", assignment);
        rv_err_set_hint(err, "for example --set metadata.lang=en");
        return rc;
    }
    for (const char *part = assignment;;) {
        char key[256];
        size_t n = strcspn(part, ".=");
        if (n == 0 || n >= sizeof key)
            return RV_FAIL(err, RV_E_INVALID, "--set %s: a part of the path is empty or too long", assignment);
        memcpy(key, part, n);
        key[n] = '\0';
        if (part + n == eq) {
            int rc = assigned_value(eq + 1, &value, err);
            if (rc < 0)
                return rc;
            return value ? rv_json_set_take(at, key, value, err) : rv_json_set_null(at, key, err);
        }
        json_object *next = rv_json_get_obj(at, key);
        if (!next && rv_json_member(at, key)) {
            int rc = RV_FAIL(err, RV_E_INVALID, "--set %s: \"%.*s\" has a value, which would be lost", assignment,
                             (int)(part + n - assignment), assignment);
            rv_err_set_hint(err, "use another name, or give the whole as one object");
            return rc;
        }
        if (!next) {
            next = json_object_new_object();
            int rc = rv_json_set_take(at, key, next, err);
            if (rc < 0)
                return rc;
        }
        at = next;
        part += n + 1;
    }
}

int cli_set_all(const struct rv_cli *cli, bool begins, json_object *state, rv_err **err)
{
    const char *assignment;
    int rc = 0;

    for (size_t n = 0; rc == 0 && (assignment = cli_nth(cli, "set", n)); n++) {
        rc = set(state, assignment, err);
        if (rc == 0)
            rc = check_state_key(assignment, err);
        if (rc == 0 && begins)
            rc = check_begins(assignment, err);
    }
    return rc;
}

int cli_read_text(const char *text, const char *file, rv_buf *out, rv_err **err)
{
    if (text && strcmp(text, "-") == 0) {
        file = text;
        text = NULL;
    }
    int rc = file ? rv_file_read(file, out, err) : 0;
    if (text)
        rv_buf_puts(out, text);
    while (rc == 0 && file && out->len && (out->ptr[out->len - 1] == '\n' || out->ptr[out->len - 1] == '\r'))
        rv_buf_truncate(out, out->len - 1);
    return rc;
}

static int set_input(const struct rv_cli *cli, json_object *state, rv_err **err)
{
    const char *input = cli_value(cli, "input"), *file = cli_value(cli, "input-file");
    rv_buf text = RV_BUF_INIT(MAX_INPUT_BYTES);
    int rc;

    if (!input && !file)
        return 0;
    if (input && file) {
        rc = RV_FAIL(err, RV_E_INVALID, "--input and --input-file exclude each other");
        rv_err_set_hint(err, "give one of them; --input-file - reads standard input");
        return rc;
    }
    rc = cli_read_text(input, file, &text, err);
    if (rc < 0)
        rc = RV_WRAP(err, rc, "read the input");
    else
        rc = rv_utf8_valid(rv_buf_str(&text), NULL) ? rv_json_set_str(state, "raw_input", rv_buf_str(&text), err)
                                                    : RV_FAIL(err, RV_E_INVALID, "the input is not valid UTF-8");
    rv_buf_fini(&text);
    return rc;
}

int cli_state(const struct rv_cli *cli, json_object **out, rv_err **err)
{
    const char *user = cli->app.scope.user, *path = cli_value(cli, "envelope"), *session = cli_value(cli, "session");
    json_object *state = NULL;
    int rc = 0;

    if (path)
        rc = read_state(path, &state, err);
    else if (!(state = json_object_new_object()))
        rc = RV_FAIL(err, RV_E_NOMEM, "make an envelope");
    if (rc == 0)
        rc = set_input(cli, state, err);
    if (rc == 0 && user)
        rc = rv_json_set_text(state, "user_id", user, err);
    if (rc == 0 && session)
        rc = rv_json_set_text(state, "session_id", session, err);
    if (rc == 0)
        rc = cli_set_all(cli, true, state, err);
    if (rc < 0)
        json_object_put(state);
    else
        *out = state;
    return rc;
}

/* A state that is refused: names the --set that gave it the value that the error speaks of. */
static int fail_set(const struct rv_cli *cli, int rc, rv_err **err)
{
    const char *text = rv_err_text(*err), *given, *guilty = NULL;
    bool is_text = strstr(text, "must be a string") != NULL;

    for (size_t n = 0; (given = cli_nth(cli, "set", n)); n++) {
        size_t len = strcspn(given, ".=");
        const char *at = strstr(text, "state key \"");
        if (at && strncmp(at + strlen("state key \""), given, len) == 0)
            guilty = given;
    }
    if (guilty)
        rc = RV_WRAP(err, rc, "--set %.100s", guilty);
    if (is_text && cli_flag(cli, "set"))
        rv_err_set_hint(
            err, "--set reads its value as JSON; a text that looks like a number needs quotes: 'user_id=\"42\"'");
    return rc;
}

int cli_load_state(const struct rv_cli *cli, json_object *state, rv_envelope **out, rv_err **err)
{
    int rc = rv_envelope_load(state, rv_rand_system(), rv_app_now_us(), out, err);

    if (rc < 0)
        return fail_set(cli, rc, err);
    rc = rv_app_check_user(&cli->app.scope, rv_envelope_fields(*out)->user_id, err);
    if (rc < 0)
        rv_envelope_free(*out), *out = NULL;
    return rc;
}

int cli_envelope(const struct rv_cli *cli, rv_envelope **out, rv_err **err)
{
    json_object *state = NULL;
    int rc = cli_state(cli, &state, err);

    if (rc < 0)
        return rc;
    rc = cli_load_state(cli, state, out, err);
    json_object_put(state);
    return rc;
}
