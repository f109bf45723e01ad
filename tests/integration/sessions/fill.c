/* fill STORE TENANT USER NAME <TURN: a session as somebody's conversation left it, for scripts to look at. TURN is what
 * rv_turn_read() takes. */
#include "coreengine/store/store.h"

#include <stdio.h>

static int fill(char **argv, rv_str json, rv_err **err)
{
    const struct rv_store_opts opts = {.sync = RV_STORE_SYNC_OFF};
    const struct rv_store_scope scope = {.tenant = argv[2], .user = argv[3]};
    struct rv_turn turn = {0};
    rv_store *store = NULL;

    int rc = rv_store_open(argv[1], &opts, &store, err);
    if (rc == 0)
        rc = rv_turn_read(json, &turn, err);
    if (rc == 0) {
        int64_t at_us = turn.n_rows ? turn.rows[0].created_us : 1;
        struct rv_session_row row = {.id = turn.session,
                                     .tenant = argv[2],
                                     .user = argv[3],
                                     .name = argv[4][0] ? argv[4] : NULL,
                                     .agent_name = turn.agent_name,
                                     .created_us = at_us,
                                     .updated_us = at_us};
        rc = rv_store_ensure_session(store, &row, NULL, err);
        if (rc == 0)
            rc = rv_store_add_messages(store, &scope, &turn,
                                       turn.n_rows ? turn.rows[turn.n_rows - 1].created_us : at_us, err);
    }
    rv_turn_fini(&turn);
    rv_store_close(store);
    return rc;
}

int main(int argc, char **argv)
{
    rv_buf json = RV_BUF_INIT((size_t)64 << 20), said = RV_BUF_INIT(1 << 20);
    rv_err *err = NULL;

    if (argc != 5)
        return 2;
    int rc = rv_file_read("-", &json, &err);
    if (rc == 0)
        rc = fill(argv, rv_buf_str(&json), &err);
    if (rc < 0) {
        rv_err_write_text(err, false, &said);
        fputs(rv_buf_cstr(&said), stderr);
    }
    rv_err_free(err);
    rv_buf_fini(&json);
    rv_buf_fini(&said);
    return rc < 0;
}
