/* Wall time and peak memory of a command as a whole process: bench_spawn REPEAT COMMAND [ARGS...]
 * Prints one JSON object with minimum, median and maximum; the command's output is discarded. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_REPEAT 1000

static long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static int by_value(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static long took[MAX_REPEAT], memory[MAX_REPEAT];
    int repeat = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;

    if (repeat < 1 || repeat > MAX_REPEAT) {
        fprintf(stderr, "usage: bench_spawn REPEAT COMMAND [ARGS...]\n");
        return 2;
    }
    for (int i = 0; i < repeat; i++) {
        struct rusage used;
        int status;
        long begun = now_us();
        pid_t pid = fork();
        if (pid == 0) {
            int null = open("/dev/null", O_RDWR);
            dup2(null, 0);
            dup2(null, 1);
            dup2(null, 2);
            execv(argv[2], argv + 2);
            _exit(127);
        }
        if (pid < 0 || wait4(pid, &status, 0, &used) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            fprintf(stderr, "bench_spawn: %s did not succeed\n", argv[2]);
            return 1;
        }
        took[i] = now_us() - begun;
        memory[i] = used.ru_maxrss;
    }
    qsort(took, (size_t)repeat, sizeof *took, by_value);
    qsort(memory, (size_t)repeat, sizeof *memory, by_value);
    printf(
        "{\"wall_us\":{\"min\":%ld,\"median\":%ld,\"max\":%ld},\"peak_kb\":{\"min\":%ld,\"median\":%ld,\"max\":%ld}}\n",
        took[0], took[repeat / 2], took[repeat - 1], memory[0], memory[repeat / 2], memory[repeat - 1]);
    return 0;
}
