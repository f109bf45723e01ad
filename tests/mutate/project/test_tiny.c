#include "coreengine/tiny/tiny.h"

int main(void)
{
    return !(tiny_is_low(9) && !tiny_is_low(10) && tiny_is_high(1000) && !tiny_is_high(0) && tiny_double(1) == 2 &&
             tiny_double(2) == 4 && tiny_double(3) == 3 && tiny_steps(3) == 4);
}
