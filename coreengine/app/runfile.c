/* Files of interrupted runs: {reeve_run: 1, rules, pipeline, script, state}. */
#include "coreengine/app/app_internal.h"
#include "coreengine/app/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_RUNFILE ((size_t)64 << 20) /* bytes: a state may have as many (RV_STATE_MAX_BYTES) */

static int runfile_path(const char *id, rv_buf *out, rv_err **err)
{
    int rc = rv_app_find_state_folder(out, err);

    rv_buf_printf(out, "/runs/%s.json", id);
    return rc < 0 ? rc : rv_buf_check(out, "path", err);
}

int rv_runfile_find_path(const char *run, rv_buf *out, rv_err **err)
{
    if (strchr(run, '/') || access(run, R_OK) == 0) {
        rv_buf_puts(out, run);
        return rv_buf_check(out, "path", err);
    }
    int rc = runfile_path(run, out, err);
    if (rc == 0 && access(rv_buf_cstr(out), R_OK) != 0) {
        rc = RV_FAIL(err, RV_E_NOT_FOUND, "unknown run \"%s\": neither a file with this name nor \"%s\" exists", run,
                     rv_buf_cstr(out));
        rv_err_set_hint(err, "`reeve run` prints the file of an interrupted run");
    }
    return rc;
}

static void absolute(const char *path, char out[PATH_MAX])
{
    if (!realpath(path, out)) {
        strncpy(out, path, PATH_MAX - 1);
        out[PATH_MAX - 1] = '\0';
    }
}

/* Ids come from state files too, and become names of files. */
static int check_id(const char *id, rv_err **err)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
    if (n > 0 && n <= NAME_MAX - sizeof ".json" && !id[n] && id[0] != '.')
        return 0;
    return RV_FAIL(err, RV_E_INVALID, "the envelope_id \"%s\" cannot be the name of a file", id);
}

int rv_runfile_make_path(const char *id, rv_buf *out, rv_err **err)
{
    int rc = check_id(id, err);
    if (rc == 0)
        rc = runfile_path(id, out, err);
    if (rc == 0)
        rc = rv_file_make_folders(rv_buf_cstr(out), err);
    return rc < 0 ? RV_WRAP(err, rc, "keep the run") : 0;
}

int rv_runfile_write(const char *path, const struct rv_runfile *run, rv_str state, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_RUNFILE);
    rv_jw w = rv_jw_on(&text);
    char full[PATH_MAX];

    rv_jw_obj(&w);
    rv_jw_kv_int(&w, "reeve_run", 1);
    rv_jw_kv_int(&w, "rules", run->rules == RV_RULES_NEWEST ? RV_RULES_LAST : run->rules);
    absolute(run->pipeline, full);
    rv_jw_kv_text(&w, "pipeline", full);
    if (run->script) {
        absolute(run->script, full);
        rv_jw_kv_text(&w, "script", full);
    }
    rv_jw_key(&w, "state");
    rv_jw_raw(&w, state);
    rv_jw_obj_end(&w);
    rv_buf_putc(&text, '\n');
    int rc = rv_buf_check(&text, "run file", err);
    if (rc == 0)
        rc = rv_file_write(path, rv_buf_str(&text), err);
    rv_buf_fini(&text);
    return rc < 0 ? RV_WRAP(err, rc, "keep the run") : 0;
}

int rv_runfile_claim(const char *path, int *fd, rv_err **err)
{
    struct stat opened, now;

    *fd = -1;
    if (stat(path, &now) == 0 && !S_ISREG(now.st_mode))
        return 0;
    int f = open(path, O_RDWR | O_CLOEXEC); /* for writing: what is answered is noted there */
    if (f < 0)
        return RV_FAIL_SYSTEM(err, errno, "open run file \"%s\"", path);
    bool busy = flock(f, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
    /* a file that was replaced between open and lock was answered by the one who replaced it */
    if (!busy && fstat(f, &opened) == 0 && (stat(path, &now) < 0 || opened.st_ino != now.st_ino))
        busy = true;
    if (busy) {
        close(f);
        return RV_FAIL(err, RV_E_STATE, "another process is answering the run \"%s\"", path);
    }
    *fd = f;
    return 0;
}

int rv_runfile_read(const char *path, struct rv_runfile *out, rv_err **err)
{
    rv_buf text = RV_BUF_INIT(MAX_RUNFILE);
    const struct rv_json_opts opts = {
        .max_bytes = MAX_RUNFILE, .max_depth = RV_STATE_MAX_DEPTH + 1, .what = "run file"};
    int64_t version = 0, rules = RV_RULES_1;

    memset(out, 0, sizeof *out);
    int rc = rv_file_read(path, &text, err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&text), &opts, &out->json, err);
    rv_buf_fini(&text);
    if (rc < 0)
        rc = RV_WRAP(err, rc, "read run \"%s\"", path);
    if (rc == 0 &&
        (!json_object_is_type(out->json, json_type_object) || !rv_json_get_int(out->json, "reeve_run", &version)))
        rc = RV_FAIL(err, RV_E_INVALID, "\"%s\" is not a run file", path);
    else if (rc == 0 && version != 1)
        rc = RV_FAIL(err, RV_E_VERSION, "run file \"%s\" has version %lld, this program reads 1", path,
                     (long long)version);
    else if (rc == 0 && (!rv_json_get_text(out->json, "pipeline", &out->pipeline) ||
                         !(out->state = rv_json_get_obj(out->json, "state"))))
        rc = RV_FAIL(err, RV_E_INVALID, "run file \"%s\" names no pipeline or holds no state", path);
    else if (rc == 0 && rv_json_get_int(out->json, "rules", &rules) && (rules < RV_RULES_1 || rules > RV_RULES_LAST))
        rc = RV_FAIL(err, RV_E_VERSION, "run file \"%s\" has version %lld of the rules, this program knows %d", path,
                     (long long)rules, RV_RULES_LAST);
    if (rc < 0) {
        rv_runfile_fini(out);
        return rc;
    }
    out->rules = (enum rv_rules)rules;
    if (!rv_json_get_text(out->json, "script", &out->script))
        out->script = NULL;
    return 0;
}

void rv_runfile_fini(struct rv_runfile *run)
{
    json_object_put(run->json);
    memset(run, 0, sizeof *run);
}
