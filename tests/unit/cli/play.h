/* Scripts played as the shell plays them, to be recorded and to be compared. */
#ifndef RV_TESTS_CLI_PLAY_H
#define RV_TESTS_CLI_PLAY_H

#include "coreengine/cli/cli.h"

/** A script of that text, which must have no findings. */
rv_script *play_script(rv_str text);
/** The recorder hears that a call begins. */
void play_start(rv_recorder *r, bool is_model, const char *name, int64_t call_id, int64_t now_us);
/** All entries for models "a" and "b" and tool "t" of a script that does not repeat: what happens goes to `log`, with
 * times, and to the recorder if there is one. jitter_us is added to each time: below 1000, so that it makes no
 * difference. */
void play(rv_script *s, rv_recorder *r, int64_t jitter_us, rv_buf *log);
/** What the recorder writes, with `repeat: false` added; free() it. */
char *play_recording(rv_recorder *r);

#endif
