/* What the files of `reeve top` share: a look at a store as lines of text, and the screen that shows them. */
#ifndef RV_CLI_TOP_TOP_INTERNAL_H
#define RV_CLI_TOP_TOP_INTERNAL_H

#include "coreengine/app/app.h"
#include "coreengine/cli/cli.h"

#define RV_CLI_TOP_MAX_TEXT ((size_t)1 << 20) /* bytes of one screen: a large terminal has a tenth */

/* --- draw.c --- */
struct rv_cli_top_view {
    size_t columns; /* that a line may take */
    size_t rows;    /* lines that all may take; 0: as many as there are */
    bool color;
    enum rv_app_top_sort sort;
    size_t selected, first; /* rows: with a mark, and at the top; only where `rows` is set */
    size_t room;            /* out: rows of runs that fit */
};
/** The whole as lines, each with its end. Moves view->first so that the selected row is among them. */
void cli_top_draw(const struct rv_app_top_snapshot *look, struct rv_cli_top_view *view, rv_buf *b);

/* --- screen.c: a terminal that is drawn again and again --- */
enum rv_cli_top_key {
    RV_CLI_TOP_TIME, /* none came in time */
    RV_CLI_TOP_SIZE, /* the terminal has another size, or has to be drawn again */
    RV_CLI_TOP_QUIT,
    RV_CLI_TOP_TERMINATED,
    RV_CLI_TOP_SORT,
    RV_CLI_TOP_REFRESH,
    RV_CLI_TOP_UP,
    RV_CLI_TOP_DOWN,
    RV_CLI_TOP_PAGE_UP,
    RV_CLI_TOP_PAGE_DOWN,
    RV_CLI_TOP_HOME,
    RV_CLI_TOP_END,
};
typedef struct rv_cli_screen rv_cli_screen;
/** One a process: it takes signals. RV_E_NOMEM, RV_E_IO. */
RV_MUST_CHECK int cli_screen_open(rv_cli_screen **out, rv_err **err);
void cli_screen_close(rv_cli_screen *s); /* the terminal is as it was; NULL is fine */
/** Show these lines; only those that changed are written. False: the terminal is gone. */
bool cli_screen_show(rv_cli_screen *s, rv_str lines);
/** The next key, or what else happens first. */
enum rv_cli_top_key cli_screen_wait(rv_cli_screen *s, int64_t timeout_ms);
/** Of the bytes that a terminal sends: the key at their beginning. Gives how many they are; 0: more have to come. */
size_t cli_screen_key(rv_str bytes, enum rv_cli_top_key *out);

#endif
