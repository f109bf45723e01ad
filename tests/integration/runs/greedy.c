/* A process that writes to a store nearly all the time, until its input ends: greedy STORE */
#include <poll.h>
#include <sqlite3.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define HOLD_MS 60
#define REST_MS 6

static void rest(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

int main(int argc, char **argv)
{
    struct pollfd end = {.fd = STDIN_FILENO, .events = POLLIN};
    sqlite3 *db = NULL;
    int rc = argc == 2 ? sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READWRITE, NULL) : SQLITE_MISUSE;

    while (rc == SQLITE_OK && poll(&end, 1, 0) == 0) {
        rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
        if (rc == SQLITE_OK) {
            rest(HOLD_MS);
            rc = sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        }
        rc = (rc & 0xff) == SQLITE_BUSY ? SQLITE_OK : rc;
        rest(REST_MS);
    }
    if (rc != SQLITE_OK)
        fprintf(stderr, "greedy: %s\n", sqlite3_errstr(rc));
    sqlite3_close(db);
    return rc != SQLITE_OK;
}
