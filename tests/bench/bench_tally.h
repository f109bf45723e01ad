/* What clients of mock_llm count, in the same way for each of them: pieces, how late they are, memory, processor. */
#ifndef RV_TESTS_BENCH_TALLY_H
#define RV_TESTS_BENCH_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_BATCH    5 /* streams that begin at once, */
#define TALLY_BATCH_MS 5 /* and then a pause, in all clients */

struct tally;
/** Of so many streams, which are numbered from 0. Raises the limit of files to what is allowed. */
struct tally *tally_new(size_t n_streams, size_t n_pieces);
void tally_free(struct tally *t);
/** All is set up and one stream was read to its end: what comes now is measured. */
void tally_begin(struct tally *t);
void tally_ask(struct tally *t, size_t stream); /* the request is about to be made */
/** Whole pieces of a stream, "ASKED SENT " each. */
void tally_take(struct tally *t, size_t stream, const char *text, size_t n);
/** Microseconds until that stream is to begin; 0 or less: now. */
int64_t tally_wait_us(const struct tally *t, size_t stream, bool is_paced);
/** Prints a line of JSON. False: pieces are missing. */
bool tally_print(struct tally *t, const char *who, const char *mode);
/** Of the last tally_print(). */
int64_t tally_bytes_each(const struct tally *t);

#endif
