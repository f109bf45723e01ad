/* Shared by the files of this folder. */
#ifndef RV_APP_BATCH_INTERNAL_H
#define RV_APP_BATCH_INTERNAL_H

#include "coreengine/app/app_internal.h"
#include "coreengine/app/work.h"

/* --- read.c: a file, line by line --- */
#define BATCH_MAX_LINE ((size_t)8 << 20) /* bytes of one line: as long as the longest input of `run` */
struct batch_reader {
    const char *path; /* borrowed */
    int fd;           /* -1: none */
    bool is_plain, is_over, skips;
    rv_buf text;        /* read, and not handed out before `at` */
    size_t at, seen;    /* seen: the first place where a line can end */
    int64_t number;     /* of the line that was handed out last */
    int64_t read_bytes; /* in all */
    int64_t size;       /* of a plain file */
};
enum batch_read {
    BATCH_LINE,
    BATCH_LONG,  /* a line that is too long, and was not kept */
    BATCH_LATER, /* nothing is there yet: wait until fd is readable */
    BATCH_PAUSE, /* a line is long, and its end was not read yet: the loop may look at other things first */
    BATCH_END,
};
RV_MUST_CHECK int batch_reader_open(const char *path, struct batch_reader *out, rv_err **err);
/** The next line that is not blank, without its end; borrowed until the next call. */
RV_MUST_CHECK int batch_reader_next(struct batch_reader *r, enum batch_read *what, rv_str *line, rv_err **err);
void batch_reader_close(struct batch_reader *r);

/* --- line.c: what a line says, and its result --- */
struct batch_line {
    const char *file; /* borrowed */
    int64_t number;
    char run[RV_STORE_MAX_ID + 1]; /* "": it has none */
    json_object *item;             /* what it says; NULL: it could not be read; owned */
    json_object *label;            /* its `id`; borrowed from item; NULL: none */
    json_object *state;            /* of a new run, without envelope_id; owned */
};
/** What decides a run besides its line: hashed into its id. What it points to is borrowed from the batch. */
struct batch_seed {
    const char *bundle, *tenant, *name;
    int mode;
    bool use_mocks;
};
/** Read text into line, whose file and number are set. base: of all lines; may be NULL. RV_E_PARSE, RV_E_INVALID,
 *  RV_E_LIMIT: the line is wrong, and may be written with that error. */
RV_MUST_CHECK int batch_line_read(struct batch_line *line, rv_str text, json_object *base,
                                  const struct batch_seed *seed, rv_err **err);
void batch_line_fini(struct batch_line *line);
/** The result of a line whose run is over or waits. */
RV_MUST_CHECK int batch_line_write(const struct batch_line *line, const struct rv_app_batch *batch,
                                   enum rv_run_status status, const rv_envelope *env, rv_buf *out, rv_err **err);
/** The result of one without such a run. status: "failed", "running" (another process has it). */
RV_MUST_CHECK int batch_line_write_error(const struct batch_line *line, const char *status, const rv_err *why,
                                         rv_buf *out, rv_err **err);

#endif
