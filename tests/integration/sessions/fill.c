/* fill STORE TENANT USER NAME <TURN: a session as a conversation left it, for scripts to look at. TURN is
 * {session, agent, rows}. */
#include "coreengine/store/store.h"

#include <stdio.h>

static int fill(char **argv, json_object *json, struct rv_turn *turn, rv_err **err)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    const struct rv_store_scope scope = {.tenant = argv[2], .user = argv[3]};
    rv_store *store = NULL;

    if (!turn || !rv_json_get_text(json, "session", &turn->session) ||
        !rv_json_get_text(json, "agent", &turn->agent_name) || !rv_json_get_arr(json, "rows"))
        return RV_FAIL(err, RV_E_INVALID, "not a turn");
    int rc = rv_turn_read_rows(rv_json_get_arr(json, "rows"), turn, err);
    if (rc == 0)
        rc = rv_store_open(argv[1], &opts, &store, err);
    if (rc == 0) {
        int64_t at_us = turn->n_rows ? turn->rows[0].created_us : 1;
        struct rv_session_row row = {.id = turn->session,
                                     .tenant = argv[2],
                                     .user = argv[3],
                                     .name = argv[4][0] ? argv[4] : NULL,
                                     .agent_name = turn->agent_name,
                                     .created_us = at_us,
                                     .updated_us = at_us};
        rv_turn_keep_order(turn);
        rc = rv_store_ensure_session(store, &row, NULL, err);
        if (rc == 0)
            rc = rv_store_add_messages(store, &scope, turn,
                                       turn->n_rows ? turn->rows[turn->n_rows - 1].created_us : at_us, err);
    }
    rv_store_close(store);
    return rc;
}

int main(int argc, char **argv)
{
    rv_buf json = RV_BUF_INIT((size_t)64 << 20), said = RV_BUF_INIT(1 << 20);
    struct rv_turn *turn = rv_turn_new((size_t)64 << 20);
    json_object *value = NULL;
    rv_err *err = NULL;

    if (argc != 5)
        return 2;
    int rc = rv_file_read("-", &json, &err);
    if (rc == 0)
        rc = rv_json_parse(rv_buf_str(&json), NULL, &value, &err);
    if (rc == 0)
        rc = fill(argv, value, turn, &err);
    if (rc < 0) {
        rv_err_write_text(err, false, &said);
        fputs(rv_buf_cstr(&said), stderr);
    }
    rv_err_free(err);
    json_object_put(value);
    rv_turn_free(turn);
    rv_buf_fini(&json);
    rv_buf_fini(&said);
    return rc < 0;
}
