/* tests/mutate/works says what has to become of each mutant. */
#include "coreengine/tiny/tiny.h"

/* tested; a comparison in a comment == no code */
int tiny_is_low(int n)
{
    return n < 10;
}

/* not tested where it counts */
int tiny_is_high(int n)
{
    return n > 'x';
}

/* a case of 2 beside another does not compile; that no int has more than seven bytes is known to the compiler */
int tiny_double(int n)
{
    switch (n) {
    case 1:
    case 2:
        return sizeof(int) > 7 ? n : n * 2;
    }
    return n;
}

/* does not end when its only way out is gone */
int tiny_steps(int n)
{
    int steps = n;

    for (;;) {
        steps++;
        if (steps > n)
            break;
    }
    return steps;
}
